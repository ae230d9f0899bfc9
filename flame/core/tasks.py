"""Work that takes real time: what a Compute effect asks for and what its answer carries.

Tasks are pure: the result is a function of the fields below and of the condition, so a lost result
may be computed again, ahead of time, or in another process, and the bits are the same.
"""

from dataclasses import dataclass
from typing import Literal

from flame.core.tensor import Tensor


@dataclass(slots=True)
class Gradient:
    """One local step of trainer `node` on bin `data_id` at the parameters `theta`.

    theta: (p,) trainable parameters. direction: (p,) last committed direction u, or None.
    seed: derived seed of the perturbation. version: model version of theta.
    """

    node: str
    version: int
    data_id: int
    seed: int
    theta: Tensor
    direction: Tensor | None = None
    kind: Literal["gradient"] = "gradient"


@dataclass(slots=True)
class Evaluate:
    """Loss and accuracy of `theta` (p,) on the condition's evaluation rows."""

    version: int
    theta: Tensor
    kind: Literal["evaluate"] = "evaluate"


@dataclass(slots=True)
class GradientResult:
    """What one local step gives.

    delta: (p,) the upload, d v for forward gradients. loss: mean at theta over the bin. utility:
    |bin| sqrt(mean of squared per-sample losses), Oort's U. samples: size of the bin. probes:
    perturbations tried. passes: forward passes spent. derivative: the directional derivative d of
    the probe that was sent (of the first, where all were averaged), 0.0 for backprop. scalars, choice: where the
    condition uploads `seeds`: all that delta is made of but the seed; (k,) slopes, and (c,) uint8 or None.
    """

    delta: Tensor
    loss: float
    utility: float
    samples: int
    probes: int
    passes: int
    derivative: float = 0.0
    scalars: Tensor | None = None
    choice: Tensor | None = None
    kind: Literal["gradient_result"] = "gradient_result"


@dataclass(slots=True)
class EvalResult:
    """Loss and accuracy over `samples` rows; recall per class (None: no row of it); Matthews' coefficient."""

    loss: float
    accuracy: float
    samples: int
    recall: list[float | None]
    mcc: float
    kind: Literal["eval_result"] = "eval_result"


Task = Gradient | Evaluate
Result = GradientResult | EvalResult
