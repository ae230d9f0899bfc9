"""Who could be chosen at each selection, told again from the ledger and the traces.

The aggregator writes how many were eligible and a fingerprint of who; names would cost N a selection. They
follow from what else is written: eligible is who has joined, has no open row, wasn't retired, and is believed
available at the stamp of the selection. That the told pool is the one that was written is A7's affair; the
speed of those in it is A2b's.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flame.config.devices import profiles
from parity.derived.ledger import NEVER, ledger_of
from parity.derived.presence import available_at, traces_of
from parity.evidence import Run, Window

MOST = 5_000_000
"""Trainers times selections, beyond which nothing is told again: a cell each, and a number in A2b."""


@dataclass(frozen=True, slots=True)
class Pools:
    """The selections of a run, in order, and who was free at each, as the ledger has it.

    told: cycle, stamp_ns, and what was written (candidates, eligible, written: the fingerprint); size and fingerprint: of who was
    free, whatever the order. free: (selections, nodes).
    """

    told: pl.DataFrame
    nodes: list[str]
    free: NDArray[np.bool_]


def pools(run: Run, window: Window) -> Pools:
    """The selections of the common cycles; none where there are too many to tell."""
    known = run.derived(_pools)
    common = known.told["cycle"] < window.cycles
    return Pools(known.told.filter(common), known.nodes, known.free[common.to_numpy()])


def durations(run: Run) -> dict[str, float]:
    """Node -> modelled D in seconds. Raises ConfigError where its registry isn't here. For `run.derived`."""
    return {node: profile.delay_ns / 1e9 for node, profile in profiles(run.condition).items()}


def selections(run: Run, window: Window, *names: str) -> pl.DataFrame:
    """The selection records of the common cycles, in order: cycle, and these columns of them."""
    return window.in_cycles(run.frame("selection", "_seq", "cycle", *names)).sort("_seq").drop("_seq")


def _mark(node: str) -> int:
    return int.from_bytes(blake2b(node.encode(), digest_size=8).digest(), "big")


def _pools(run: Run) -> Pools:
    frame = run.frame("selection", "cycle", "_seq", "_stamp_ns", "candidates", "eligible", "eligible_fp").drop_nulls("cycle").sort("_seq")
    if frame.height * run.condition.trainers > MOST:
        frame = frame.clear()
    stamped = _stamped(run, frame)
    moves = _moves(run).partition_by("node", as_dict=True, maintain_order=True)
    nodes = list(dict.fromkeys([*run.condition.nodes, *(str(node) for (node,) in moves)]))
    told = stamped.select("cycle", "candidates", "eligible", stamp_ns=pl.col("at").cum_max(), written="eligible_fp")
    free = np.empty((told.height, len(nodes)), np.bool_)
    believed = {} if run.condition.awareness == "none" or run.condition.availability.trace == "syn_0" else run.derived(traces_of)
    for place, node in enumerate(nodes):
        at_first = node in run.condition.nodes and node not in run.condition.population.joins
        free[:, place] = _free(moves.get((node,)), stamped["_seq"].to_numpy(), at_first)
        if node in believed:
            free[:, place] &= available_at(believed[node], told["stamp_ns"].to_numpy())
    marks = np.array([_mark(node) for node in nodes], np.uint64)
    prints = np.bitwise_xor.reduce(np.where(free, marks, np.uint64(0)), axis=1)
    added = {"size": free.sum(axis=1), "fingerprint": pl.Series([f"{each:016x}" for each in prints.tolist()], dtype=pl.String)}
    return Pools(told.with_columns(**added), nodes, free)


def _free(moves: pl.DataFrame | None, selections: NDArray[np.int64], at_first: bool) -> NDArray[np.bool_]:
    """Whether a node is free at each of `selections` (seqs): its last move before decides."""
    if moves is None:
        return np.full(selections.size, at_first)
    last = np.searchsorted(moves["seq"].to_numpy(), selections, side="left")
    return np.append([at_first], moves["free"].to_numpy())[last].astype(np.bool_)


def _stamped(run: Run, frame: pl.DataFrame) -> pl.DataFrame:
    """Selections with `at`, the stamp that they were made for: that of their first dispatch, or else the frontier."""
    first = run.frame("dispatch", "_seq", "stamp_ns").sort("_seq").select("_seq", at="stamp_ns", assign="_seq")
    joined = frame.join_asof(first, on="_seq", strategy="forward", allow_exact_matches=False)
    own = pl.col("assign") < pl.col("_seq").shift(-1, fill_value=1 << 62)
    return joined.with_columns(at=pl.coalesce(pl.when(own).then("at"), "_stamp_ns").fill_null(0))


def _moves(run: Run) -> pl.DataFrame:
    """seq, node, free: whether it is free from then on; in order."""
    comings, rows = _comings(run), run.derived(ledger_of).rows
    gone = comings.filter(~pl.col("free")).unique("node", keep="last").select("node", gone="seq")
    taken = rows.select("seq", node="trainer", free=pl.lit(False))
    ended = rows.drop_nulls("end_seq").select(seq="end_seq", node="trainer").join(gone, on="node", how="left")
    back = ended.filter(pl.col("seq") < pl.col("gone").fill_null(NEVER)).select("seq", "node", free=pl.lit(True))
    return pl.concat([comings, taken, back]).sort("seq", "node", "free")


def _comings(run: Run) -> pl.DataFrame:
    """seq, node, free, of planned joins and leaves, and of those who were chosen and could never answer."""
    planned = run.frame("peer").filter("planned").select("node", seq="_seq", free="up").select("seq", "node", "free")
    chosen = run.frame("selection", "_seq", "chosen").sort("_seq").with_columns(number="_seq")
    assigns = run.frame("dispatch", "_seq", "trainer").sort("_seq")
    answered = assigns.join_asof(chosen.select("_seq", "number"), on="_seq").select("number", node="trainer")
    asked = chosen.filter(pl.col("chosen").list.len() > 0).select("number", node="chosen").explode("node")
    silent = asked.join(answered, on=["number", "node"], how="anti", maintain_order="left")
    return pl.concat([planned, silent.select("node", seq="number", free=pl.lit(False)).select("seq", "node", "free")])
