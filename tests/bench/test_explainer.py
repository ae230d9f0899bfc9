"""The study's own reading of two journals, on steps made by hand."""

from pathlib import Path
from typing import Any

import orjson

from bench.explainer import first_step, forge

HEADER = b'{"header":{"nodes":["aggregator"]}}\n'


def step(seq: int, released: list[list[Any]], kind: str = "timer_fired", **event: Any) -> dict[str, Any]:
    return {"seq": seq, "node": "aggregator", "now": seq, "event": {"kind": kind, **event}, "released": released, "effects": []}


def update(seq: int, key: list[Any], blob: str = "ab") -> dict[str, Any]:
    return step(seq, [key], "received", src=key[2], msg={"id": key[3], "payload": {"blob": blob}})


def run(folder: Path, name: str, *steps: dict[str, Any]) -> Path:
    path = folder / name / "journal" / "aggregator-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(HEADER + b"".join(orjson.dumps({"step": each, "chain": ""}) + b"\n" for each in steps))
    return folder / name


def test_the_first_step_that_differs_is_read_in_the_first_run(tmp_path: Path) -> None:
    one, two, late = [5, 5, "t0", 1], [7, 5, "t1", 2], [9, 5, "t1", 2]
    plain = run(tmp_path, "plain", update(3, one), update(4, two))
    assert first_step(plain, run(tmp_path, "same", update(8, one), update(9, two)), stamps=True) is None
    later = run(tmp_path, "later", update(3, one), update(6, late))
    assert first_step(later, plain, stamps=True) == 6
    assert first_step(later, plain, stamps=False) is None
    assert first_step(run(tmp_path, "other", update(3, one, "cd"), update(4, two)), plain, stamps=True) == 3
    assert first_step(run(tmp_path, "lost", update(3, one), step(5, [], "stop_asked")), plain, stamps=False) == 5
    assert first_step(run(tmp_path, "short", update(3, one)), plain, stamps=False) == 3


def test_a_difference_that_is_not_of_the_harmed_update_does_not_count(tmp_path: Path) -> None:
    one, two, three = [5, 5, "t0", 1], [7, 5, "t1", 2], [9, 5, "t2", 3]
    plain = run(tmp_path, "plain", update(3, one), update(4, two), update(5, three))
    swapped = run(tmp_path, "swapped", update(3, two), update(4, one), update(5, three))
    assert [first_step(swapped, plain, stamps=False, of=harmed) for harmed in (None, 1, 2, 3)] == [3, 3, None, None]


def test_a_forged_journal_is_chained_anew(tmp_path: Path) -> None:
    sends = step(3, []) | {"effects": [{"kind": "send", "msg": {"draw": 0}}]}
    path = run(tmp_path, "forged", step(2, []), sends)
    assert forge(path, 0) == 3
    lines = [orjson.loads(line) for line in (path / "journal" / "aggregator-1.jsonl").read_bytes().splitlines()[1:]]
    assert lines[1]["step"]["effects"][0]["msg"]["draw"] == 1
    assert len({line["chain"] for line in lines}) == 2
