"""FluxTune's gradient-aware rate: a base rate, lowered for what points against the cycle (algorithms.md, section 4).

    omega = base x align x min(1, var_ref / var)
    align = (cos + 1) / (floor + 1)  where cos < floor, else 1;   0 at cos = -1

cos is taken between the update and the running aggregate, the rate-weighted sum of what this cycle
has accepted before it, in canonical order; the first of a cycle has nothing to be held against and
gets its base, and so does one where cos is undefined (a zero vector). var is the update's
second moment per coordinate, ||u||^2 / p: of a forward gradient nearly all of that is noise, and it
is the scale of the commit gate's V. The published text leaves floor and var open; both readings are ours.

For p in the thousands cos ~ N(0, 1/p): at floor 0 every second update is gated, by a factor of
about 1, so the rule is nearly inert. `parts` and `gated` in the telemetry show it.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveFloat

from flame.learn.params import Vector, norm
from flame.policies.policy import BY_NAME, Policy
from flame.policies.rate.constant import Constant
from flame.policies.rate.fedbuff import FedBuff
from flame.policies.rate.felix import Felix
from flame.policies.rate.view import RateView, Weight

Base = Annotated[Constant | FedBuff | Felix, Field(discriminator="type"), BY_NAME]


class GradAware(Policy):
    """base: the rate that is lowered. floor: the cosine below which it is. var_ref: None for no inverse variance."""

    wants_running: ClassVar[bool] = True
    type: Literal["grad_aware"] = "grad_aware"
    base: Base = Felix()
    floor: Annotated[float, Field(gt=-1, le=1)] = 0.0
    var_ref: PositiveFloat | None = None

    def weigh(self, view: RateView) -> Weight:
        """The base's weight, its parts, and those of gate and variance beside them."""
        base = self.base.weigh(view)
        cos = None if view.running is None else cosine(view.delta, view.running)
        gated = cos is not None and cos < self.floor
        align = max(cos + 1, 0.0) / (self.floor + 1) if cos is not None and gated else 1.0
        inverse = self._inverse_variance(view.delta)
        told = {"cos": cos, "inverse_variance": inverse if self.var_ref else None}
        parts = {"base": base.value, **base.parts, "align": align} | {name: part for name, part in told.items() if part is not None}
        return Weight(base.value * align * inverse, parts, gated)

    def _inverse_variance(self, delta: Vector) -> float:
        variance = norm(delta) ** 2 / delta.size
        return 1.0 if self.var_ref is None or variance <= self.var_ref else self.var_ref / variance


def cosine(one: Vector, other: Vector) -> float | None:
    """The cosine of the angle between two vectors, in float64; None where it is undefined."""
    lengths = norm(one) * norm(other)
    if not 0 < lengths < np.inf:
        return None
    return float(np.add.reduce(one.astype(np.float64) * other)) / lengths
