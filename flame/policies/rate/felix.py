"""Felix's rate: staleness and statistical utility, mixed (as FluxTune has it; algorithms.md, section 4).

    omega = min(1, c (1 + s)^-a + (1 - c) beta(U)),   beta(U) = 1.5 - (1 + U)^-b

beta rises from 0.5 at U = 0 towards 1.5, so a late update of a trainer whose loss is high may still
weigh much. U is Oort's, |bin| sqrt(mean of squared per-sample losses). A U that isn't finite gives a
rate that isn't: it ends the run instead of being rounded up to 1.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveFloat

from flame.policies.policy import Policy
from flame.policies.rate.view import RateView, Weight


class Felix(Policy):
    """c: share of the staleness. a, b: exponents of staleness and utility."""

    wants_running: ClassVar[bool] = False
    type: Literal["felix"] = "felix"
    c: Annotated[float, Field(ge=0, le=1)] = 0.4
    a: PositiveFloat = 0.25
    b: PositiveFloat = 0.1

    def weigh(self, view: RateView) -> Weight:
        """The mix, at most 1."""
        discount = (1 + view.staleness) ** -self.a
        beta = 1.5 - (1 + view.utility) ** -self.b
        return Weight(min(self.c * discount + (1 - self.c) * beta, 1.0), {"staleness": discount, "utility": beta})
