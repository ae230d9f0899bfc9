"""L1: the same trainers, in the same order, made the same model, cycle by cycle."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from parity.evidence import BY_RULES, Pair, Run, Window
from parity.exhibits import Rows, Sequences
from parity.measures.compare import mismatch, same, show, show_both
from parity.rung import DIAG, EXACT, LOGICAL, Finding, failed, passed, rung

Plain = dict[str, Any]

HELD = 256
"""Cycles whose rows are objects at a time."""

CADENCE = ("round", "data_id", "iteration", "model_version", "goal", "concurrency", "committed", "reason")
ASSIGN = ("id", "staleness", "rate")
STAMPS = ("dispatched_ns", "stamp_ns")

ASPECTS: dict[str, Callable[[Plain], object]] = {
    "set": lambda row: sorted(member["trainer"] for member in row["cohort"]),
    "order": lambda row: [member["trainer"] for member in row["cohort"]],
    "assigns": lambda row: {member["trainer"]: [member[name] for name in ASSIGN] for member in row["cohort"]},
    "stamps": lambda row: {member["trainer"]: [member[name] for name in STAMPS] for member in row["cohort"]} | {"": row["stamp_ns"]},
    "cadence": lambda row: [row[name] for name in CADENCE],
    "variance": lambda row: row["variance"],
    "model": lambda row: row["model"],
    "ledger": lambda row: row["state"],
}
"""What must be equal in a cycle, in the order in which a cycle goes wrong. A mapping is compared where both have the key."""

LOOKED_AT = ("cycle", "cohort", "stamp_ns", "variance", "model", "state", *CADENCE)
"""What the aspects are made of."""

IN_TIME = ("stamps", "ledger")
"""Aspects that are measured, or hang on what is, in the fidelity tier."""


@rung(
    id="L1",
    name="cohort_sequence",
    stage=6,
    tier=EXACT,
    domain=LOGICAL,
    needs=["agg_round.cohort", "agg_round.model", "agg_round.reason", "agg_round.stamp_ns"],
    upstream=["S2", "U5", "R1", "P0", "I0", "K6", "U4"],
    over="cycles",
    fidelity=DIAG,
    shown=True,
)
def cohort_sequence(pair: Pair, window: Window) -> Finding:
    """Cycle by cycle: the set, the order, the assigns and stamps, the cadence, the variance, the model digest.

    What it checks: each closed cycle of the window against the same cycle of the other run: who is in it, in
        which commit order, with which assign ids, staleness, rates and stamps; (round, data_id, iteration,
        version, K, C, committed, reason); V; the digests of the model and of the ledger after the close. When both
        runs ended by their own rules and nothing cut the window, they must have closed equally many, and for
        the same reason.
    Why: this is the claim of the exact tier. Equal digests mean that roles, codec, transport, processes and
        concurrency changed nothing.
    Reads: agg_round.
    Statistic: number of cycles that differ in any of these.
    Tolerance: 0. In the fidelity tier the rung is DIAG: it says where the two first parted, or that they
        did not; stamps are left out there, because they are measured.
    Known limits: it finds the place, not the cause. `flame replay` shows the node's state there.
    """
    aspects = [name for name in ASPECTS if pair.exact or name not in IN_TIME]
    real, sim = (window.in_cycles(run.rounds).unique("cycle", keep="last", maintain_order=True) for run in pair.runs)
    parted = {cycle: found for cycle, one, two in suspects(real, sim, window.cycles) if (found := parted_aspects(one, two, aspects))}
    finding = _differing_cycles(pair, window, real, sim, parted) if parted else _complete(pair, window)
    return replace(finding, exhibit=_exhibit(window, real, sim, parted))


def suspects(real: pl.DataFrame, sim: pl.DataFrame, cycles: int) -> Iterator[tuple[int, Plain | None, Plain | None]]:
    """The cycles whose rows aren't equal in all that an aspect looks at, with both rows, in order; a few hundred are held at a time."""
    one, two = (side.select(LOOKED_AT) for side in (real, sim))
    both = pl.DataFrame({"cycle": range(cycles)}, schema={"cycle": pl.Int64}).join(one, on="cycle", how="left", maintain_order="left")
    both = both.join(two, on="cycle", how="left", suffix="_sim", maintain_order="left")
    unlike = pl.any_horizontal(pl.col("cohort").is_null(), *(pl.col(name).ne_missing(pl.col(f"{name}_sim")) for name in LOOKED_AT[1:]))
    for cycle in _slices(both.filter(unlike)["cycle"].to_list()):
        here, there = (
            {row["cycle"]: row for row in side.filter(pl.col("cycle").is_in(cycle)).iter_rows(named=True)} for side in (one, two)
        )
        yield from ((number, here.get(number), there.get(number)) for number in cycle)


def _slices(cycles: list[int]) -> Iterator[list[int]]:
    yield from (cycles[start : start + HELD] for start in range(0, len(cycles), HELD))


def _row(side: pl.DataFrame, cycle: int) -> Plain | None:
    rows = side.filter(pl.col("cycle") == cycle).select(LOOKED_AT)
    return rows.row(0, named=True) if rows.height else None


def _differing_cycles(pair: Pair, window: Window, real: pl.DataFrame, sim: pl.DataFrame, parted: dict[int, list[str]]) -> Finding:
    first = min(parted)
    one, two = _row(real, first), _row(sim, first)
    reason = f"{mismatch(len(parted), window.cycles, 'cycles')}, first at {_place(first, one or two or {})}"
    detail = [*_told(one, two, parted[first]), _tally(parted, window.cycles), _hint(pair)]
    return failed(reason, effect=len(parted) / window.cycles, tol=0.0, n=window.cycles, detail=detail)


