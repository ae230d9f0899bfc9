"""The surrogate task: answers from a model of a learner, for scheduling studies with 10^5 clients and more.

No torch, no data, no partition: the loss of trainer i is w_i ||theta - 1||^2 / 2 with a difficulty w_i
in [0.5, 1.5) read off its name, and a gradient is one rademacher probe whose signs, and whose share of
noise, are bits of a hash of the task's seed. So an answer costs microseconds, whatever the number of
clients, and is the same in every process. `perturb` and `estimator` play no part here; they only set
how many probes and passes are reported.
"""

from hashlib import blake2b, shake_128
from math import exp, sqrt
from zlib import crc32

import numpy as np

from flame.config.condition import Condition
from flame.core.tasks import EvalResult, Evaluate, Gradient, GradientResult, Result, Task
from flame.core.tensor import Tensor
from flame.learn.bfloat16 import widened
from flame.learn.learner import Facts
from flame.learn.params import Layout, Vector, tensor, vector

NOISE = 0.1
"""Half-width of the uniform noise on the directional derivative."""
PASSES = {"forward_ad": 1, "central_difference": 2, "backprop": 2}


class SurrogateLearner:
    """Answers tasks of the surrogate condition."""

    def __init__(self, condition: Condition) -> None:
        size = condition.surrogate.parameters
        self._size, self._hash_bytes = size, 4 + (size + 7) // 8
        self._batch, self._passes = condition.batch_size, PASSES[condition.estimator.type]
        self._rows = condition.eval.rows or 256
        layout = Layout(("theta",), ((size,),), "float64")
        bins = min(condition.surrogate.bins, condition.max_bins or condition.surrogate.bins)
        digest = blake2b(f"surrogate {size} {bins}".encode(), digest_size=16).hexdigest()
        self._facts = Facts(layout, tensor(np.zeros(size, np.float64)), bins, digest, digest)
        self._theta: Tensor | None = None
        self._gap: Vector = np.zeros(size)
        self._half_square = 0.0

    @property
    def facts(self) -> Facts:
        """The facts of the model of a learner."""
        return self._facts

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing is switched off here."""
        return ()

    def run(self, task: Task) -> Result:
        """The answer to `task`."""
        return self._evaluate(task) if isinstance(task, Evaluate) else self._gradient(task)

    def moved(self) -> dict[str, float]:
        """Values stay where they are."""
        return {}

    def warm(self) -> None:
        """Nothing to keep."""

    def counts(self) -> dict[str, int]:
        """No optimisation to count."""
        return {}

    def _gradient(self, task: Gradient) -> GradientResult:
        self._look_at(task.theta)
        bits = shake_128(task.seed.to_bytes(8, "big")).digest(self._hash_bytes)
        probe = np.unpackbits(np.frombuffer(bits, np.uint8, offset=4), count=self._size) * 2.0 - 1.0
        difficulty = 0.5 + crc32(task.node.encode()) / 2**32
        noise = NOISE * (int.from_bytes(bits[:4], "big") / 2**31 - 1)
        d = difficulty * float(np.add.reduce(probe * self._gap)) + noise
        loss = difficulty * self._half_square
        delta = Tensor("float64", (self._size,), (d * probe).tobytes())
        return GradientResult(delta, loss, self._batch * loss, self._batch, 1, self._passes, d)

    def _evaluate(self, task: Evaluate) -> EvalResult:
        """Loss ||theta - 1||^2 / 2; accuracy falls from 1 towards chance of two classes as the distance grows."""
        self._look_at(task.theta)
        distance = sqrt(2 * self._half_square / self._size)
        accuracy = 0.5 + 0.5 * exp(-distance) if np.isfinite(distance) else 0.5
        return EvalResult(self._half_square, accuracy, self._rows, [accuracy, accuracy], 2 * accuracy - 1)

    def _look_at(self, theta: Tensor) -> None:
        """Keep theta - 1 and half its square: most tasks of a version bring the same object."""
        if theta is self._theta:
            return
        self._theta = theta
        self._gap = vector(widened(theta, "float64")) - 1.0
        self._half_square = float(np.add.reduce(self._gap * self._gap)) / 2
