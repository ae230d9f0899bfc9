"""What a local step costs, with and without the prefix cache, and how well the estimators agree.

    python bench/estimators.py [--part bitfit] [--last-layers 2] [--bins 5] [--data r8]

One torch thread, batch 8 x 64 tokens, the prepared data set. Times are the median over `--bins` bins, the
first step of each kind left out. Errors are relative to ||g||, the standard deviation of a slope over probes.
"""

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

from flame.config import Condition
from flame.config.condition import Estimator
from flame.core.rng import derive
from flame.core.tasks import Evaluate, Gradient
from flame.learn.estimators import measure
from flame.learn.params import norm, tensor
from flame.learn.text import TextLearner
from flame.policies.perturb.noise import direction


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="cost and agreement of the estimators")
    parser.add_argument("--part", default="bitfit", choices=["head", "bitfit", "lora", "adapter", "all"])
    parser.add_argument("--last-layers", type=int, default=2)
    parser.add_argument("--bins", type=int, default=5)
    parser.add_argument("--data", default="r8")
    asked = parser.parse_args()
    last = 0 if asked.part == "head" else asked.last_layers
    conditions = {kind: condition(asked.data, asked.part, last, kind) for kind in ("forward_ad", "central_difference", "backprop")}
    costs(conditions, asked.bins)
    agreement(TextLearner(conditions["forward_ad"]), asked.bins)


def condition(data: str, part: str, last_layers: int, estimator: str) -> Condition:
    """A text condition of ten clients."""
    step = {"h": "auto"} if estimator == "central_difference" else {}
    return Condition.model_validate(
        {
            "task": "text", "data": data, "partition": {"type": "niid_label"}, "eval": {"rows": 256}, "stop": {"cycles": 4},
            "trainable": {"part": part, "last_layers": last_layers}, "estimator": {"type": estimator, **step},
        }
    )  # fmt: skip


def costs(conditions: dict[str, Condition], bins: int) -> None:
    """Milliseconds per task, prefix kept and computed afresh."""
    first = conditions["forward_ad"]
    learners = {kept: TextLearner(first, prefix_cache=kept) for kept in (True, False)}
    facts = learners[True].facts
    print(f"{first.trainable.part}, last {first.trainable.last_layers} layers: p = {facts.layout.size}")
    print(f"{'ms per task':24}{'prefix kept':>14}{'computed':>14}{'upload':>10}")
    for kind, chosen in conditions.items():
        ran = {kept: _with(learners[kept], chosen, bins) for kept in (True, False)}
        same = "equal" if ran[True][1] == ran[False][1] else "DIFFERS"
        print(f"{kind:24}{ran[True][0]:14.1f}{ran[False][0]:14.1f}{same:>10}")
    for name, run in (("forward (losses)", _forward), ("evaluate 256 rows", _evaluate)):
        print(f"{name:24}{run(learners[True], bins):14.1f}{run(learners[False], bins):14.1f}")


def agreement(learner: TextLearner, bins: int) -> None:
    """Each estimator's slope against backprop's, a little off the start."""
    away = direction(derive(1, "bench", "away"), 0, learner.facts.layout.size, "sphere")
    theta = (learner.init + 0.5 / np.sqrt(away.size) * away).astype(np.float32)
    arms = {"forward_ad": Estimator(), **{f"central h={h}": Estimator(type="central_difference", h=h) for h in ("auto", 0.001, 0.01)}}
    errors: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(bins):
        objective = learner.objective(learner.bin("t1", number))
        probe = direction(derive(1, "bench", number), 0, away.size, "gaussian")[None]
        gradient = objective.gradient(theta)[1].astype(np.float64)
        for name, estimator in arms.items():
            errors[name].append(abs(measure(estimator, objective, theta, probe).d[0] - probe[0] @ gradient) / norm(gradient))
    print(f"{'error over ||g||':24}{'median':>14}{'largest':>14}")
    for name, found in errors.items():
        print(f"{name:24}{median(found):14.2e}{max(found):14.2e}")


def _with(learner: TextLearner, chosen: Condition, bins: int) -> tuple[float, list[str]]:
    theta, digests = tensor(learner.init), []

    def step(number: int) -> None:
        result = learner.under(chosen).run(Gradient("t1", 0, number, derive(1, number), theta))
        digests.append(result.delta.digest)  # type: ignore[union-attr]

    return _time(step, bins), digests


def _forward(learner: TextLearner, bins: int) -> float:
    return _time(lambda number: learner.objective(learner.bin("t1", number)).losses(learner.init), bins)


def _evaluate(learner: TextLearner, bins: int) -> float:
    return _time(lambda number: learner.run(Evaluate(number, tensor(learner.init))), min(bins, 2))


def _time(step: Callable[[int], object], bins: int) -> float:
    """Median milliseconds of step(bin); every bin is touched once before, so that kept ones are there."""
    for number in range(bins):
        step(number)
    spent = []
    for number in range(bins):
        start = perf_counter()
        step(number)
        spent.append(perf_counter() - start)
    return 1e3 * median(spent)


if __name__ == "__main__":
    main()
