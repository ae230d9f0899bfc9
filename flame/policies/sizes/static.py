"""K and C as the condition says, in every cycle."""

from collections.abc import Sequence
from typing import Literal

from flame.policies.policy import Policy
from flame.policies.sizes.view import Sizes, SizesView


class Static(Policy):
    """K = `goal`, C = `concurrency`."""

    type: Literal["static"] = "static"

    def sample(self, view: SizesView, state: None) -> tuple[Sizes, None]:
        """K and C of the cycle that opens."""
        return view.start, state

    def possible(self, start: Sizes, trainers: int) -> Sequence[Sizes]:
        """All that can come into force."""
        return (start,)

    def misfit(self, start: Sizes, trainers: int) -> str | None:
        """Nothing is asked of K and C."""
