"""What one run must satisfy by itself, checked before any pair is compared (`flame check`, `flame parity --validate`).

Each law is a look at one run: what is wrong, and how many things were looked at. A law whose records
the run doesn't have (its level of telemetry is lower, or nothing of the kind happened) is not a pass,
it says that it had nothing to look at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import polars as pl

from flame.telemetry.columns import level
from flame.telemetry.reader import TelemetryError
from flame.telemetry.records import LEVELS
from flame.telemetry.rundir import RunDir
from parity.derived.sizes import over_concurrency, sizes_hold
from parity.evidence import AT_A_BOUND, BY_RULES, Run
from parity.invariants.answers import alternation, answers, lost, once, punctual
from parity.invariants.away import misbelieved, only_withheld
from parity.invariants.totals import counts, rolled_up
from parity.rungs.k1_sim_commit_monotone import falls
from parity.rungs.k5_failsafe import ceiling
from parity.rungs.k6_stamps import wrong_stamps
from parity.rungs.r1_residence import overlaps
from parity.rungs.tc1_field_coverage import coverage
from parity.rungs.u4_agg_goal_cycles import conservation
from parity.single import Look

GAP_S = 60.0
REACHED = 0.85


@dataclass(frozen=True, slots=True)
class Law:
    """One invariant. look: finds where it doesn't hold. kinds: records without which it can't look."""

    name: str
    says: str
    look: Callable[[Run], Look]
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ruling:
    """A law and what was found. holds: None where there was nothing to look at. broke: the law itself raised, and what."""

    law: Law
    look: Look
    broke: str | None = None

    @property
    def holds(self) -> bool | None:
        """True, False, or None for nothing to look at."""
        if self.look.faults:
            return False
        return True if self.look.n else None


def check_run(run: RunDir) -> list[Ruling]:
    """Every law's ruling on one run. Raises TelemetryError when it can't be read."""
    evidence = Run(run.world.kind, run)
    return [_ruling(law, evidence) for law in LAWS]


def _ruling(law: Law, run: Run) -> Ruling:
    if _unwritten(law, run.dir):
        return Ruling(law, Look(0))
    try:
        return Ruling(law, law.look(run))
    except TelemetryError:
        raise
    except Exception as error:  # the boundary: whatever a law raises is a verdict on the checker, or on fields that aren't there
        return Ruling(law, Look(0), f"{type(error).__name__}: {error}")


def _unwritten(law: Law, run: RunDir) -> bool:
    """Whether the run's level of telemetry leaves out what the law looks at."""
    return any(LEVELS.index(level(kind)) > LEVELS.index(run.world.level) for kind in law.kinds)


def used(run: RunDir) -> dict[str, list[str]]:
    """The policies, clocks and tiers that the run really used, as its telemetry has them."""
    telemetry = run.telemetry
    columns = {
        "clock": ("run_meta", "_clock"), "tier": ("run_meta", "tier"), "commit order": ("run_meta", "commit_order"),
        "pacing": ("run_meta", "pacing"), "device": ("run_meta", "device"), "code": ("run_meta", "code"),
        "select": ("selection", "policy"), "rate": ("agg_round", "rate_policy"), "commit": ("agg_round", "reason"),
        "K": ("agg_round", "goal"), "C": ("agg_round", "concurrency"), "threshold": ("agg_round", "threshold"),
        "payload": ("dispatch", "payload"), "judged": ("accepted", "reason"),
    }  # fmt: skip
    return {name: [str(value) for value in _distinct(telemetry.frame(kind)[column])] for name, (kind, column) in columns.items()}


def _distinct(column: pl.Series) -> list[object]:
    return column.drop_nulls().unique().sort().to_list()


def _ending(run: Run) -> Look:
    """A verdict by the machine's own rules, with a reason, the same in both places."""
    verdict, ends = run.verdict, run.frame("run_end")
    if verdict is None:
        return Look(1, ["it has no verdict: still going, or crashed"])
    faults = [] if verdict.verdict in BY_RULES else [f"it ended as {verdict.verdict}: {verdict.reason}"]
    faults += [] if verdict.reason else ["its verdict has no reason"]
    if ends.height != 1:
        faults.append(f"{ends.height} run_end records instead of one")
    elif ends["verdict"][0] != verdict.verdict:
        faults.append(f"run_end says {ends['verdict'][0]}, verdict.json {verdict.verdict}")
    return Look(1, faults)


def _closes(run: Run) -> Look:
    """At least two closed cycles, numbered without a gap, as many as the verdict says."""
    cycles = run.rounds["cycle"].to_list()
    faults = [] if len(cycles) >= 2 else [f"{len(cycles)} closed cycles"]
    faults += [f"cycle {cycle} is followed by {after}" for cycle, after in pairwise(cycles) if after != cycle + 1]
    if run.verdict is not None and run.verdict.cycles != len(cycles):
        faults.append(f"the verdict counts {run.verdict.cycles} cycles, the telemetry has {len(cycles)}")
    return Look(len(cycles), faults)