def _exhibit(window: Window, real: pl.DataFrame, sim: pl.DataFrame, parted: dict[int, list[str]]) -> Sequences:
    """The cohorts in commit order, and the cycles that differ in anything."""
    cycles = pl.DataFrame({"cycle": range(window.cycles)}, schema={"cycle": pl.Int64})
    places = Rows(cycles, lambda row: f"cycle {row['cycle']}")
    orders = pl.col("cohort").list.eval(pl.element().struct.field("trainer"))
    one, two = (
        Rows(cycles.join(side.select("cycle", orders), on="cycle", how="left", maintain_order="left"), lambda row: row["cohort"])
        for side in (real, sim)
    )
    return Sequences("cycles", places, one, two, [cycle in parted for cycle in range(window.cycles)])


def _complete(pair: Pair, window: Window) -> Finding:
    """All common cycles are equal; so must their number be, unless something outside ended a run."""
    closes = {run.side: run.rounds.height for run in pair.runs}
    by_rules = all(run.verdict is not None and run.verdict.verdict in BY_RULES for run in pair.runs)
    if by_rules and not window.limited and closes["real"] != closes["sim"]:
        reason = f"real closed {closes['real']} cycles, sim {closes['sim']}; the first {window.cycles} are equal"
        return failed(
            reason, effect=1.0, tol=0.0, n=max(closes.values()), detail=[*(f"{run.side}: {_end(run)}" for run in pair.runs), _hint(pair)]
        )
    if pair.exact and by_rules and not window.limited and _end(pair.real) != _end(pair.sim):
        detail = [f"{run.side}: {_end(run)}" for run in pair.runs]
        return failed("the cycles are equal, the ends are not", effect=1.0, tol=0.0, n=window.cycles, detail=detail)
    return passed(f"{window.cycles} cycles equal, model digests included", effect=0.0, tol=0.0, n=window.cycles)


def parted_aspects(real: Plain | None, sim: Plain | None, aspects: list[str]) -> list[str]:
    """The aspects in which a cycle differs. A wrong set is a wrong order too, and is named once."""
    if real is None or sim is None:
        return ["presence"]
    found = [name for name in aspects if _differs(ASPECTS[name](real), ASPECTS[name](sim))]
    return [name for name in found if name != "order" or "set" not in found]


def _differs(one: object, two: object) -> bool:
    if isinstance(one, dict) and isinstance(two, dict):
        return any(one[key] != two[key] for key in one.keys() & two.keys())
    return not same(one, two)


def _place(cycle: int, row: Plain) -> str:
    return f"cycle {cycle} (round {row.get('round')}, bin {row.get('data_id')}, iteration {row.get('iteration')})"


def _told(real: Plain | None, sim: Plain | None, aspects: list[str]) -> list[str]:
    """Both cohorts with their stamps, and what else differs in that cycle."""
    if real is None or sim is None:
        return [f"{'real' if real is None else 'sim'} has no record of that cycle"]
    one, two = show_both(ASPECTS["order"](real), ASPECTS["order"](sim))  # type: ignore[arg-type]
    lines = [f"real {one}   sim {two}   differs in: {', '.join(aspects)}", *_stamps(real, sim)]
    for name in ("variance", "model"):
        if name in aspects:
            lines.append(f"{name}: real {show(real[name])}   sim {show(sim[name])}")
    if "cadence" in aspects:
        lines += [f"{name}: real {show(real[name])}   sim {show(sim[name])}" for name in CADENCE if real[name] != sim[name]]
    if "assigns" in aspects:
        others = {member["trainer"]: member for member in sim["cohort"]}
        pairs = [(member, others[member["trainer"]]) for member in real["cohort"] if member["trainer"] in others]
        lines += [f"{one['trainer']}: {_differing(one, two)}" for one, two in pairs if _differing(one, two)][:3]
    return lines


def _differing(one: Plain, two: Plain) -> str:
    return ", ".join(f"{name} real {one[name]} sim {two[name]}" for name in ASSIGN if one[name] != two[name])


def _stamps(real: Plain, sim: Plain) -> list[str]:
    one, two = ([_seconds(member["stamp_ns"], 3) for member in row["cohort"]] for row in (real, sim))
    first, second = show_both(one, two)
    if one == two and real["stamp_ns"] == sim["stamp_ns"]:
        return [f"stamps {first[1:-1]}"]
    return [f"stamps: real {first} closed {_seconds(real['stamp_ns'], 6)}   sim {second} closed {_seconds(sim['stamp_ns'], 6)}"]


def _seconds(ns: int | None, digits: int) -> str:
    return "-" if ns is None else f"{ns / 1e9:.{digits}f}"


def _tally(parted: dict[int, list[str]], cycles: int) -> str:
    names = ["presence", *ASPECTS]
    counts = {name: sum(name in found for found in parted.values()) for name in names}
    return "over the window: " + ", ".join(f"{name} {count} of {cycles}" for name, count in counts.items() if count)


def _end(run: Run) -> str:
    verdict = run.verdict
    return f"{verdict.verdict} ({verdict.reason})" if verdict else "no verdict"


def _hint(pair: Pair) -> str:
    return f"hint: flame replay {pair.real.dir.path} --node aggregator"
