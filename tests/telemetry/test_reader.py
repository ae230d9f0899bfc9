"""Telemetry comes back as it was written; what can't be read is named."""

from pathlib import Path

import orjson
import polars as pl
import pytest

from flame.core.progress import Progress
from flame.telemetry import reader
from flame.telemetry.columns import KINDS
from flame.telemetry.reader import COMPACTED, Telemetry, TelemetryError, compact
from flame.telemetry.records import Contributor, Fault, Level, Record, Resource, RunEnd, Spread, StepTiming, TaskSend
from flame.telemetry.writer import Writer
from tests.parity.fixtures import condition, write_run


def write(run: Path, *records: Record, process: str = "a", level: Level = "full") -> Path:
    """A file of one process under `run`; returns its telemetry folder."""
    writer = Writer(run / "telemetry" / f"{process}.jsonl", "r", "1", "wall", level)
    for number, record in enumerate(records):
        writer.write(process, number, None, record)
    writer.close()
    return run / "telemetry"


SEND = TaskSend(3, "t1", 40)


def test_a_record_comes_back_with_its_envelope(tmp_path: Path) -> None:
    frame = Telemetry(write(tmp_path, SEND)).frame("task_send")
    assert frame.row(0, named=True) == {
        "id": 3, "trainer": "t1", "stamp_ns": 40, "_node": "a", "_incarnation": "1", "_seq": 0, "_clock": "wall",
        "_t_ns": 0, "_stamp_ns": None,
    }  # fmt: skip


def test_nested_parts_come_back(tmp_path: Path) -> None:
    path = write(tmp_path, Resource("h", Spread(1.0, 2.0, 3.0, 4), None), StepTiming("loop", 0.5, {"hits": 7}))
    telemetry = Telemetry(path)
    assert telemetry.frame("resource")["cpu_percent"][0] == {"min": 1.0, "mean": 2.0, "max": 3.0, "n": 4}
    assert telemetry.frame("resource")["rss_bytes"][0] is None
    counts = telemetry.frame("step_timing")["counts"]
    assert counts.str.json_path_match("$.hits").cast(int).to_list() == [7]


def test_a_cohort_comes_back(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    cohort = run.telemetry.frame("agg_round")["cohort"][0].to_list()
    assert Contributor(**cohort[0]) == Contributor("t0", 1, 0, 1_000_000_000, 0, 1.0)


def test_processes_are_read_together(tmp_path: Path) -> None:
    write(tmp_path, SEND, process="a")
    frame = Telemetry(write(tmp_path, SEND, SEND, process="b")).frame("task_send")
    assert frame["_node"].to_list() == ["a", "b", "b"]


def test_a_kind_that_was_never_written_is_an_empty_frame(tmp_path: Path) -> None:
    frame = Telemetry(write(tmp_path, SEND)).frame("agg_eval")
    assert frame.height == 0
    assert "accuracy" in frame.columns
    assert Telemetry(tmp_path / "telemetry").kinds() == ["task_send"]


def test_a_field_that_is_absent_is_null(tmp_path: Path) -> None:
    path = write(tmp_path, SEND, RunEnd(Progress(), "COMPLETED", "", 1, 0, 0))
    file = path / "a.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"stamp_ns":40,', b"").replace(b'"at":', b'"was":'))
    telemetry = Telemetry(path)
    assert telemetry.frame("task_send")["stamp_ns"].to_list() == [None]
    assert telemetry.frame("run_end")["cycle"].to_list() == [None]


def test_rows_are_packed_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "CHUNK_BYTES", 500)
    frame = Telemetry(write(tmp_path, *[TaskSend(number, "t", 0) for number in range(10)])).frame("task_send")
    assert frame["id"].to_list() == list(range(10))


def test_several_kinds_are_read_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = Telemetry(write(tmp_path, SEND, Fault("x", "n", "d")))
    telemetry.load("task_send", "fault")
    monkeypatch.setattr(Telemetry, "_lines", None)
    assert telemetry.frame("fault").height == telemetry.frame("task_send").height == 1


@pytest.mark.parametrize("torn", [1, 5, 60])
def test_a_torn_last_line_is_dropped(tmp_path: Path, torn: int) -> None:
    path = write(tmp_path, SEND, SEND)
    file = path / "a.jsonl"
    file.write_bytes(file.read_bytes()[: -torn - 1])
    telemetry = Telemetry(path)
    assert telemetry.frame("task_send").height == 1
    assert telemetry.torn == {"a.jsonl"}


