"""Updates: what is illegal, what diverges, what is dropped, and who is judged how."""

from dataclasses import replace
from math import inf, nan

import pytest

from flame.core.events import ComputeFailed, Received, StopAsked, TimerFired
from flame.core.machine import IllegalEvent
from flame.core.messages import End, Payload, Update
from flame.core.time import SECOND
from flame.roles.inbox import FAULT, JOIN, STOP
from flame.telemetry.records import Accepted, AggRound, Fault, Intrusion, RunEnd, Selection
from tests.stage import Stage, condition, numbers


def started(**changes: object) -> Stage:
    stage = Stage(condition(**changes))
    stage.start()
    return stage


class TestIllegal:
    """Each says who, in which state, and what came."""

    def test_a_message_that_is_no_update(self) -> None:
        with pytest.raises(
            IllegalEvent, match=r"^aggregator \(running, round 0, bin 0, iteration 0, version 0, 3 in flight\) got Received.*End"
        ):
            started().step(Received("t0", End("enough")))

    def test_an_event_of_no_known_kind(self) -> None:
        with pytest.raises(IllegalEvent, match="got kettle"):
            started().step("kettle")  # type: ignore[arg-type]

    @pytest.mark.parametrize("field", ["version", "data_id", "iteration", "stamp"])
    def test_an_echo_that_is_not_the_row(self, field: str) -> None:
        stage = started()
        good = stage.update(1).msg
        assert isinstance(good, Update)
        bad = replace(good, **{field: getattr(good, field) + 1})
        with pytest.raises(IllegalEvent, match=r"update 1 of `t0`, which echoes .* but \(0, 0, 0, 1000000000\) was asked for"):
            stage.step(Received("t0", bad))

    @pytest.mark.parametrize(
        ("kind", "tensors", "why"),
        [
            ("dense", {}, r"is of `dense` with \[\], where `dense` with \['delta'\] was asked for"),
            ("dense", {"theta": numbers(1, 1)}, r"is .* with \['theta'\], where"),
            ("dense", {"delta": numbers(1, 1), "u": numbers(1, 1)}, r"is .* with \['delta', 'u'\], where"),
            ("seeds", {"delta": numbers(1, 1)}, r"is of `seeds` with"),
            ("dense", {"delta": numbers(1)}, r"brings .* for a theta of float64\[2\]"),
            ("dense", {"delta": numbers(1, 1, 1)}, r"brings .* for a theta of float64\[2\]"),
        ],
    )  # fmt: skip
    def test_an_upload_that_is_not_what_was_asked_for(self, kind: str, tensors: dict[str, object], why: str) -> None:
        """A vector of one number would be added to all of theta, silently."""
        stage = started()
        good = stage.update(1).msg
        assert isinstance(good, Update)
        with pytest.raises(IllegalEvent, match=f"update 1 of `t0`, which {why}"):
            stage.step(Received("t0", replace(good, payload=Payload(kind, tensors))))  # type: ignore[arg-type]
        assert stage.machine.accepts == 0


