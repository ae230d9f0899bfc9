"""Bytes by kind, redundant weights and measured phases, against the records."""

from collections import Counter
from collections.abc import Callable

import polars as pl
import pytest

from flame.analysis.learned import Learned
from flame.analysis.phases import phases
from flame.analysis.traffic import by_kind, redundancy, sent_weights
from flame.telemetry.reader import Telemetry
from flame.telemetry.rundir import RunDir
from tests.analysis.conftest import records


def test_bytes_by_kind_are_all_bytes(plain: Learned) -> None:
    sums: Counter[tuple[str, str]] = Counter()
    for each in records(plain.run.path, "comm"):
        sums[each["direction"], each["payload"]] += each["message_bytes"]
    table = by_kind(plain.run)
    assert {(row["direction"], row["payload"]): row["bytes"] for row in table.iter_rows(named=True)} == dict(sums)
    assert len(sums) == 3


@pytest.mark.parametrize(("down", "spares"), [("always_full", True), ("once_per_version", False)])
def test_weights_that_were_held_already(simulate: Callable[..., RunDir], down: str, spares: bool) -> None:
    run = simulate(payload={"down": down})
    sizes = {each["id"]: each["message_bytes"] for each in records(run.path, "comm") if each["direction"] == "down"}
    held: dict[str, int] = {}
    wasted, weights, total = 0, 0, 0
    for each in records(run.path, "dispatch"):
        if each["payload"] == "full":
            version = each["at"]["model_version"]
            weights, total = weights + 1, total + sizes[each["id"]]
            wasted += sizes[each["id"]] if held.get(each["trainer"]) == version else 0
            held[each["trainer"]] = version
    row = redundancy(run).row(0, named=True)
    assert (row["weights_sent"], row["bytes"], row["redundant_bytes"]) == (weights, total, wasted)
    assert (wasted > 0) == spares
    assert row["redundant_share"] == wasted / total
    assert sent_weights(run)["held"].sum() == row["held_already"]


def test_phases_are_sums_of_what_was_measured(plain: Learned) -> None:
    took = sorted(each["phases"]["compute"] for each in records(plain.run.path, "trainer_round"))
    (row,) = phases(plain.run).rows(named=True)
    assert (row["who"], row["phase"], row["n"], row["share"]) == ("trainer", "compute", len(took), 1.0)
    assert row["total_s"] == pytest.approx(sum(took))
    assert took[0] <= row["median_s"] <= row["p95_s"] <= took[-1]


def test_without_phases_the_coarse_ones_of_the_run_stand(simulate: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDir(simulate().path)
    whole = run.telemetry.frame

    def without(self: Telemetry, kind: str, *names: str) -> pl.DataFrame:
        frame = whole(kind, *names)
        return frame.with_columns(phases=pl.lit(None, pl.String())) if "phases" in frame.columns else frame

    monkeypatch.setattr(Telemetry, "frame", without)
    table = phases(run)
    assert set(table["who"]) == {"run"}
    assert dict(table.select("phase", "total_s").iter_rows()) == {
        each["function"]: each["duration_s"] for each in records(run.path, "step_timing")
    }
