"""The rules of the inbox, each shown to hold and shown to be needed.

A pair is one random condition run in the simulated and in the real world. With all the rules every
pair is equal; with any one of them dropped some pair is caught: it differs, gets stuck, or sends a
node work while it has an open row. `python -m tests.determinism.inbox_worlds` prints the counts.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest

from .inbox_machine import Aggregator
from .inbox_model import (
    Awareness,
    Condition,
    Held,
    Inbox,
    Name,
    Progress,
    Rank,
    Row,
    Rules,
    Staleness,
)
from .inbox_worlds import ALL, REAL, ROUGH, Arm, random_condition, run, run_pairs, without

PAIRS = 120
FEWER = 30  # enough for the rules that bite often

# Where each rule is seen to bite: the arm, the number of pairs, and what it is caught by.
NEEDED = {
    "stop_is_a_row": (Arm.ASYNC, FEWER, "unequal"),
    "fault_is_a_row": (Arm.SYNC, FEWER, "unequal"),
    "join_is_a_row": (Arm.GATED, FEWER, "unequal"),
    "eval_is_a_row": (Arm.ASYNC, FEWER, "unequal"),
    "timer_is_a_row": (Arm.SYNC, FEWER, "unequal"),
    "update_is_a_row": (Arm.GATED, FEWER, "unequal"),
    "ties_go_by_key": (Arm.ASYNC, FEWER, "unequal"),
    "one_release_one_decision": (Arm.SYNC, FEWER, "unequal"),
    "keyed_by_assign": (Arm.GATED, FEWER, "unequal"),
    "belief_is_pure": (Arm.ASYNC, FEWER, "unequal"),
    "wake_is_set": (Arm.SYNC, FEWER, "stuck"),
    "stamped_by_cause": (Arm.GATED, FEWER, "unequal"),
    "judged_at_release": (Arm.SYNC, FEWER, "unequal"),
    "owed_is_busy": (Arm.ASYNC, FEWER, "second"),
    "never_is_refused": (Arm.ASYNC, PAIRS, "stuck"),
    "sampled_at_start": (Arm.ASYNC, FEWER, "unequal"),
    "goal_is_clamped": (Arm.ASYNC, FEWER, "stuck"),
    "lost_is_replaced": (Arm.SYNC, FEWER, "stuck"),
    "commit_is_capped": (Arm.GATED, FEWER, "stuck"),
    "open_is_resent": (Arm.SYNC, FEWER, "stuck"),
    "late_is_not_silent": (Arm.GATED, FEWER, "unequal"),
}


# Pairs.


@pytest.mark.parametrize("arm", Arm)
def test_with_all_rules_both_worlds_do_the_same(arm: Arm) -> None:
    tally = run_pairs(arm, PAIRS)
    assert (tally.reordered, tally.unequal, tally.stuck, tally.second) == (0, 0, 0, 0)


@pytest.mark.parametrize("rule", NEEDED)
def test_without_the_rule_some_pair_is_caught(rule: str) -> None:
    arm, pairs, by = NEEDED[rule]
    tally = run_pairs(arm, pairs, without(rule))
    assert getattr(tally, by) > 0, tally


def test_every_rule_is_shown_to_be_needed() -> None:
    assert list(NEEDED) == [field.name for field in fields(Rules)]


@pytest.mark.parametrize("arm", Arm)
class TestLoss:
    """Silence and lateness: links that lose 5 % of the updates, or only delay them."""

    lossy = replace(ROUGH, loss=0.05)

    def test_what_is_lost_and_never_resent_blocks_the_run(self, arm: Arm) -> None:
        tally = run_pairs(arm, FEWER, without("open_is_resent"), self.lossy)
        assert tally.stuck > 0

    def test_what_is_resent_until_answered_changes_nothing(self, arm: Arm) -> None:
        tally = run_pairs(arm, FEWER, ALL, self.lossy)
        assert not tally.caught, tally

    def test_a_grace_counted_from_due_evicts_live_updates(self, arm: Arm) -> None:
        tally = run_pairs(arm, FEWER, without("late_is_not_silent"), ROUGH)
        assert tally.unequal > 0
        assert tally.voided > run_pairs(arm, FEWER, ALL, ROUGH).voided


# What holds in every run. These would be vacuous if the conditions didn't reach it.


@cache
def runs(arm: Arm, rules: Rules = ALL) -> list[Aggregator]:
    return [run(random_condition(arm, seed), rules, REAL) for seed in range(FEWER)]


def found(machine: Aggregator, what: str) -> list[Any]:
    """The first detail of each such line of the log."""
    return [line.details[0] for line in machine.log if line.what == what]


@pytest.mark.parametrize("arm", Arm)
def test_the_conditions_reach_what_the_rules_speak_of(arm: Arm) -> None:
    machines = runs(arm)
    for what in ("accepted", "closed", "abandoned", "voided"):
        assert any(found(machine, what) for machine in machines)
    assert any(found(machine, "rejected") for machine in machines) == (arm is Arm.SYNC)
    assert {row.rank for machine in machines for row in found(machine, "released")} == set(Rank)
    assert {machine.stopped for machine in machines} == {"goal", "converged", "budget"}
    reasons = {Arm.ASYNC: {"goal"}, Arm.SYNC: {"goal", "natural", "cap"}, Arm.GATED: {"natural", "cap"}}
    assert {reason for machine in machines for reason in found(machine, "committed")} == reasons[arm]
    assert any(machine.inbox.strays for machine in machines)


@pytest.mark.parametrize("arm", Arm)
def test_a_slot_and_a_row_end_exactly_once(arm: Arm) -> None:
    for machine in runs(arm):
        check_ledger(machine)


def check_ledger(machine: Aggregator) -> None:
    """Follow each assign through the log; `remove` raises where something ends twice."""
    condition, cycle = machine.condition, 0
    rows, slots, accepted = set[int](), set[int](), set[int]()
    for line in machine.log:
        match line.what, *line.details:
            case "dispatched", assign:
                rows.add(assign.id)
                slots.add(assign.id)
                assert len(slots) <= condition.sample("C", condition.concurrencies, cycle)
            case "abandoned", number:
                slots.remove(number)
            case "accepted", assign, _:
                rows.remove(assign.id)
                accepted.add(assign.id)
            case "rejected", assign:
                rows.remove(assign.id)
                slots.discard(assign.id)
            case "voided", number:
                rows.remove(number)
                slots.discard(number)
            case "closed", cycle, cohort:
                for number, _ in cohort:
                    accepted.remove(number)
                    slots.discard(number)


@pytest.mark.parametrize("arm", Arm)
def test_the_frontier_never_goes_back(arm: Arm) -> None:
    for machine in runs(arm):
        stamps = [row.stamp for row in found(machine, "released")]
        assert stamps == sorted(stamps)
        assert [line.frontier for line in machine.log] == sorted(line.frontier for line in machine.log)


def test_nothing_beyond_the_budget_is_released() -> None:
    for machine in runs(Arm.SYNC):
        budget = machine.condition.budget
        late = [line.what for line in machine.log if budget is not None and line.frontier > budget]
        assert late in ([], ["released", "stopped"])


def test_what_is_dispatched_while_an_eval_blocks_is_stamped_behind_it() -> None:
    for machine in (m for m in runs(Arm.ASYNC) if m.condition.eval_blocks):
        for row in (row for row in found(machine, "released") if row.rank is Rank.EVAL):
            sent_on = [a for a in found(machine, "dispatched") if a.at.version >= row.id]
            assert all(assign.stamp >= row.stamp for assign in sent_on)


def test_a_surplus_arises_only_from_several_releases_in_one_decision() -> None:
    assert not any(machine.counts["carried"] for machine in runs(Arm.ASYNC))
    drained = runs(Arm.ASYNC, without("one_release_one_decision"))
    assert any(machine.counts["carried"] for machine in drained)


# The parts.


def test_the_inbox_waits_for_the_least_row_and_releases_in_key_order() -> None:
    inbox = Inbox(ALL)
    rows = [Row(7, rank, "", 0) for rank in Rank if rank not in (Rank.TIMER, Rank.UPDATE)]
    rows += [Row(7, Rank.TIMER, "", 9), Row(7, Rank.TIMER, "", 10)]
    rows += [Row(7, Rank.UPDATE, "t1", 8), Row(7, Rank.UPDATE, "t2", 5), Row(8, Rank.STOP, "", 1)]
    for row in rows:
        inbox.expect(row)
    for row in reversed(rows):
        assert inbox.release() is None
        inbox.arrive(row.name, Held(None, None))
    assert [inbox.release() for _ in rows] == [(row, Held(None, None)) for row in rows]


def test_the_inbox_takes_an_arrival_once_and_drops_what_it_does_not_expect() -> None:
    inbox, row = Inbox(ALL), Row(7, Rank.UPDATE, "t1", 8)
    inbox.expect(row)
    for number in (8, 8, 9):
        inbox.arrive(Name(Rank.UPDATE, "t1", number), Held(None, None))
    assert (list(inbox.arrived), inbox.strays) == ([row.name], 2)


def test_only_a_commit_moves_the_bin_and_the_version() -> None:
    last = Progress(round=0, data_id=3, iteration=0, version=3)
    assert last.kept() == Progress(0, 3, 1, 3)
    assert last.kept().committed(bins=4) == Progress(1, 0, 0, 4)


@pytest.mark.parametrize(
    ("policy", "same", "next_iteration", "next_version"),
    [
        (Staleness.EXACT, 0, None, None),
        (Staleness.SAME_BIN, 0, 0, None),
        (Staleness.ACCEPT, 0, 0, 1),
    ],
)
def test_a_straggler_is_judged_by_the_policy(policy: Staleness, same: int, next_iteration: int | None, next_version: int | None) -> None:
    done = Progress()
    nows = (done, done.kept(), done.committed(bins=4))
    assert [policy.judge(done, now) for now in nows] == [same, next_iteration, next_version]


def condition(**changes: Any) -> Condition:
    """One always available trainer `a`, K = C = 1; the changes make it interesting."""
    plain: dict[str, Any] = {
        "start": ("a",),
        "delay": {"a": 500},
        "trace": {"a": ()},
        "joins": {},
        "faults": {},
        "awareness": Awareness.NOTIFIED,
        "goals": (1, 1),
        "concurrencies": (1, 1),
        "abandon": None,
        "budget": 20_000,
    }
    return replace(random_condition(Arm.ASYNC, 0), **(plain | changes))


def test_a_goal_that_concurrency_can_never_fill_is_refused() -> None:
    with pytest.raises(ValueError, match="exceeds C or N"):
        condition(goals=(4, 4), concurrencies=(3, 3))


@pytest.mark.parametrize(("budget", "accepted"), [(499, 0), (500, 1)])
def test_what_meets_the_budget_to_the_tick_still_counts(budget: int, accepted: int) -> None:
    machine = run(condition(budget=budget))
    assert (machine.stopped, machine.counts["accepted"]) == ("budget", accepted)


def test_a_nearer_change_of_belief_moves_the_wake() -> None:
    trace = {"a": (), "b": (0, 5000), "c": (100, 1000)}
    machine = run(
        condition(
            start=("a", "b"),
            delay=dict.fromkeys(trace, 500),
            trace=trace,
            joins={"c": 600},
            concurrencies=(3, 3),
        )
    )
    wakes = [row.stamp for row in found(machine, "released") if row.rank is Rank.TIMER]
    assert wakes == [1000, 5000]


def test_a_machine_that_cannot_advance_says_why_for_each_trainer() -> None:
    gone = condition(
        trace={"a": (300,), "b": ()},
        delay={"a": 500, "b": 500},
        start=("a", "b"),
        faults={"b": 100},
    )
    machine = run(gone)
    assert (machine.stopped, machine.frontier) == ("cannot advance", 300)
    assert machine.why_not() == {"a": "away for good", "b": "not present"}
