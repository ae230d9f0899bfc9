"""A fork is its parent, bit for bit, up to its cycle; and what can't be forked is refused before anything is made."""

import re
from pathlib import Path
from typing import Any

import pytest

import flame
from flame.config import Condition
from flame.config.stops import LONG_S, Stall, StopRules
from flame.launch.run import Run
from flame.runtime.books.replay import replay
from flame.telemetry.rundir import Parent, RunDir

from .conftest import Flame

SHAPE: dict[str, Any] = {
    "trainers": 6, "goal": 3, "concurrency": 5, "loop": "async", "select": "async_oort", "perturb": {"type": "mean_of", "probes": 3},
    "commit": [{"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 3}], "server_opt": {"type": "momentum", "lr": 0.05},
    "delays": {"values": [0.15, 0.2, 0.3]}, "stop": {"cycles": 24}, "eval": {"rows": 64},
}  # fmt: skip

SAME = ("cycle", "cohort", "variance", "reason", "model", "state")


def closed(run: Run | RunDir) -> list[Any]:
    frame = run.frame("agg_round") if isinstance(run, Run) else run.telemetry.frame("agg_round")
    return frame.select(SAME).rows()


def simulated(runs: Path, **changes: Any) -> Run:
    return flame.run(Condition.model_validate(SHAPE | changes), runs=runs)


def fork_of(parent: Run, flame: Flame, *sets: str) -> StopRules:
    """What ends the fork at 8 with these."""
    done = flame("resume", str(parent.path), "--fork-at", "8", *(part for each in sets for part in ("--set", each)))
    assert "fork of" in done.stderr, done.output
    [fork] = [RunDir(path) for path in parent.path.parent.iterdir() if path != parent.path]
    return fork.condition.stop


@pytest.mark.parametrize(
    "change",
    [
        {"server_opt.lr": 0.5},
        {"server_opt": {"type": "sgd", "lr": 0.5}},
        {"commit": ["agg_goal"]},
        {"commit.variance.threshold": 5.0},
        {"rate": {"type": "grad_aware", "base": "fedbuff"}},
        {"select": "fedbuff"},
        {"staleness": "exact"},
        {"sizes": {"type": "var_tracking", "target": 2, "step": 1, "window": 1, "goal_min": 1, "goal_max": 4}},
        {"commit": [{"type": "n_eff", "n": 2.0}, {"type": "cap", "max": 2}]},
    ],
    ids=", ".join,
)
def test_up_to_the_cycle_it_is_the_run_without_the_change_and_then_it_is_not(change: dict[str, Any], tmp_path: Path) -> None:
    plain, changed = simulated(tmp_path), simulated(tmp_path, changes=[{"cycle": 8, "set": change}])
    assert closed(changed)[:8] == closed(plain)[:8]
    assert closed(changed)[8:] != closed(plain)[8:]
    assert not [node for node in replay(changed.path) if node.difference or node.skipped]


def test_a_change_that_is_taken_back_leaves_its_mark_and_the_numbers_of_before(tmp_path: Path) -> None:
    changes = [{"cycle": 5, "set": {"server_opt.lr": 0.9}}, {"cycle": 9, "set": {"server_opt.lr": 0.05}}]
    done = simulated(tmp_path, changes=changes)
    phases = Condition.model_validate(SHAPE | {"changes": changes}).phases
    assert [phases[cycle].server_opt.lr for cycle in (0, 5, 9)] == [0.05, 0.9, 0.05]  # type: ignore[union-attr]
    assert closed(done)[:5] == closed(simulated(tmp_path))[:5]


def test_the_numbers_of_momentum_change_and_its_sum_goes_on(tmp_path: Path) -> None:
    """beta to 0 forgets at once, as sgd does that takes its place; a beta that stays doesn't."""
    forgets = simulated(tmp_path, changes=[{"cycle": 8, "set": {"server_opt.beta": 0.0}}])
    replaced = simulated(tmp_path, changes=[{"cycle": 8, "set": {"server_opt": {"type": "sgd", "lr": 0.05}}}])
    assert closed(forgets) == closed(replaced)
    assert closed(simulated(tmp_path, changes=[{"cycle": 8, "set": {"server_opt.beta": 0.9}}])) == closed(simulated(tmp_path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([{"cycle": 3, "set": {"perturb": "single"}}], "`perturb` can't change in mid-run"),
        ([{"cycle": 3, "set": {}}], "`set` is empty"),
        ([{"cycle": 3, "set": {"rate": "felix"}}, {"cycle": 2, "set": {"rate": "felix"}}], "out of order"),
        ([{"cycle": 3, "set": {"server_opt.rl": 1}}], "what changes at cycle 3 can't be: unknown key `server_opt.rl`"),
        ([{"cycle": 3, "set": {"commit.plateau.eps": 1}}], "has no entry `plateau`"),
        ([{"cycle": 3, "set": {"commit": []}}], "`commit` is an empty list"),
    ],
)
def test_changes_that_can_not_be_are_refused(changes: Any, said: str) -> None:
    with pytest.raises(Exception, match=said):
        Condition.model_validate(SHAPE | {"changes": changes})


def test_trainers_who_take_the_steps_themselves_know_of_no_change() -> None:
    replayed = SHAPE | {"server_opt": {"type": "sgd", "lr": 0.1}, "payload": {"down": "replay", "up": "seeds"}}
    assert Condition.model_validate(replayed | {"changes": [{"cycle": 3, "set": {"rate": "felix"}}]}).changes
    with pytest.raises(ValueError, match=r"doesn't go with `payload\.down: replay`"):
        Condition.model_validate(replayed | {"changes": [{"cycle": 3, "set": {"server_opt.lr": 1.0}}]})


def test_the_command_forks_and_says_how_far_it_is_the_parent(flame: Flame, tmp_path: Path) -> None:
    parent = simulated(tmp_path / "runs")
    done = flame("resume", str(parent.path), "--fork-at", "8", "--set", "server_opt.lr=0.5", "--set", "stop.cycles=30")
    assert done.exit_code == 0, done.output
    said = re.search(r"the same bits up to cycle (\d+), the change is at 8", done.stderr.replace("\n", " "))
    assert said is not None
    assert int(said[1]) in (8, 9, 10), "the first commit with the new rate"
    [fork] = [RunDir(path) for path in (tmp_path / "runs").iterdir() if path != parent.path]
    assert fork.parent == Parent(parent.path.name, 8)
    assert RunDir(parent.path).parent is None
    assert fork.run_fp != RunDir(parent.path).run_fp
    assert len(closed(fork)) == 30
    assert closed(fork)[:8] == closed(parent)[:8]
    again = flame("resume", str(fork.path), "--fork-at", "20", "--set", "server_opt.lr=0.1")
    assert "the same bits up to cycle 2" in again.stderr.replace("\n", " "), again.output


def test_a_change_without_effect_is_said_so(flame: Flame, tmp_path: Path) -> None:
    parent = simulated(tmp_path / "runs")
    assert "nothing differs" in flame("resume", str(parent.path), "--fork-at", "8", "--set", "server_opt.lr=0.05").stderr


@pytest.mark.parametrize(
    ("cycles", "said"),
    [(28, "the same bits for 24 cycles; it goes on to 28"), (10, "the same bits for 10 cycles; its parent goes on to 24")],
)
def test_a_fork_with_another_end_alone_is_its_parent_as_far_as_both_go(cycles: int, said: str, flame: Flame, tmp_path: Path) -> None:
    parent = simulated(tmp_path / "runs")
    forked = flame("resume", str(parent.path), "--fork-at", "8", "--set", f"stop.cycles={cycles}")
    assert said in forked.stderr.replace("\n", " "), forked.stderr
    assert "nothing" not in forked.stderr


def test_what_an_end_of_the_fork_switches_off_goes_as_in_a_run(flame: Flame, tmp_path: Path) -> None:
    stop = {"cycles": 24, "stall": {"on": "either", "loss_min_rel_delta": 0.2, "min_delta": 0.03}}
    stall = fork_of(simulated(tmp_path / "runs", stop=stop), flame, "stop.stall.on=acc").stall
    assert stall == Stall(on="acc", min_delta=0.03)


def test_a_target_of_a_fork_brings_its_guard_and_its_ceiling(flame: Flame, tmp_path: Path) -> None:
    parent = simulated(tmp_path / "runs", stop={"cycles": 24, "wall_s": 3600})
    stop = fork_of(parent, flame, "stop.target.accuracy=1.0")
    assert (stop.stall, stop.wall_s) == (Stall(), LONG_S)


@pytest.mark.parametrize(
    ("before", "typed", "stall", "wall_s"),
    [
        ({"wall_s": 3600}, ["stop.target={accuracy: 1.0}", "stop.stall=null", "stop.wall_s=90"], None, 90),
        ({"stall": {"window_s": 9000}}, ["stop.target.accuracy=1.0"], Stall(window_s=9000), LONG_S),
        ({"target": {"accuracy": 1.0}, "stall": None, "wall_s": 80}, ["stop.target.window=2"], None, 80),
        ({"wall_s": 3600}, ["stop.cycles=20"], None, 3600),
    ],
    ids=["typed", "a guard of the parent", "a target of the parent", "no target"],
)
def test_what_was_said_of_guard_and_ceiling_stands(
    before: Any, typed: list[str], stall: Any, wall_s: Any, flame: Flame, tmp_path: Path
) -> None:  # fmt: skip
    stop = fork_of(simulated(tmp_path / "runs", stop={"cycles": 24} | before), flame, *typed)
    assert (stop.stall, stop.wall_s) == (stall, wall_s)


def test_a_fork_that_ends_just_behind_its_cycle_is_one(flame: Flame, tmp_path: Path) -> None:
    parent = simulated(tmp_path / "runs")
    assert flame("resume", str(parent.path), "--fork-at", "3", "--set", "stop.cycles=4").exit_code == 0
    assert flame("resume", str(parent.path), "--fork-at", "3", "--set", "stop.accepts=10").exit_code == 0


def test_a_fork_that_is_there_before_its_cycle_ends_badly(flame: Flame, tmp_path: Path) -> None:
    """Nobody knows beforehand when a target is reached."""
    parent = simulated(tmp_path / "runs")
    done = flame("resume", str(parent.path), "--fork-at", "20", "--set", "stop.target={accuracy: 0.01, window: 1}")
    assert done.exit_code == 1
    assert "before the change at 20: CONVERGED" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fork-at", "24", "--set", "server_opt.lr=1"), "has closed 24 cycles, and can't be forked at 24"),
        (("--fork-at", "0", "--set", "server_opt.lr=1"), "can't be forked at 0"),
        (("--fork-at", "3"), "a fork without a change is its parent"),
        (("--fork-at", "3", "--set", "trainers=7"), "`trainers` can't change in mid-run"),
        (("--fork-at", "3", "--set", "server_opt.lr"), "is not of the form"),
        (("--fork-at", "3", "--set", 'server_opt.lr="0.1"'), 'can\'t be: `server_opt.lr` is `"0.1"`'),
        (("--fork-at", "3", "--set", "server_opt.lr=high"), "hint: give a number"),
        (("--fork-at", "3", "--set", 'stop.cycles="30"'), '`stop.cycles` is `"30"` in `--set stop.cycles="30"`'),
        (("--fork-at", "3", "--set", "stop.cycles=1"), "at 3 would end before its change: `stop.cycles` is 1"),
        (("--fork-at", "3", "--set", "stop.cycles=3", "--set", "server_opt.lr=1"), "hint: give more than 3"),
        (("--fork-at", "9", "--set", "stop.commits=1"), "`stop.commits` is 1"),
        (("--fork-at", "9", "--set", "stop.accepts=20"), "`stop.accepts` is 20"),
        (("--fork-at", "9", "--set", "stop.runtime_s=0.5"), "`stop.runtime_s` is 0.5"),
        (("--set", "server_opt.lr=1"), "a run goes on with the condition that it has"),
    ],
)
def test_what_can_not_be_forked_is_refused_and_nothing_is_made(
    arguments: tuple[str, ...], said: str, flame: Flame, tmp_path: Path
) -> None:  # fmt: skip
    parent = simulated(tmp_path / "runs")
    refused = flame("resume", str(parent.path), *arguments)
    assert refused.exit_code == 2
    assert said in refused.stderr.replace("\n", " ")
    assert "hint:" in refused.stderr
    assert list((tmp_path / "runs").iterdir()) == [parent.path]


def test_what_is_no_run_can_not_be_forked(flame: Flame, tmp_path: Path) -> None:
    refused = flame("resume", str(tmp_path), "--fork-at", "3", "--set", "server_opt.lr=1")
    assert (refused.exit_code, "can't be forked" in refused.stderr) == (2, True)