class TestDropped:
    """What no row waits for is counted as a fault, and changes nothing."""

    def test_a_second_answer_before_the_release(self) -> None:
        stage = started()
        stage.answer(2, at=0.5)
        assert stage.answer(2, at=0.6).records(Fault) == [Fault("dropped", "t1", "update 2: nothing waits for it, or it came before")]

    def test_a_second_answer_after_the_release(self) -> None:
        stage = started()
        stage.answer(1)
        assert len(stage.answer(1).effects) == 1
        assert stage.machine.accepts == 1

    def test_an_answer_from_another_trainer(self) -> None:
        stage = started()
        msg = stage.update(1).msg
        heard = stage.step(Received("t1", msg))
        assert heard.records(Fault) == [Fault("dropped", "t1", "update 1: nothing waits for it, or it came before")]
        assert stage.machine.accepts == 0

    def test_an_answer_to_nothing(self) -> None:
        stage = started()
        msg = stage.update(1).msg
        assert isinstance(msg, Update)
        assert [fault.detail for fault in stage.step(Received("t0", replace(msg, id=99))).records(Fault)] == [
            "update 99: nothing waits for it, or it came before"
        ]

    def test_a_timer_that_nobody_set(self) -> None:
        heard = started().step(TimerFired((SECOND, JOIN, "t0", 0)))
        assert [fault.what for fault in heard.records(Fault)] == ["dropped"]

    def test_after_the_end_nothing_changes_any_more(self) -> None:
        stage = started(stop={"cycles": 1})
        stage.answer(1)
        assert stage.answer(2).stop is not None
        assert stage.answer(3).effects == []
        assert stage.machine.released == []
        assert stage.step(StopAsked("again")).effects == []


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
class TestDiverged:
    """A non-finite number ends the run, and names who brought it."""

    @pytest.mark.parametrize("value", [nan, inf, -inf])
    def test_a_non_finite_update_names_its_trainer(self, value: float) -> None:
        stage = started()
        heard = stage.answer(1, 0.0, value)
        assert heard.stop is not None
        assert heard.stop.verdict == "DIVERGED"
        assert heard.stop.reason == "`t0` sent a non-finite update (assign 1, round 0, bin 0, iteration 0, version 0)"
        assert stage.machine.accepts == 0
        assert heard.records(RunEnd)[0].verdict == "DIVERGED"

    def test_a_model_that_overflows_names_the_cohort(self) -> None:
        stage = started(server_opt={"type": "sgd", "lr": 1e10})
        stage.answer(1, 1e300, 0.0)
        heard = stage.answer(2, 1e300, 0.0)
        assert heard.stop is not None
        assert heard.stop.reason == "theta is not finite after the cohort t0, t1 (round 0, bin 0, iteration 0, version 0)"
        assert heard.assigns == {}
        assert heard.evaluations == []
        assert len(heard.records(AggRound)) == 1  # the close that did it is on record

    def test_an_aggregate_that_overflows_is_named_first(self) -> None:
        stage = started()
        stage.answer(1, 1.7e308, 0.0)
        heard = stage.answer(2, 1.7e308, 0.0)
        assert heard.stop is not None
        assert heard.stop.reason.startswith("G is not finite after the cohort t0, t1")


class TestStarved:
    """A run that can't advance finds it out by itself, and says why, trainer by trainer."""

    def test_the_table_says_what_holds_each_trainer(self) -> None:
        stage = started(trainers=4, goal=3, concurrency=3, population={"joins": {"t3": 50.0}, "leaves": {"t2": 2.5, "t1": 2.6}})
        stage.answer(1)
        stage.answer(2)
        stage.timer(2.5, FAULT, "t2")
        stage.timer(2.6, FAULT, "t1")
        heard = stage.timer(50.0, JOIN, "t3")
        assert heard.stop is None
        heard = stage.step(stage.update(4), 54.0)
        assert len(heard.records(AggRound)) == 1
        stage.step(stage.update(5), 55.0)
        heard = stage.step(stage.update(6), 58.0)
        assert heard.stop is not None
        assert heard.stop.verdict == "STARVED"
        assert heard.stop.reason.splitlines() == [
            "nothing is in flight and nobody can be chosen",
            "  cycle 1 (round 0, bin 1, iteration 0, version 1) has 2 of 3 accepts",
            "  t1: is gone",
            "  t2: is gone",
            "  t0: update 5 is taken, and waits for the close",
            "  t3: update 6 is taken, and waits for the close",
        ]

    def test_a_budget_is_no_reason_to_go_on(self) -> None:
        stage = started(goal=3, population={"leaves": {"t0": 0.5}}, stop={"runtime_s": 1000})
        stage.timer(0.5, FAULT, "t0")
        stage.answer(2)
        heard = stage.answer(3)
        assert heard.stop is not None
        assert heard.stop.verdict == "STARVED"

    def test_too_many_releases_without_a_close(self) -> None:
        delays = {"values": [1, 1, 1.5]}
        late = {"joins": {"t3": 9.0}}
        stage = started(loop="sync", staleness="exact", trainers=4, delays=delays, limits={"max_rejects": 2}, population=late)
        for number in (1, 2, 3):  # a close, then one that is refused
            assert stage.answer(number).stop is None
        heard = stage.answer(4)
        assert heard.stop is not None
        lines = heard.stop.reason.splitlines()
        assert lines[0] == "no cycle has closed for 2 releases"
        assert lines[2] == "  t3: has not joined"

    def test_a_close_starts_the_count_anew(self) -> None:
        stage = started(goal=2, limits={"max_rejects": 3})
        for number in (1, 2, 3):
            assert stage.answer(number).stop is None
        assert stage.machine.cycle.progress.cycle == 1
        assert stage.answer(4).stop is None  # the second of this cycle closes it


