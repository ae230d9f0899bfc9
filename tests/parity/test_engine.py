"""The engine: what makes a verdict, who is to blame, and what may be compared at all."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.progress import Progress
from flame.telemetry.reader import TelemetryError
from flame.telemetry.records import Intrusion
from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import Options, RefusedError, Report, check, pair_of
from parity.evidence import Pair, Window
from parity.ladder import Ladder
from parity.rung import DIAG, DIST, EXACT, INV, LOGICAL, PHYSICAL, Finding, Measure, Rung, failed, measured, passed, rung
from parity.rungs import LADDER
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import condition, fidelity, write_pair, write_run

Judge = Callable[..., Report]
HOLDS = passed()


def made(id: str, finding: Finding | Exception = HOLDS, *, upstream: tuple[str, ...] = (), **declared: object) -> Rung:
    """A rung that finds what it is told to."""

    def find(pair: Pair, window: Window) -> Finding:
        """Find it."""
        if isinstance(finding, Exception):
            raise finding
        return finding

    options: dict[str, object] = {"name": id.lower(), "stage": 0, "tier": INV, "domain": LOGICAL} | declared
    return rung(id=id, upstream=upstream, **options)(find)  # type: ignore[arg-type]


def shift(effect: float, p: float, *, critical: float = 0.1) -> Measure:
    return Measure("KS", effect, 0.2, 50, critical, p, 1e-4, 60)


def run(pair: RunPair, *rungs: Rung, **options: object) -> Report:
    return check(pair, Ladder(rungs), Options(**options))  # type: ignore[arg-type]


# ---- verdicts


def test_a_need_that_is_absent_is_a_skip_that_names_it(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).forget("agg_eval", "loss")
    report = judge(good)
    assert report.of("C2").verdict == "SKIP"
    assert report.of("C2").reason == "sim has no `agg_eval.loss`"
    assert report.of("TC1").verdict == "FAIL"


def test_a_kind_that_is_absent_is_named_too(good: RunPair, judge: Judge) -> None:
    Edit(good.real).drop("comm")
    assert judge(good).of("Cm").reason == "real has no `comm.message_bytes`: no comm record"


def test_a_level_that_lacks_a_record_is_named(tmp_path: Path, judge: Judge) -> None:
    report = judge(write_pair(tmp_path, condition(), level="summary"))
    assert report.of("R1").reason == "real has telemetry level `summary`, `dispatch.id` is of level `full`"
    assert report.of("TC1").verdict == "PASS"
    assert report.of("L1").verdict == "PASS"
    assert report.exit_code == 0


def test_a_need_of_one_side_is_asked_of_that_side(good: RunPair) -> None:
    report = run(
        good, made("A", needs=["real:lateness.late_s"]), made("B", needs=["sim:lateness.late_s"]), made("C", needs=["verdict.sim_rate"])
    )
    assert [result.verdict for result in report.results] == ["PASS", "SKIP", "PASS"]


def test_a_run_without_a_verdict_skips_what_reads_it_and_says_so(good: RunPair, judge: Judge) -> None:
    (good.sim.path / "verdict.json").unlink()
    report = judge(good)
    assert report.of("K5").reason == "sim has no `verdict.verdict`"
    assert report.of("Sp").verdict == "SKIP"
    assert "sim has no verdict" in report.notes[0]
    assert report.of("L1").verdict == "PASS"


def test_a_rung_that_raises_is_an_error_and_blocks_what_rests_on_it(good: RunPair) -> None:
    report = run(good, made("A", ValueError("boom")), made("B", upstream=("A",)), made("C"))
    assert report.of("A").verdict == "ERROR"
    assert "ValueError: boom" in report.of("A").reason
    assert report.of("B").verdict == "BLOCKED"
    assert report.of("B").reason == "by A"
    assert report.of("C").verdict == "PASS"
    assert report.exit_code == 2


def test_telemetry_that_cant_be_read_is_no_verdict(good: RunPair) -> None:
    with pytest.raises(TelemetryError):
        run(good, made("A", TelemetryError("line 3")))


def test_root_cause_and_downstream(good: RunPair) -> None:
    report = run(good, made("A", failed("a")), made("B", upstream=("A",)), made("C", failed("c"), upstream=("B",)), made("D", failed("d")))
    assert [result.role for result in report.results] == ["ROOT-CAUSE", None, "DOWNSTREAM", "ROOT-CAUSE"]
    assert report.of("C").by == ("A",)
    assert report.exit_code == 1


def test_an_upstream_that_is_not_built_is_skipped_over() -> None:
    ladder = Ladder([made("A"), made("D", upstream=("C",))], {"C": ("B",), "B": ("A",)})
    assert ladder.upstream("D") == ["A"]


@pytest.mark.parametrize(
    ("rungs", "reason"),
    [
        ([made("A"), made("A")], "same id"),
        ([made("A", upstream=("Z",))], "upstream `Z` is no rung"),
        ([made("A", upstream=("B",)), made("B", upstream=("A",))], "rest on each other: A -> B -> A"),
        ([made("A", upstream=("B",)), made("B")], "`A` is listed before `B`"),
    ],
)
def test_a_ladder_that_doesnt_hang_together_is_refused(rungs: list[Rung], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Ladder(rungs)


def test_the_ladder_stands_in_causal_order() -> None:
    assert LADDER.upstream("K1") == ["TC1", "K10"]
    assert {"P0", "I0", "K6", "U4", "R1", "S34", "P3", "K1"} <= set(LADDER.upstream("L1"))


# ---- tiers and options


def test_the_fidelity_tier_may_change_a_rungs_tier(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, fidelity(), noise=(1, 2))
    report = run(pair, made("A", failed("it"), tier=EXACT, fidelity=DIAG), made("B", failed("it"), tier=EXACT))
    assert [(result.tier, result.verdict) for result in report.results] == [("DIAG", "DIAG"), ("EXACT", "FAIL")]


def test_strict_enforces_diagnostics_with_an_opinion(good: RunPair) -> None:
    rungs = made("A", failed("over"), tier=DIAG), made("B", passed(), tier=DIAG), made("C", Finding(None, "42"), tier=DIAG)
    assert [result.verdict for result in run(good, *rungs).results] == ["DIAG", "DIAG", "DIAG"]
    report = run(good, *rungs, strict=True)
    assert [result.verdict for result in report.results] == ["FAIL", "PASS", "DIAG"]
    assert report.exit_code == 1


def test_lenient_only_warns_where_a_statistic_judges(good: RunPair, tmp_path: Path) -> None:
    rungs = made("A", failed("slow"), tier=DIST, domain=PHYSICAL), made("B", failed("unequal"), tier=DIST)
    exact = run(good, *rungs, lenient=True)
    assert [result.warn for result in exact.results] == [True, False]
    assert exact.exit_code == 1
    loose = run(write_pair(tmp_path / "f", fidelity(), noise=(1, 2)), *rungs, lenient=True)
    assert [result.warn for result in loose.results] == [True, True]
    assert loose.exit_code == 0


def test_measures_are_judged_together(good: RunPair) -> None:
    over, near = shift(0.3, 0.002), shift(0.25, 0.009)
    alone = run(good, made("A", measured(over), tier=DIST))
    assert alone.of("A").verdict == "FAIL"
    assert alone.of("A").reason == "KS 0.300 > 0.20 (n=50, critical 0.100 at 0.01)"
    together = run(good, made("A", measured(over), tier=DIST), made("B", measured(near), tier=DIST))
    assert [result.verdict for result in together.results] == ["FAIL", "FAIL"]
    crowd = [made(f"C{number}", measured(shift(0.01, 0.9)), tier=DIST) for number in range(8)]
    crowded = run(good, made("A", measured(over), tier=DIST), *crowd)
    assert crowded.of("A").verdict == "SKIP"
    assert crowded.of("A").reason == "n=50, needs 60 to see 0.20 (KS 0.300)"
    assert crowded.of("C1").verdict == "PASS"


def test_the_worst_measure_gives_the_verdict(good: RunPair) -> None:
    fine, unseen, over = shift(0.01, 0.9), shift(0.01, 0.9, critical=0.5), shift(0.9, 0.0001)
    for measures, verdict in (((fine, unseen), "SKIP"), ((fine, unseen, over), "FAIL"), ((fine, fine), "PASS")):
        assert run(good, made("A", measured(*measures), tier=DIST)).of("A").verdict == verdict


# ---- what may be compared


def test_other_fingerprints_are_refused_and_the_difference_is_named(tmp_path: Path, judge: Judge) -> None:
    pair = RunPair(write_run(tmp_path, condition(), "real"), write_run(tmp_path, condition(seed=2), "sim"))
    with pytest.raises(RefusedError, match="fingerprints differ") as caught:
        judge(pair)
    assert "`seed` real 1 sim 2" in str(caught.value)
    assert "hint: --force" in str(caught.value)
    assert judge(pair, force=True).notes[0].startswith("FORCED: fingerprints differ")


def test_two_runs_of_one_world_are_refused(tmp_path: Path, judge: Judge) -> None:
    pair = RunPair(write_run(tmp_path / "a", condition(), "sim"), write_run(tmp_path / "b", condition(), "sim"))
    with pytest.raises(RefusedError, match="stands for real and is a sim run"):
        judge(pair)
    assert judge(pair, force=True).of("L1").verdict == "PASS"


def test_a_directory_whose_name_lies_is_refused(good: RunPair, judge: Judge) -> None:
    lying = good.sim.path.rename(good.sim.path.with_name("20260101T101500Z_quick_fwdllm_n9_s1_sim"))
    with pytest.raises(RefusedError, match="says n `9`"):
        judge(RunPair(good.real, RunDir(lying)))


def test_worlds_give_the_roles(good: RunPair) -> None:
    assert pair_of(good.sim, good.real).real is good.real
    assert pair_of(good.real, good.sim).real is good.real


def test_a_torn_last_line_is_noted(good: RunPair, judge: Judge) -> None:
    file = good.real.path / "telemetry" / "w0-1.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    assert judge(good).notes == ["real: torn last line dropped in w0-1.jsonl"]


# ---- the window


def test_the_window_is_what_both_completed(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).drop("agg_round", lambda record: record["at"]["cycle"] >= 7)
    Edit(good.sim).verdict(verdict="CRASH")
    window = judge(good).window
    assert (window.cycles, window.bins, window.last) == (7, 2, (0, 1))
    assert str(window) == "bins 0-1, 7 cycles"


def test_an_intrusion_cuts_the_window(good: RunPair, judge: Judge) -> None:
    Edit(good.real).add(
        Intrusion(Progress(cycle=8), "lost `t3`: killed", []), lambda record: cycle_is(7)(record) and record["kind"] == "agg_round"
    )
    Edit(good.real).set("agg_round", cycle_is(9), model="other")
    report = judge(good)
    assert str(report.window) == "bins 0-2, 8 cycles; cut at cycle 8 by an intrusion in real: lost `t3`: killed"
    assert report.of("L1").verdict == "PASS"
    assert report.of("L1").finding.n == 8


def test_max_bin_cuts_the_window(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).set("agg_round", cycle_is(9), model="other")
    assert judge(good).of("L1").verdict == "FAIL"
    report = judge(good, max_bin=0)
    assert str(report.window) == "bin 0, 3 cycles"
    assert report.of("L1").verdict == "PASS"
    assert judge(good, max_bin=99).window.bins == 4


def test_an_empty_window_blocks_and_is_no_success(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).drop("agg_round")
    report = judge(good)
    assert report.of("L1").verdict == report.of("V1").verdict == "BLOCKED"
    assert report.of("L1").reason == "empty window: no cycle was closed in both runs"
    assert report.exit_code == 2


def test_cycles_without_a_completed_bin_block_only_what_needs_bins(good: RunPair, judge: Judge) -> None:
    for side in (good.real, good.sim):
        Edit(side).set("agg_round", committed=False, reason="keep")
    report = judge(good)
    assert report.of("V1").reason == "empty window: no bin was completed in both runs"
    assert report.of("L1").verdict == "PASS"
    assert str(report.window) == "no completed bin, 12 cycles"


def test_empty_telemetry_is_an_empty_window(good: RunPair, judge: Judge) -> None:
    for file in (good.sim.path / "telemetry").glob("*.jsonl"):
        file.write_bytes(b"")
    assert judge(good).exit_code == 2
