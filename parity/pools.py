"""Who could be chosen at each selection, told again from the ledger and the traces.

The aggregator writes how many were eligible and a fingerprint of who; names would cost N a selection. They
follow from what else is written: eligible is who has joined, has no open row, wasn't retired, and is believed
available at the stamp of the selection. That the told pool is the one that was written is A7's affair; the
speed of those in it is A2b's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b
from operator import xor

import polars as pl

from flame.config.devices import profiles
from parity.evidence import Run, Window
from parity.ledger import ledger_of
from parity.presence import traces_of

MOST = 2_000_000
"""Trainers times selections, beyond which nothing is told again: it takes a second."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One selection: what was written of it, and who was free as the ledger has it."""

    cycle: int
    seq: int
    stamp_ns: int
    candidates: int
    eligible: int
    written: str
    chosen: tuple[str, ...]
    free: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """Of who was free, whatever the order."""
        return f"{reduce(xor, map(_mark, self.free), 0):016x}"


def pools(run: Run, window: Window) -> list[Pool]:
    """The selections of the common cycles, in order; none where there are too many to tell."""
    return [pool for pool in run.derived(_pools) if pool.cycle < window.cycles]


def durations(run: Run) -> dict[str, float]:
    """Node -> modelled D in seconds. Raises ConfigError where its registry isn't here. For `run.derived`."""
    return {node: profile.delay_ns / 1e9 for node, profile in profiles(run.condition).items()}


def selections(run: Run, window: Window) -> pl.DataFrame:
    """The selection records of the common cycles, in order."""
    return window.in_cycles(run.frame("selection")).sort("_seq")


def _mark(node: str) -> int:
    return int.from_bytes(blake2b(node.encode(), digest_size=8).digest(), "big")


def _pools(run: Run) -> list[Pool]:
    frame = run.frame("selection").drop_nulls("cycle").sort("_seq")
    if frame.height * run.condition.trainers > MOST:
        return []
    believed = {} if run.condition.awareness == "none" or run.condition.availability.trace == "syn_0" else run.derived(traces_of)
    idle = dict.fromkeys(node for node in run.condition.nodes if node not in run.condition.population.joins)
    moves, told, stamp = _moves(run), list[Pool](), 0
    for row in _stamped(run, frame).iter_rows(named=True):
        while moves and moves[-1][0] < row["_seq"]:
            _, node, free = moves.pop()
            idle.update({node: None}) if free else idle.pop(node, None)
        stamp = max(stamp, row["at"])
        there = tuple(node for node in idle if node not in believed or believed[node].available(stamp))
        written = row["candidates"], row["eligible"], row["eligible_fp"], tuple(row["chosen"])
        told.append(Pool(row["cycle"], row["_seq"], stamp, *written, there))
    return told


def _stamped(run: Run, frame: pl.DataFrame) -> pl.DataFrame:
    """Selections with `at`, the stamp that they were made for: that of their first dispatch, or else the frontier."""
    first = run.frame("dispatch").sort("_seq").select("_seq", at="stamp_ns", assign="_seq")
    joined = frame.join_asof(first, on="_seq", strategy="forward", allow_exact_matches=False)
    own = pl.col("assign") < pl.col("_seq").shift(-1, fill_value=1 << 62)
    return joined.with_columns(at=pl.coalesce(pl.when(own).then("at"), "_stamp_ns").fill_null(0))


def _moves(run: Run) -> list[tuple[int, str, bool]]:
    """(seq, node, whether it is free from then on), the latest first."""
    gone = {node: seq for seq, node, free in _comings(run) if not free}
    found = list(_comings(run))
    for row in run.derived(ledger_of).rows.values():
        found.append((row.seq, row.trainer, False))
        end = min((seq for _, seq, _ in row.ends), default=None)
        if end is not None and end < gone.get(row.trainer, 1 << 62):
            found.append((end, row.trainer, True))
    return sorted(found, reverse=True)


def _comings(run: Run) -> Iterator[tuple[int, str, bool]]:
    """Planned joins and leaves, and those who were chosen and could never answer."""
    yield from run.frame("peer").filter("planned").select("_seq", "node", "up").iter_rows()
    chosen = run.frame("selection").sort("_seq").select("_seq", "chosen", number="_seq")
    assigns = run.frame("dispatch").sort("_seq").select("_seq", "trainer")
    answered = set(assigns.join_asof(chosen.select("_seq", "number"), on="_seq").select("number", "trainer").iter_rows())
    for seq, nodes, _ in chosen.iter_rows():
        yield from ((seq, node, False) for node in nodes if (seq, node) not in answered)
