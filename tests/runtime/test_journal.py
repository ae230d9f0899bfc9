"""The journal: what is read is what was written, or it is said where it isn't. And its blobs."""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from flame.core.effects import Emit, Send
from flame.core.events import Received, Started, StopAsked
from flame.core.messages import Assign, Payload
from flame.core.tensor import Tensor
from flame.learn.params import Layout, tensor
from flame.runtime.books.blobs import Blobs
from flame.runtime.books.journal import Blank, CorruptJournal, Header, Journal, dump, read

THETA = tensor(np.array([1.0, 2.0]))
ASSIGN = Assign(1, 0, 0, 0, 0, 0, 9, 0, Payload("full", {"theta": THETA}))
HEADER = Header("run", "1", "fp", THETA.digest, 3, ["aggregator", "t0"], "full", True, Layout.whole(THETA))


def written(folder: Path, blobs: Blobs | None = None, *, buffered: bool = True) -> Path:
    """A journal of three steps."""
    path = folder / "journal" / "sim-1.jsonl"
    journal = Journal(path, HEADER, blobs, buffered=buffered)
    journal.append("aggregator", 0, Started(), [], [Send("t0", ASSIGN)])
    journal.append("t0", 5, Received("aggregator", ASSIGN), [], [])
    journal.append("aggregator", 9, StopAsked("enough"), [(9, 5, "t0", 1)], [])
    journal.close()
    assert journal.seq == 3
    return path


def steps(path: Path) -> list[dict[str, Any]]:
    return list(read(path)[1])


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = written(tmp_path)
    header, _ = read(path)
    assert header == {
        "run": "run", "incarnation": "1", "fingerprint": "fp", "init": THETA.digest, "bins": 3, "nodes": ["aggregator", "t0"],
        "level": "full", "blobs": True, "layout": {"names": ["theta"], "shapes": [list(THETA.shape)], "dtype": THETA.dtype}, "schema": 2,
    }  # fmt: skip
    first, second, third = steps(path)
    assert (first["seq"], first["node"], first["now"], first["event"]) == (0, "aggregator", 0, {"kind": "started"})
    assert first["effects"][0]["msg"]["payload"]["tensors"] == {"theta": {"blob": THETA.digest}}
    assert (second["seq"], second["node"], second["event"]["src"]) == (1, "t0", "aggregator")
    assert (third["seq"], third["released"]) == (2, [[9, 5, "t0", 1]])


