"""What a rung is: one comparison, declared once, with everything that the engine and the docs need.

    @rung(id="R1", name="r1_residence", stage=3, tier=INV, domain=LOGICAL,
          needs=["dispatch.id", "accepted.id"], upstream=["S2"])
    def residence(pair: Pair, window: Window) -> Finding:
        '''A trainer has at most one assignment in flight. ...'''

The decorated function becomes a `Rung`. It looks at the evidence and returns a Finding; whether that
is PASS, FAIL or too little to tell, and who is to blame, is the engine's to say.

- needs: `kind.column` of the telemetry, or `verdict.field`; `real:` or `sim:` before it when only one
  side must have it. A need that is absent makes the rung SKIP, and the need is named.
- reads: record kinds that it looks at beyond its needs, so that they are read in the same pass.
- over: which part of the runs the rung looks at; the engine doesn't call it when that part is empty.
- shown: its reason is printed even when it passes.
- fidelity: the tier in the fidelity tier, where it is another one (L1 and Cm are DIAG there).
- alone: it judges each run by itself, so that no replicate floor excuses it.
- `agg_round.clock` among the needs is each run's own clock: wall for a real run, virtual for a sim.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from parity.exhibits import Exhibit, Samples

if TYPE_CHECKING:
    from parity.evidence import Pair, Window

Tier = Literal["INV", "EXACT", "DIST", "DIAG"]
Domain = Literal["LOGICAL", "PHYSICAL"]
Span = Literal["run", "cycles", "bins"]
VerdictName = Literal["PASS", "FAIL", "SKIP", "BLOCKED", "DIAG", "ERROR"]
Role = Literal["ROOT-CAUSE", "DOWNSTREAM"]

INV: Literal["INV"] = "INV"
EXACT: Literal["EXACT"] = "EXACT"
DIST: Literal["DIST"] = "DIST"
DIAG: Literal["DIAG"] = "DIAG"
LOGICAL: Literal["LOGICAL"] = "LOGICAL"
PHYSICAL: Literal["PHYSICAL"] = "PHYSICAL"

STAGES = {
    0: "foundations", 1: "clock", 2: "availability", 3: "selection", 4: "training",
    5: "delivery", 6: "sequence", 7: "learning", 8: "outcome", 9: "budget",
}  # fmt: skip
"""Stages of a run, in causal order."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One two-sample statistic against its tolerance (fidelity tier).

    n: the smaller sample. critical: the largest effect that chance explains at ALPHA. p: of the effect
    under equal laws. attainable: the smallest p that so few blocks can give. needs: the n at which a
    shift of `tol` would be seen. samples: what it was computed from.
    """

    name: str
    effect: float
    tol: float
    n: int
    critical: float
    p: float
    attainable: float
    needs: int
    samples: Samples | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rung found. ok: None when nothing was judged (a DIAG's number, or a skip).

    effect, tol, n: the headline numbers. reason: one line. detail: more lines, shown under a failure.
    measures: statistics that the engine judges together with those of the other rungs (Holm). exhibit: what was
    looked at, to be drawn.
    """

    ok: bool | None
    reason: str = ""
    effect: float | None = None
    tol: float | None = None
    n: int | None = None
    detail: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    skip: bool = False
    exhibit: Exhibit | None = field(default=None, compare=False, repr=False)


def passed(reason: str = "", *, effect: float | None = None, tol: float | None = None, n: int | None = None) -> Finding:
    """It holds."""
    return Finding(True, reason, effect, tol, n)


def failed(
    reason: str, *, effect: float | None = None, tol: float | None = None, n: int | None = None, detail: Sequence[str] = ()
) -> Finding:
    """It doesn't, and why."""
    return Finding(False, reason, effect, tol, n, tuple(detail))


def skipped(reason: str, *, n: int | None = None) -> Finding:
    """It can't be told, and why not."""
    return Finding(None, reason, n=n, skip=True)


def measured(*measures: Measure, reason: str = "") -> Finding:
    """Statistics for the engine to judge. Its numbers are those of the `headline`."""
    worst = headline(measures)
    return Finding(None, reason, worst.effect, worst.tol, worst.n, measures=measures)


def headline(measures: Sequence[Measure]) -> Measure:
    """The measure that is nearest to its tolerance, or farthest over it."""
    return max(measures, key=lambda measure: measure.effect / measure.tol)


Check = Callable[["Pair", "Window"], Finding]


@dataclass(frozen=True, slots=True)
class Rung:
    """A declared rung. doc: the docstring of its function, module: where it lives."""

    id: str
    name: str
    stage: int
    tier: Tier
    domain: Domain
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    upstream: tuple[str, ...]
    over: Span
    fidelity: Tier
    shown: bool
    alone: bool
    check: Check = field(repr=False)
    doc: str = field(repr=False, default="")

    def tier_in(self, run_tier: str) -> Tier:
        """The tier that counts in a pair of `run_tier` (exact or fidelity)."""
        return self.tier if run_tier == "exact" else self.fidelity


def rung(
    *,
    id: str,
    name: str,
    stage: int,
    tier: Tier,
    domain: Domain,
    needs: Sequence[str] = (),
    reads: Sequence[str] = (),
    upstream: Sequence[str] = (),
    over: Span = "run",
    fidelity: Tier | None = None,
    shown: bool = False,
    alone: bool = False,
) -> Callable[[Check], Rung]:
    """Declare the decorated check as a rung."""

    def declare(check: Check) -> Rung:
        return Rung(
            id,
            name,
            stage,
            tier,
            domain,
            tuple(needs),
            tuple(reads),
            tuple(upstream),
            over,
            fidelity or tier,
            shown,
            alone,
            check,
            check.__doc__ or "",
        )

    return declare
