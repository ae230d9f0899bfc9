"""A2c: those who are chosen are as fast."""

import polars as pl

from parity.derived.pools import durations, selections
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ks
from parity.measures.tables import equal_rows, in_order
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped

TOL = 0.2


@rung(id="A2c", name="selection_bias", stage=3, tier=DIST, domain=LOGICAL, needs=["selection.chosen"], upstream=["A2b"], over="cycles")
def selection_bias(pair: Pair, window: Window) -> Finding:
    """The modelled durations of the trainers that were chosen agree.

    What it checks: the modelled D of each trainer that was chosen, in the order of the choices.
    Why: a pool that is equally fast and a choice that isn't is a bias of the selector, such as one that sees other
        utilities or another preferred duration.
    Reads: selection.chosen; the devices of the condition.
    Statistic: equality, selection by selection (exact); KS over all who were chosen, block permutation (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: it sees a bias towards speed only; S2 sees who contributed, S1 who was chosen.
    """
    real, sim = (_speeds(run, window) for run in pair.runs)
    if pair.exact:
        return equal_rows("selections", "selection {number}", in_order(real), in_order(sim))
    one, two = (side.explode("delays", empty_as_null=False)["delays"] for side in (real, sim))
    if not one.len() or not two.len():
        return skipped("one run chose nobody in the common cycles")
    return measured(ks(one, two, TOL))


def _speeds(run: Run, window: Window) -> pl.DataFrame:
    """delays: of those who were chosen, as far as they are known, selection by selection."""
    known = run.derived(durations)
    delay = pl.element().replace_strict(known, default=None, return_dtype=pl.Float64).drop_nulls()
    return selections(run, window, "chosen").select(delays=pl.col("chosen").list.eval(delay))