@pytest.mark.parametrize(("schema", "said"), [(b'"schema":1', "schema 1"), (b'"skema":2', "schema None")])
def test_a_journal_of_another_version_is_refused_with_a_remedy(schema: bytes, said: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(changed(path.read_bytes(), b'"schema":2', schema))
    with pytest.raises(CorruptJournal, match=rf"^sim-1.jsonl has {said}, and this version reads 2; read it with the version that wrote it"):
        read(path)


def test_a_line_is_there_as_soon_as_it_is_written_unless_it_may_be_buffered(tmp_path: Path) -> None:
    """For real a kill may come at any time; in a simulation nobody else looks."""
    journal = Journal(tmp_path / "j.jsonl", HEADER, None, buffered=False)
    journal.append("aggregator", 0, Started(), [], [])
    assert len(steps(tmp_path / "j.jsonl")) == 1
    journal.close()


def test_the_chain_is_over_the_bytes_of_the_steps(tmp_path: Path) -> None:
    chain = b""
    for line in written(tmp_path).read_bytes().splitlines()[1:]:
        row = orjson.loads(line)
        chain = blake2b(chain + orjson.dumps(row["step"]), digest_size=8).digest()
        assert row["chain"] == chain.hex()


def test_a_torn_last_line_is_dropped_wherever_it_is_torn(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    last = whole[:-1].rindex(b"\n") + 1
    for cut in range(last, len(whole)):
        path.write_bytes(whole[:cut])
        assert [step["seq"] for step in steps(path)] == [0, 1]


def changed(line: bytes, old: bytes, new: bytes) -> bytes:
    assert old in line
    return line.replace(old, new, 1)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda lines: [lines[0], changed(lines[1], b'"now":0', b'"now":1'), *lines[2:]], "sim-1.jsonl, line 2: the hash chain breaks"),
        (lambda lines: [lines[0], *lines[2:]], "line 2: the hash chain breaks here; the file was changed or lines are lost"),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], "line 2: the hash chain breaks"),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], "line 3: the hash chain breaks"),
        (lambda lines: [*lines[:3], changed(lines[3], b'"chain":"', b'"chain":"0')], "line 4: the hash chain breaks"),
        (lambda lines: [*lines[:2], lines[2][:40] + b"\n", lines[3]], r"line 3: not a step \("),
        (lambda lines: [*lines[:2], b"\n", *lines[2:]], r"line 3: not a step \("),
        (lambda lines: [*lines[:2], b"[1]\n", *lines[2:]], r"line 3: not a step \("),
        (lambda lines: [*lines[:2], b'{"step":{}}\n', *lines[2:]], r"line 3: not a step \('chain'\)"),
    ],
)
def test_a_changed_file_is_said_to_be_with_its_line(damage: Callable[[list[bytes]], list[bytes]], says: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(CorruptJournal, match=says):
        steps(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]\n", b"7\n", b'{"step":{}}\n'])
def test_a_file_without_a_header_is_no_journal(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(CorruptJournal, match=r"x\.jsonl has no header"):
        read(tmp_path / "x.jsonl")


def test_only_what_can_be_read_back_is_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl", HEADER, None, buffered=True)
    with pytest.raises(TypeError) as refused:
        journal.append("t0", 0, Started(), [], [Emit(object())])
    assert str(refused.value.__cause__) == "a journal can't hold a object"
    with pytest.raises(TypeError):
        dump({1, 2})


def test_a_disk_that_refuses_is_not_overlooked(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl", HEADER, None, buffered=False)
    journal.close()
    with pytest.raises(ValueError, match="closed file"):
        journal.append("t0", 0, Started(), [], [])
    assert journal.seq == 0


def test_no_journal_counts_steps_and_keeps_nothing() -> None:
    journal = Blank()
    journal.append("t0", 0, Started(), [], [])
    journal.append("t0", 1, Started(), [], [])
    journal.close()
    assert journal.seq == 2


class TestBlobs:
    """Tensors once each, by digest."""

    def test_a_tensor_comes_back(self, tmp_path: Path) -> None:
        blobs = Blobs(tmp_path)
        for value in (THETA, tensor(np.ones((2, 3), np.float32)), tensor(np.array(7)), Tensor("bool", (2,), b"\x00\x01")):
            assert Blobs(tmp_path).get(blobs.put(value)) == value

    def test_it_is_written_once(self, tmp_path: Path) -> None:
        Blobs(tmp_path).put(THETA)
        (file,) = tmp_path.rglob("*.npy")
        before = file.stat().st_mtime_ns
        blobs = Blobs(tmp_path)
        assert blobs.put(THETA) == blobs.put(THETA) == THETA.digest
        assert file.stat().st_mtime_ns == before
        assert [each for each in tmp_path.rglob("*") if each.is_file()] == [file]  # nothing is left beside it

    def test_a_journal_hands_its_tensors_to_them(self, tmp_path: Path) -> None:
        written(tmp_path, Blobs(tmp_path / "blobs"))
        assert Blobs(tmp_path / "blobs").get(THETA.digest) == THETA

    def test_without_blobs_the_journal_is_the_same(self, tmp_path: Path) -> None:
        with_blobs = written(tmp_path / "a", Blobs(tmp_path / "blobs")).read_bytes()
        assert written(tmp_path / "b").read_bytes() == with_blobs

    def test_one_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=THETA.digest):
            Blobs(tmp_path).get(THETA.digest)

    def test_one_that_holds_code_is_refused(self, tmp_path: Path) -> None:
        blobs = Blobs(tmp_path)
        blobs.put(THETA)
        (file,) = tmp_path.rglob("*.npy")
        np.save(file, np.array([Path("x")]), allow_pickle=True)
        with pytest.raises(ValueError, match="allow_pickle=False"):
            blobs.get(THETA.digest)

    def test_one_that_was_changed_is_named(self, tmp_path: Path) -> None:
        blobs = Blobs(tmp_path)
        blobs.put(THETA)
        (file,) = tmp_path.rglob("*.npy")
        np.save(file, np.array([1.0, 3.0]))
        with pytest.raises(ValueError, match=f"blob {THETA.digest} holds .*: the file was changed"):
            blobs.get(THETA.digest)
