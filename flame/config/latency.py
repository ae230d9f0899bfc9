"""A latency law: what a machine took beyond the model, measured on its real runs by `flame calibrate`.

Three laws, each as its quantiles at equal steps from the least to the largest, in seconds: `legs_s`, both ways of
a message and the wait at the aggregator; `hold_s`, what a trainer took beyond its modelled duration; `eval_s`, what an
evaluation took beyond what it is charged. A draw is a function of its path, as all randomness here: two
simulations with one `draw` are the same, and with two draws they differ as two real runs do.

It is no part of a condition. In stamp order the inbox waits for whatever is late, so no law changes a decision;
in arrival order lateness is part of the wild, and a simulation without it is too prompt.
"""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, NonNegativeFloat, ValidationError, field_validator

from flame.config.draws import uniform
from flame.config.errors import ConfigError
from flame.config.frozen import Frozen
from flame.config.registry import read
from flame.core.time import seconds

FIELD = "latency"
"""Its key in a file of `flame calibrate`, and the field of the world that names the file."""

Quantiles = Annotated[tuple[NonNegativeFloat, ...], Field(min_length=2)]


class Law(Frozen):
    """Quantiles in seconds, at equal steps from 0 to 1."""

    legs_s: Quantiles
    hold_s: Quantiles
    eval_s: Quantiles = (0.0, 0.0)

    @field_validator("*")
    @classmethod
    def _rises(cls, law: tuple[float, ...]) -> tuple[float, ...]:
        if any(after < before for before, after in pairwise(law)):
            raise ValueError("quantiles fall; give them from the least to the largest")
        return law


def drawn(law: tuple[float, ...], *path: int | str) -> int:
    """Nanoseconds, a function of `path` alone, distributed as `law`."""
    place = uniform(*path) * (len(law) - 1)
    below = min(int(place), len(law) - 2)
    return seconds(law[below] + (place - below) * (law[below + 1] - law[below]))


def read_law(path: str) -> Law:
    """The law of a file. Raises ConfigError."""
    held: Any = read(path, FIELD)
    if not isinstance(held, dict) or FIELD not in held:
        raise ConfigError(f"`{FIELD}`: `{Path(path).name}` holds no latency law", "make one of a real run: `flame calibrate RUN`")
    try:
        return Law.model_validate(held[FIELD])
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, (FIELD, *fault["loc"])))
        raise ConfigError(f"`{place}` of `{Path(path).name}`: {fault['msg']}", "make the file again: `flame calibrate RUN`") from None
