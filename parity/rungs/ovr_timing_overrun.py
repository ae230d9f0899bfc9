"""Ovr: whether the machine was fast enough for the delays that were asked for."""

import polars as pl

from parity.evidence import Pair, Window
from parity.rung import DIAG, PHYSICAL, Finding, rung

MARGINAL = 0.05


@rung(id="Ovr", name="timing_overrun", stage=4, tier=DIAG, domain=PHYSICAL, needs=["real:trainer_round.overran"], upstream=["T3"])
def timing_overrun(pair: Pair, window: Window) -> Finding:
    """The share of computes in the real run that took longer than their D; the first one is named.

    What it checks: trainer_round.overran of the real run.
    Why: an overrun makes an update late. In the exact tier the inbox waits for it and nothing changes but the
        wall time; in the fidelity tier it changes the order.
    Reads: trainer_round.overran, phases of the real run.
    Statistic: the share. 0: exact parity attainable; below 0.05: marginal; else OVERRUN.
    Tolerance: none (DIAG); --strict enforces < 0.05.
    Known limits: it compares with D, not with what the other jobs of the worker needed.
    """
    rounds = pair.real.frame("trainer_round", "id", "trainer", "delay_ns", "overran").filter(pl.col("overran").is_not_null())
    over = rounds.filter(pl.col("overran"))
    share = over.height / rounds.height
    label = "exact parity attainable" if not over.height else "marginal" if share < MARGINAL else "OVERRUN"
    first = over.sort("id").row(0, named=True) if over.height else None
    named = f", first id {first['id']} of `{first['trainer']}` (D {first['delay_ns'] / 1e9:.3f} s)" if first else ""
    reason = f"{over.height} of {rounds.height} computes over their D{named}: {label}"
    return Finding(share < MARGINAL, reason, effect=share, n=rounds.height)