def test_a_last_line_that_lacks_only_its_newline_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, SEND, SEND)
    file = path / "a.jsonl"
    file.write_bytes(file.read_bytes()[:-1])
    assert Telemetry(path).frame("task_send").height == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"v":1,"rec\n', "line 2 is corrupt"),
        (b'{"v":1,"record":{"id":1,{"v":1}\n', "line 2 is corrupt"),
        (b"[1,2]\n", "not a telemetry line"),
        (b'{"v":1,"record":3}\n', "not a telemetry line"),
        (b'{"v":2,"record":{"kind":"task_send"}}\n', "schema version `2`, this reader knows `1`"),
        (b'{"v":1,"record":{"kind":"task_sent"}}\n', "unknown record kind `task_sent`"),
        (b"\n", "line 2 is corrupt"),
        (b"\xff\xfe\x00\n", "line 2 is corrupt"),
    ],
)
def test_any_other_line_that_cant_be_read_is_named(tmp_path: Path, line: bytes, reason: str) -> None:
    path = write(tmp_path, SEND)
    with (path / "a.jsonl").open("ab") as stream:
        stream.write(line)
        stream.write((path / "a.jsonl").read_bytes())
    with pytest.raises(TelemetryError, match=r"a\.jsonl` line 2") as caught:
        Telemetry(path).frame("task_send")
    assert reason in str(caught.value)


def test_a_value_of_a_wrong_type_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, SEND)
    (path / "a.jsonl").write_bytes((path / "a.jsonl").read_bytes().replace(b'"id":3', b'"id":"three"'))
    with pytest.raises(TelemetryError, match="line 1 is corrupt: record `task_send` has a value of a wrong type: cannot parse 'three'"):
        Telemetry(path).frame("task_send")


def test_no_telemetry_is_an_error_and_an_empty_file_is_none(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="no telemetry"):
        Telemetry(tmp_path / "telemetry")
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry" / "a.jsonl").touch()
    assert Telemetry(tmp_path / "telemetry").frame("agg_round").height == 0


def test_compaction_keeps_every_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path, condition(), "real")
    lines = {kind: run.telemetry.frame(kind) for kind in KINDS}
    compact(run.path)
    monkeypatch.setattr(Telemetry, "_lines", None)
    packed = Telemetry(run.path / "telemetry")
    for kind, frame in lines.items():
        assert packed.frame(kind).equals(frame)


def test_a_compaction_of_other_lines_is_not_used(tmp_path: Path) -> None:
    path = write(tmp_path, SEND)
    compact(tmp_path)
    write(tmp_path, SEND)
    assert Telemetry(path).frame("task_send").height == 2


def test_a_compaction_that_was_cut_short_is_not_used(tmp_path: Path) -> None:
    path = write(tmp_path, SEND)
    folder = compact(tmp_path)
    pl.DataFrame({"id": [9]}).write_parquet(folder / "task_send.parquet")
    (folder / "manifest.json").unlink()
    assert Telemetry(path).frame("task_send")["id"].to_list() == [3]


def test_a_compaction_stands_without_the_lines(tmp_path: Path) -> None:
    path = write(tmp_path, SEND)
    compact(tmp_path)
    (path / "a.jsonl").unlink()
    assert Telemetry(path).frame("task_send").height == 1


def test_a_compaction_of_an_older_schema_has_nulls_where_fields_were_added(tmp_path: Path) -> None:
    path = write(tmp_path, SEND)
    folder = compact(tmp_path)
    pl.read_parquet(folder / "task_send.parquet").drop("stamp_ns").write_parquet(folder / "task_send.parquet")
    (folder / "fault.parquet").unlink()
    assert Telemetry(path).frame("task_send")["stamp_ns"].to_list() == [None]
    assert Telemetry(path).frame("fault").height == 0


def test_the_manifest_says_of_which_files_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, SEND)
    manifest = orjson.loads((compact(tmp_path) / "manifest.json").read_bytes())
    assert manifest == {"v": 1, "bytes": {"a.jsonl": (path / "a.jsonl").stat().st_size}}
    assert (path / COMPACTED / "task_send.parquet").is_file()
