"""The toy task: float64 softmax regression on made-up data, small enough to run thousands of steps a second.

A hidden weight matrix labels standard normal features (the argmax of its logits plus noise); rows are
dealt to the trainers by the condition's partition. Theta starts at zero: W (classes, features), then
b (classes,). Everything is NumPy without BLAS, in a fixed order, so the bits are the same in every
process; slopes and gradients are in closed form, so neither torch nor transformers is imported.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.core.rng import derive
from flame.core.tasks import EvalResult, Evaluate, Gradient, Result, Task
from flame.learn.data.partition import deal
from flame.learn.estimators import local_step, self_check
from flame.learn.learner import Facts
from flame.learn.params import Layout, Vector, tensor, vector
from flame.learn.scores import scores

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

EVAL_ROWS = 1024
"""Rows of the test set when the condition doesn't limit them."""


@dataclass(frozen=True, slots=True)
class SoftmaxRegression:
    """An `Objective`: cross-entropy of a linear model on x (b, features), y (b,)."""

    x: Array
    y: Labels
    classes: int

    def losses(self, theta: Vector) -> Array:
        """(b,) at theta."""
        return _cross_entropy(self.logits(theta), self.y)

    def jvp(self, theta: Vector, probes: Array) -> tuple[Array, Array]:
        """Losses (b,) and slopes (P, b): the logits are linear in theta, so their tangents are the logits of v."""
        logits = self.logits(theta)
        residual = self._residual(logits)
        slopes = np.stack([np.add.reduce(residual * self.logits(v), axis=1) for v in probes])
        return _cross_entropy(logits, self.y), slopes

    def gradient(self, theta: Vector) -> tuple[Array, Array]:
        """Losses (b,) and the gradient (p,) of their mean."""
        logits = self.logits(theta)
        residual = self._residual(logits) / len(self.y)
        gradient = np.concatenate([np.einsum("bc,bf->cf", residual, self.x).ravel(), np.add.reduce(residual, axis=0)])
        return _cross_entropy(logits, self.y), gradient

    def logits(self, theta: Vector) -> Array:
        """(b, classes)."""
        weight, bias = theta[: -self.classes].reshape(self.classes, -1), theta[-self.classes :]
        logits: Array = np.einsum("bf,cf->bc", self.x, weight) + bias
        return logits

    def _residual(self, logits: Array) -> Array:
        """softmax(logits) less the one-hot labels, (b, classes)."""
        residual = np.exp(logits - _log_sum(logits)[:, None])
        residual[np.arange(len(self.y)), self.y] -= 1
        return residual


class ToyLearner:
    """Answers tasks of the toy condition. `toy.samples` is the number of rows per trainer."""

    def __init__(self, condition: Condition) -> None:
        """Raises ConfigError when a trainer's rows don't fill one bin."""
        self._condition = condition
        toy = condition.toy
        self._layout = Layout(("weight", "bias"), ((toy.classes, toy.features), (toy.classes,)), "float64")
        self._truth = _normal(condition, (toy.classes, toy.features), "truth")
        self._x, self._y = self._rows(condition.trainers * toy.samples, "train")
        self._test = self._bin(*self._rows(condition.eval.rows or EVAL_ROWS, "test"))
        parts = deal(condition.partition.type, self._y, condition.trainers, condition.partition.alpha, derive(condition.seed, "toy"))
        self._parts = dict(zip(condition.nodes, parts, strict=True))
        self._facts = self._find_facts()
        self_check(
            self._of("check", self._parts[condition.nodes[0]][: condition.batch_size]), vector(self._facts.init), condition.estimator
        )

    @property
    def facts(self) -> Facts:
        """The facts of the made-up data."""
        return self._facts

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing is switched off here."""
        return ()

    def run(self, task: Task) -> Result:
        """The answer to `task`."""
        if isinstance(task, Evaluate):
            return self._evaluate(task)
        return local_step(self._condition, self._layout, self._objective(task), task)

    def moved(self) -> dict[str, float]:
        """Values stay where they are."""
        return {}

    def warm(self) -> None:
        """Nothing to keep: the data are made at construction."""

    def counts(self) -> dict[str, int]:
        """No optimisation to count."""
        return {}

    def _objective(self, task: Gradient) -> SoftmaxRegression:
        size = self._condition.batch_size
        return self._of(task.node, self._parts[task.node][task.data_id * size : (task.data_id + 1) * size])

    def _of(self, who: str, rows: Labels) -> SoftmaxRegression:
        if not len(rows):
            raise IndexError(f"trainer `{who}` has no such bin; there are {self._facts.bins}")
        return self._bin(self._x[rows], self._y[rows])

    def _bin(self, x: Array, y: Labels) -> SoftmaxRegression:
        return SoftmaxRegression(x, y, self._condition.toy.classes)

    def _evaluate(self, task: Evaluate) -> EvalResult:
        theta = vector(task.theta)
        logits = self._test.logits(theta)
        return scores(_cross_entropy(logits, self._test.y), logits.argmax(axis=1), self._test.y, self._condition.toy.classes)

    def _rows(self, count: int, split: str) -> tuple[Array, Labels]:
        """`count` rows: features (count, features) and the labels that the hidden weights give them."""
        toy = self._condition.toy
        x = _normal(self._condition, (count, toy.features), split, "x")
        noise = _normal(self._condition, (count, toy.classes), split, "noise")
        logits = np.einsum("bf,cf->bc", x, self._truth) + toy.noise * noise
        return x, logits.argmax(axis=1).astype(np.int64)

    def _find_facts(self) -> Facts:
        condition = self._condition
        smallest = min(len(part) for part in self._parts.values())
        bins = smallest // condition.batch_size
        if bins == 0:
            raise ConfigError(
                f"the smallest trainer has {smallest} samples, fewer than one bin of `batch_size` {condition.batch_size}",
                "raise `toy.samples` or lower `batch_size`",
            )
        hasher = blake2b(digest_size=16)
        for block in (self._x, self._y, self._test.x, self._test.y, *self._parts.values()):
            hasher.update(np.ascontiguousarray(block).data)
        model = blake2b(f"softmax {condition.toy.classes} {condition.toy.features}".encode(), digest_size=16).hexdigest()
        init = tensor(np.zeros(self._layout.size, np.float64))
        return Facts(self._layout, init, min(bins, condition.max_bins or bins), hasher.hexdigest(), model)


def _normal(condition: Condition, shape: tuple[int, int], *path: str) -> Array:
    return np.random.Generator(np.random.Philox(key=derive(condition.seed, "toy", *path))).standard_normal(shape)


def _log_sum(logits: Array) -> Array:
    top = logits.max(axis=1)
    log_sum: Array = top + np.log(np.add.reduce(np.exp(logits - top[:, None]), axis=1))
    return log_sum


def _cross_entropy(logits: Array, labels: Labels) -> Array:
    return _log_sum(logits) - logits[np.arange(len(labels)), labels]