def _progress(run: Run) -> Look:
    """Ordinals advance as the algorithm says: a commit opens the next bin and version, a keep the next iteration."""
    rows = run.rounds.select("cycle", "data_id", "round", "iteration", "model_version", "committed").rows(named=True)
    faults = []
    for row, after in pairwise(rows):
        next_version = row["model_version"] + row["committed"]
        next_iteration = 0 if row["committed"] else row["iteration"] + 1
        if (after["model_version"], after["iteration"]) != (next_version, next_iteration):
            faults.append(f"cycle {after['cycle']} is version {after['model_version']}, iteration {after['iteration']}")
        if (row["round"], row["data_id"]) > (after["round"], after["data_id"]):
            faults.append(f"cycle {after['cycle']} goes back to round {after['round']}, bin {after['data_id']}")
    return Look(len(rows), faults)


def _staleness(run: Run) -> Look:
    rows = run.frame("accepted").select("id", "staleness").drop_nulls()
    return Look(rows.height, [f"id {key} has staleness {value}" for key, value in rows.filter(pl.col("staleness") < 0).iter_rows()])


def _concurrency(run: Run) -> Look:
    return Look(run.frame("dispatch").height, over_concurrency(run))


def _clock(run: Run) -> Look:
    """Neither the driver's clock nor the stamp of the releases falls."""
    faults: list[str] = []
    n = 0
    for kind, column in (("agg_round", "_t_ns"), ("agg_round", "stamp_ns"), ("accepted", "_t_ns"), ("accepted", "interval_ns")):
        frame = run.frame(kind).sort("_seq")
        values = frame[column].list.last() if column == "interval_ns" else frame[column]
        back = [f"{kind}.{column} fell from {one} to {two}" for one, two in pairwise(values.drop_nulls()) if two < one]
        n, faults = n + values.len(), [*faults, *back]
    return Look(n, faults)


def _budget(run: Run) -> Look:
    """A run that completed did what it was asked, or says why not."""
    verdict, stop = run.verdict, run.condition.stop
    if verdict is None or verdict.verdict not in AT_A_BOUND:
        return Look(0)
    budgets = {"cycles": stop.cycles, "commits": stop.commits, "accepts": stop.accepts, "virtual_s": stop.runtime_s}
    shares = [getattr(verdict, name) / budget for name, budget in budgets.items() if budget]
    short = max(shares) < REACHED and not verdict.reason
    return Look(1, [f"it reached {max(shares):.0%} of its budget and gives no reason"] if short else [])


def _gaps(run: Run) -> Look:
    """No silence of the wall clock between two closes."""
    walls = run.rounds["wall_s"].drop_nulls().to_list()
    gaps = [after - before for before, after in pairwise(walls)]
    limit = max(GAP_S, 20 * median(gaps)) if gaps else GAP_S
    return Look(len(gaps), [f"{gap:.1f} s of wall time before close {number + 1}" for number, gap in enumerate(gaps) if gap > limit])


def _evaluations(run: Run) -> Look:
    """Finite losses, accuracies in [0, 1]. A number that isn't finite is written as null."""
    rows = run.frame("agg_eval").select("version", "loss", "accuracy")
    faults = [
        f"version {version}: loss {loss}, accuracy {accuracy}"
        for version, loss, accuracy in rows.iter_rows()
        if loss is None or accuracy is None or not 0 <= accuracy <= 1
    ]
    return Look(rows.height, faults)


LAWS: tuple[Law, ...] = (
    Law("ending", "it ended by its own rules, and says why", _ending),
    Law("fields", "every field that its condition requires is there", coverage),
    Law("closes", "at least two closed cycles, without a gap in their numbers", _closes),
    Law("progress", "bin, iteration and version advance as the algorithm says", _progress),
    Law("clock", "neither clock nor stamps run backwards", _clock),
    Law("vclock", "the virtual clock never falls", falls),
    Law("stamps", "every stamp is the due of its assign, exactly", wrong_stamps, ("dispatch", "accepted")),
    Law("residence", "nobody is chosen while it has an open or a pending row", overlaps, ("dispatch", "accepted")),
    Law("belief", "nobody is chosen who is believed unavailable", misbelieved, ("dispatch",)),
    Law("withheld", "who is away counts only as withheld, at its next available instant", only_withheld, ("dispatch", "accepted")),
    Law("once", "no draw is dispatched twice, no assign answered or committed twice", once, ("dispatch", "task_send")),
    Law("sizes", "a cycle has one K and one C, which its condition allows", sizes_hold),
    Law("concurrency", "in flight never exceeds the C in force", _concurrency, ("dispatch",)),
    Law("conservation", "each cycle holds K, no update is lost or counted twice", conservation, ("dispatch", "accepted")),
    Law("alternation", "trainers receive and send in turn", alternation, ("task_recv", "task_send")),
    Law("punctual", "nothing is sent before it is due, nor 0.05 s after max(finished, due)", punctual, ("task_send",)),
    Law("answers", "no update is accepted that wasn't sent", answers, ("task_send", "accepted")),
    Law("lost", "no sent update is lost while a later one commits", lost, ("task_send", "dispatch")),
    Law("counts", "running totals are the sums of what was written", counts, ("accepted",)),
    Law("rolled_up", "rolled-up means and totals equal the flat ones, to 1e-9", rolled_up),
    Law("staleness", "no staleness is negative", _staleness, ("accepted",)),
    Law("evaluations", "losses are finite, accuracies in [0, 1]", _evaluations),
    Law("budget", "the budget was reached, or the stop is explained", _budget),
    Law("gaps", "the wall clock has no gap over max(60 s, 20 x median)", _gaps),
    Law("ceiling", "the wall ceiling was not hit", ceiling),
)
