"""What an executor is given: a learner answers tasks, and knows the facts of its data and model.

Each task of a condition (`toy`, `text`, `surrogate`) has one; `build` is the only place that knows
them all, and imports the one that is asked for, so that the toy needs no transformers.
"""

from dataclasses import dataclass
from typing import Protocol

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.core.tasks import Result, Task
from flame.core.tensor import Tensor
from flame.learn.params import Layout
from flame.policies.perturb import Split


@dataclass(frozen=True, slots=True)
class Facts:
    """What must be known, and agree in every process, before a run starts.

    init: theta (p,) of model version 0. bins: bins per lap, min over clients of floor(n_c / batch).
    data: digest of the data set and its partition. model: digest of the frozen weights. device: where torch computes.
    """

    layout: Layout
    init: Tensor
    bins: int
    data: str
    model: str
    device: str = "cpu"


class Learner(Protocol):
    """Runs tasks, one at a time. Pure: the result is a function of the task and of the condition."""

    @property
    def facts(self) -> Facts:
        """The facts of this data and model."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was asked for and can't run (a prefix cache with nothing to keep, ...), a line each, for the pre-flight."""
        ...

    def run(self, task: Task) -> Result:
        """The answer to `task`. Raises ArithmeticError, naming what, where a tangent is missing."""
        ...

    def moved(self) -> dict[str, float]:
        """Seconds of the last task that moving values took: `to_device`, `to_host`. Empty where nothing is moved."""
        ...

    def warm(self) -> None:
        """Build what is computed once and kept on disk (the prefix cache) for every sample that the run can touch."""
        ...

    def counts(self) -> dict[str, int]:
        """Hits of the optimisations that are on (`prefix_hits`, `prefix_misses`, ...)."""
        ...


def build(condition: Condition, *, prefix_cache: bool = True, device: str = "cpu") -> Learner:
    """The learner of `condition`. Raises ConfigError when its data, model or device is missing, or too small for what is asked."""
    return _checked(condition, _build(condition, prefix_cache, device))


def _build(condition: Condition, prefix_cache: bool, device: str) -> Learner:
    if condition.task != "text" and device.startswith("cuda"):
        raise ConfigError(f"`device: {device}` says nothing to `task: {condition.task}`, which needs no torch", "give `device: cpu`")
    if condition.task == "toy":
        from flame.learn.toy import ToyLearner

        return ToyLearner(condition)
    if condition.task == "surrogate":
        from flame.learn.surrogate import SurrogateLearner

        return SurrogateLearner(condition)
    from flame.learn.device import chosen
    from flame.learn.text import TextLearner

    return TextLearner(condition, prefix_cache=prefix_cache, device=chosen(device, condition.commit_order))


def _checked(condition: Condition, learner: Learner) -> Learner:
    """The learner, where the condition fits its tensors."""
    perturb, tensors = condition.perturb, len(learner.facts.layout.names)
    if isinstance(perturb, Split) and perturb.shares > tensors:
        raise ConfigError(
            f"`perturb.shares` is {perturb.shares}, and there are {tensors} trainable tensors to share",
            f"give at most {tensors}, or train more of the model (`trainable`)",
        )
    return learner
