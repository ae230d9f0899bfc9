"""Modelled delays: how long a unit of work takes, from one of four sources."""

from typing import Self

from pydantic import PositiveFloat, model_validator

from flame.config.frozen import Frozen

SOURCES = ("values", "lognormal", "registry", "ai_benchmark")
"""Keys of `Delays` of which one excludes the others."""


class Lognormal(Frozen):
    """Modelled delays drawn from a lognormal. The defaults fit the reference registry (algorithms.md, section 9)."""

    mean: float = 2.25
    sd: PositiveFloat = 0.735
    low: PositiveFloat = 2.0
    high: PositiveFloat = 56.0


class AiBenchmark(Frozen):
    """Delays by the measured speed of phones: `reference_s` is what the phone of the median score takes."""

    path: str
    reference_s: PositiveFloat = 10.0
    score: str = "CPU_F_AI_Score"


class Delays(Frozen):
    """Modelled seconds per unit of work, from one source; `factor` divides them.

    values: a list (trainer i takes entry i mod its length). lognormal: a law. registry: a JSON file of delays.
    ai_benchmark: a JSON file of scores. (Files: `flame.config.registry`.) reuse: a registry that is too short is dealt again.
    """

    values: tuple[PositiveFloat, ...] | None = None
    lognormal: Lognormal | None = None
    registry: str | None = None
    ai_benchmark: AiBenchmark | None = None
    reuse: bool = False
    factor: PositiveFloat = 1.0

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(getattr(self, source) is not None for source in SOURCES) != 1:
            named = f"{', '.join(f'`{source}`' for source in SOURCES[:-1])} and `{SOURCES[-1]}`"
            raise ValueError(f"exactly one of {named} must be given; give one, or take the others away with `null`")
        if self.values == ():
            raise ValueError("`values` is empty; give one delay in seconds per trainer")
        if self.reuse and self.registry is None:
            raise ValueError("`reuse: true` is for a `registry`, and there is none; give `reuse: false`")
        return self