class TestStalenessAndSlots:
    """Synchronous, C > K: what a closed cycle leaves open is judged when it is released."""

    SYNC = {"loop": "sync", "goal": 2, "concurrency": 3, "trainers": 4, "delays": {"values": [1, 2, 2.5]}}

    def straggler(self, staleness: str) -> tuple[Stage, list[Accepted]]:
        stage = started(**self.SYNC, staleness=staleness, commit=[{"type": "cap", "max": 2}])
        stage.answer(1)
        stage.answer(2)
        heard = stage.answer(3)
        return stage, heard.records(Accepted)

    def test_the_cohort_is_c_and_the_close_frees_only_its_own(self) -> None:
        stage = started(**self.SYNC)
        stage.answer(1)
        heard = stage.answer(2)
        assert set(heard.assigns) == {"t0", "t1"}  # t2 is out, and not asked again
        assert stage.machine.roster.in_flight == 3
        assert heard.records(Selection)[0].in_flight == 1

    def test_exact_rejects_the_straggler_and_frees_its_node(self) -> None:
        stage, (judged,) = self.straggler("exact")
        assert (judged.accepted, judged.reason, judged.rate) == (False, "iteration 0 is not the current 1", None)
        assert judged.interval_ns == (0, 2_500_000_000)
        assert (stage.machine.accepts, stage.machine.rejects) == (2, 1)
        assert "t2" in stage.machine.roster.free
        assert stage.machine.roster.in_flight == 2  # the cycle has dispatched what it may

    def test_same_bin_takes_the_straggler_into_the_open_cycle(self) -> None:
        stage, (judged,) = self.straggler("same_bin")
        assert (judged.accepted, judged.staleness) == (True, 0)
        heard = stage.answer(4)  # with t0's the cycle is full: the pool has four uploads, and the cap commits
        (close,) = heard.records(AggRound)
        assert [member.trainer for member in close.cohort] == ["t2", "t0"]
        assert (close.pool, close.reason) == (4, "cap")

    def test_same_bin_rejects_what_is_of_an_earlier_version(self) -> None:
        stage = started(**self.SYNC, staleness="same_bin")
        stage.answer(1)
        stage.answer(2)
        (judged,) = stage.answer(3).records(Accepted)
        assert (judged.accepted, judged.reason, judged.staleness) == (False, "version 0 is not the current 1", 1)

    def test_accept_takes_it_with_its_staleness(self) -> None:
        stage = started(**self.SYNC, staleness="accept")
        stage.answer(1)
        stage.answer(2)
        (judged,) = stage.answer(3).records(Accepted)
        assert (judged.accepted, judged.staleness, judged.rate) == (True, 1, 1.0)


class TestIntrusions:
    """What is outside the closed world is said, and ends the run where it must."""

    def test_a_stop_that_is_asked_for(self) -> None:
        stage = started()
        heard = stage.step(StopAsked("Ctrl-C"))
        assert [intrusion.what for intrusion in heard.records(Intrusion)] == ["Ctrl-C"]
        assert heard.stop is not None
        assert (heard.stop.verdict, heard.stop.reason) == ("INTERRUPTED", "Ctrl-C")

    def test_a_stop_brings_its_own_verdict_even_before_ready(self) -> None:
        heard = Stage(condition()).step(StopAsked("nobody came", "CRASH"))
        assert heard.stop is not None
        assert heard.stop.verdict == "CRASH"

    def test_an_evaluation_that_fails_twice(self) -> None:
        stage = started(eval={"every": 1})
        stage.answer(1)
        stage.answer(2)
        heard = stage.step(ComputeFailed(1, "MemoryError: full"))
        assert heard.stop is not None
        assert (heard.stop.verdict, heard.stop.reason) == ("CRASH", "aggregator: evaluation of version 1 failed twice: MemoryError: full")

    def test_the_ranks_of_own_rows_are_not_confused(self) -> None:
        stage = started(stop={"runtime_s": 5.0})
        assert stage.step(TimerFired((5 * SECOND + 1, STOP, "t0", 0))).records(Fault) != []


