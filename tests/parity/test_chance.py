"""What arrivals and drifting clocks make of runs of one law is no failure: rungs over pools, traces and stamps, in the fidelity tier."""

from pathlib import Path

import numpy as np
import pytest

from flame.telemetry.rundir import RunDir, RunPair
from parity.derived.presence import watched
from parity.engine import check
from parity.evidence import Pair, Run, window_of
from parity.ladder import Ladder
from parity.measures.pace import of_lead, of_span
from parity.rung import Finding
from parity.rungs import LADDER
from tests.parity.edits import Edit, Line
from tests.parity.fixtures import away, fidelity, write_pair

RUNGS = {rung.id: rung for rung in LADDER.rungs}
ARRIVING = {"commit_order": "arrival", "pacing": "relative"}


def judged(pair: RunPair, rung: str) -> tuple[str, Finding]:
    """Its verdict on the files as they are now."""
    ladder = Ladder([RUNGS[rung]], {other: () for other in RUNGS if other != rung})
    result = check(RunPair(RunDir(pair.real.path), RunDir(pair.sim.path)), ladder).of(rung)
    return result.verdict, result.finding


def read(pair: RunPair) -> Pair:
    """Both runs of it."""
    return Pair(Run("real", RunDir(pair.real.path)), Run("sim", RunDir(pair.sim.path)))


def lengthen(pair: RunPair, shares: np.ndarray) -> None:
    """Make each advance of the sim longer by a share of it; stamps alone."""

    def change(lines: list[Line]) -> list[Line]:
        before = after = 0
        for line in lines:
            record = line["record"]
            if record["kind"] == "agg_round":
                step, before = record["stamp_ns"] - before, record["stamp_ns"]
                after += round(step * (1 + shares[record["at"]["cycle"]]))
                record["stamp_ns"] = after
        return lines

    Edit(pair.sim).lines(change)


@pytest.mark.parametrize("rung", ["A4", "A4dur", "A5"])
def test_a_lead_that_chance_made_fails_no_state_and_a_pace_does(rung: str, tmp_path: Path) -> None:
    """Advances that differ by 60 % each, to either side, add up to a lead; a sim that is done before anybody has gone is another law."""
    n = 150
    signs = np.random.default_rng(4).choice([-0.6, 0.6], n)
    by_chance = write_pair(tmp_path / "chance", away(n, **ARRIVING))
    lengthen(by_chance, signs)
    assert judged(by_chance, rung)[0] != "FAIL"
    fast = write_pair(tmp_path / "fast", away(n, **ARRIVING))
    lengthen(fast, np.full(n, -0.998))
    assert judged(fast, rung)[0] == "FAIL"


def test_the_chance_of_a_lead_is_the_mean_lead_times_the_changes(tmp_path: Path) -> None:
    """A constant lead of each close against a sum by hand."""
    made = write_pair(tmp_path, away(40, **ARRIVING))
    lengthen(made, np.full(40, 0.5))
    pair = read(made)
    window = window_of(pair)
    held = list(watched(pair.real).values())
    measure = of_lead(pair, window, 0.3, 0.05, "lead", held)
    real, sim = (run.rounds["stamp_ns"].to_numpy() / 1e9 for run in pair.runs)
    end = max(real[-1], sim[-1])
    one_lap = [(trace, min(end * 1e9, trace.period or end * 1e9)) for trace in held]
    rate = 1e9 * sum(sum(0 < at < lap for at in trace.instants) for trace, lap in one_lap) / sum(lap for _, lap in one_lap)
    assert measure.samples is not None
    lead = abs(float(np.mean(measure.samples.real) - np.mean(measure.samples.sim)))
    assert lead == pytest.approx(float(np.abs(np.mean(real - sim))) * rate)
    assert measure.effect == 0.3


def test_a_span_is_held_against_the_pace(tmp_path: Path) -> None:
    made = write_pair(tmp_path, away(40, **ARRIVING))
    lengthen(made, np.full(40, 0.5))
    pair = read(made)
    measure = of_span(pair, window_of(pair), 0.1, 0.2, "share")
    assert (measure.effect, measure.n) == (0.1, 40)
    assert measure.p < 0.01


def test_choices_from_other_pools_are_not_enforced_and_from_one_pool_are(tmp_path: Path) -> None:
    """S1, everybody chosen: who was there differs in each second selection of the sim, and so does who was chosen."""
    pair = write_pair(tmp_path, fidelity(20, select="all"))
    assert judged(pair, "S1")[0] == "PASS"
    numbered = iter(range(1_000))

    def other_pool(record: Line) -> None:
        if next(numbered) % 2:
            record.update(chosen=["t0"], eligible_fp="0" * 16)

    Edit(pair.sim).each("selection", other_pool)
    verdict, finding = judged(pair, "S1")
    assert (verdict, finding.effect, finding.n) == ("PASS", 1.0, 20)
    Edit(pair.sim).set("selection", chosen=["t0"])
    assert judged(pair, "S1")[0] == "FAIL"
    Edit(pair.sim).set("selection", eligible_fp="0" * 16)
    assert judged(pair, "S1")[0] == "DIAG"


def test_sets_from_other_pools_are_not_enforced(tmp_path: Path) -> None:
    """P1, everybody chosen and waited for."""
    pair = write_pair(tmp_path, fidelity(20, select="all"))
    Edit(pair.sim).each("agg_round", lambda record: record["cohort"][0].update(trainer="t9"))
    assert judged(pair, "P1")[0] == "FAIL"
    Edit(pair.sim).set("selection", eligible_fp="0" * 16)
    assert judged(pair, "P1")[0] == "DIAG"


def test_an_update_that_is_released_after_its_trainer_left_is_no_fault_and_one_that_was_sent_then_is(tmp_path: Path) -> None:
    """A7 asks where the trainer was when the update was sent."""
    pair = write_pair(tmp_path, away(40, **ARRIVING))
    Edit(pair.sim).each("accepted", lambda record: record.update(interval_ns=[record["interval_ns"][0], 10**15]))
    assert judged(pair, "A7")[0] == "PASS"
    known = watched(read(pair).sim)
    gone = {
        node: next(at for at, state in zip(trace.instants, trace.states, strict=True) if state == "UN_AVL")
        for node, trace in known.items()
        if "UN_AVL" in trace.states
    }
    Edit(pair.sim).each("accepted", lambda record: record.update(due_ns=gone[record["trainer"]]), lambda record: record["trainer"] in gone)
    Edit(pair.sim).set("dispatch", up_ns=0)
    assert judged(pair, "A7")[0] == "FAIL"
