"""What a step of a condition costs here: process time of the forward-mode pass for several numbers of probes, in one pass or one by one.

Every step is warmed up once; what is told is the median over bins. `bench/costs.py` has memory, and the other estimators.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import process_time

from flame.config.condition import Condition
from flame.core.rng import derive
from flame.core.tasks import Gradient
from flame.learn.learner import build

Row = tuple[int, str, float, float]
"""Probes, how they are taken, ms a step, ms a probe."""


def steps(condition: Condition, probes: Sequence[int], bins: int) -> Iterator[Row]:
    """A row for each number of probes and way of taking them."""
    for count in probes:
        for way, chunk in (("one pass", None), ("one by one", 1)):
            if count > 1 or chunk is None:
                ms = 1000 * _step_s(condition, count, chunk, bins)
                yield count, way, ms, ms / count


def _step_s(condition: Condition, probes: int, chunk: int | None, bins: int) -> float:
    plain = condition.model_dump() | {
        "estimator": {"type": "forward_ad", "chunk": chunk}, "perturb": {"type": "mean_of", "probes": probes}, "payload": {"up": "dense"},
    }  # fmt: skip
    learner = build(Condition.model_validate(plain))
    theta, node = learner.facts.init, condition.nodes[0]
    held = min(bins, learner.facts.bins)

    def step(number: int) -> None:
        learner.run(Gradient(node, 0, number, derive(1, number), theta))

    return median(timed(step, held))


def timed(step: Callable[[int], object], bins: int) -> list[float]:
    """Process seconds of step(bin), each bin touched once before."""
    for number in range(bins):
        step(number)
    spent = []
    for number in range(bins):
        start = process_time()
        step(number)
        spent.append(process_time() - start)
    return spent