class TestGradAware:
    """The align gate in a run: what it lowers, what is on record, and that G has it."""

    def run(self) -> tuple[Stage, list[Accepted], AggRound]:
        stage = started(goal=3, rate={"type": "grad_aware", "base": "fedbuff"}, commit=[{"type": "n_eff", "n": 0.001}])
        first = stage.answer(1, 4.0, 0.0).records(Accepted)
        second = stage.answer(2, -3.0, 0.0).records(Accepted)
        heard = stage.answer(3, 3.0, 4.0)
        return stage, [*first, *second, *heard.records(Accepted)], heard.records(AggRound)[0]

    def test_the_rates_and_their_parts_are_on_record(self) -> None:
        _, judged, _ = self.run()
        assert [each.rate for each in judged] == [1.0, 0.0, 1.0]
        assert [each.gated for each in judged] == [False, True, False]
        base = {"base": 1.0, "staleness": 1.0}
        assert judged[0].parts == base | {"align": 1.0}
        assert judged[1].parts == base | {"align": 0.0, "cos": -1.0}
        assert judged[2].parts == base | {"align": 1.0, "cos": pytest.approx(0.6)}

    def test_the_close_counts_the_gated_and_moves_by_what_was_weighed(self) -> None:
        stage, _, close = self.run()
        assert (close.gated, close.reason) == (1, "n_eff")
        assert stage.theta == (-(4 + 3) / 3, -4 / 3)

    def test_the_close_has_n_eff(self) -> None:
        """Mean square (16 + 9 + 25) / 6; A = (4, 0), B = (0, 2): V = 20 / 4."""
        _, _, close = self.run()
        assert close.n_eff == pytest.approx(2 * (50 / 6) / 5)

    def test_each_cycle_is_gated_by_itself(self) -> None:
        stage = started(goal=1, concurrency=2, rate="grad_aware")
        stage.answer(1, 1.0, 0.0)
        (judged,) = stage.answer(3, -1.0, 0.0).records(Accepted)
        assert (judged.gated, judged.at.cycle) == (False, 1)


def test_what_was_refused_has_no_parts() -> None:
    stage = started(goal=1, concurrency=2, staleness="same_bin", rate="fedbuff")
    assert stage.answer(1).records(Accepted)[0].parts == {"staleness": 1.0}
    stage.answer(3)
    (judged,) = stage.answer(2).records(Accepted)
    assert (judged.accepted, judged.rate, judged.parts, judged.gated) == (False, None, None, False)


def test_a_commit_elsewhere_asks_for_no_n_eff() -> None:
    stage = started(goal=2)
    stage.answer(1)
    (close,) = stage.answer(2).records(AggRound)
    assert (close.n_eff, close.gated) == (None, 0)


@pytest.mark.parametrize(("unit", "ages"), [("version", [0, 0, 0]), ("cycle", [0, 0, 2]), ("stamp", [1.0, 1.0, 2.0])])
def test_inside_a_bin_the_version_stands_still_and_the_other_units_do_not(unit: str, ages: list[float]) -> None:
    """Two closes without a commit; the third release was asked for at the very start."""
    stage = started(goal=1, concurrency=2, trainers=2, staleness_unit=unit, rate="fedbuff", commit=[{"type": "cap", "max": 9}])
    heard = [stage.answer(number) for number in (1, 3, 2)]
    judged = [each.records(Accepted)[0] for each in heard]
    assert [each.staleness for each in judged] == ages
    assert [each.rate for each in judged] == pytest.approx([(1 + s) ** -0.5 for s in ages])
    assert [each.records(AggRound)[0].cohort[0].staleness for each in heard] == ages


def test_an_update_that_is_refused_has_its_age_in_the_same_unit() -> None:
    stage = started(goal=1, concurrency=2, trainers=2, staleness_unit="stamp", staleness="same_bin")
    for number in (1, 3):
        stage.answer(number)
    (judged,) = stage.answer(2).records(Accepted)
    assert (judged.accepted, judged.staleness) == (False, 2.0)


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 0.01 * 1.5**0.5),
        ({"perturb": {"type": "mean_of", "probes": 4}}, 0.01 * 6**0.5),
        ({"perturb": {"type": "best_of", "probes": 10}}, 0.01 * (3 * 3.799621 / 2) ** 0.5),
        ({"estimator": "backprop"}, 0.01 * 3**0.5),
    ],
)
def test_the_step_is_told_how_much_was_looked_at(changes: dict[str, object], share: float) -> None:
    """n = 3 uploads that are worth w = 1, 4, 3.8 and all p = 2 directions: rho is capped to 0.01 sqrt(nw/p), theta's floor is 1."""
    stage = started(goal=3, server_opt={"type": "trust_ratio", "rho": 0.5, "cap": 0.01}, **changes)
    for assign in (1, 2, 3):
        stage.answer(assign)
    assert stage.theta == pytest.approx((-share / 2**0.5, -share / 2**0.5), rel=1e-6)
