"""The forward gradient: a probe v, the slope d of the loss along it, the upload d v.

    ghat = d v,   d ~ <grad L(theta), v>,   E[v v^T] = I   so   E[ghat] = grad L(theta)

An `Objective` is one bin's per-sample losses as a function of theta; an estimator asks it for the
slopes along the probes, and nothing else, so the same v serves each of them:

- `forward_ad`: exact slopes, by forward-mode differentiation: a pass with the tangents of `chunk` probes at once.
- `central_difference`: (L(theta + h v) - L(theta - h v)) / 2h on perturbed copies (two passes).
- `backprop`: no probe; the gradient itself, the honest baseline (a pass there and a pass back).

The loss reported is the mean at the received theta (algorithms.md, sections 1 and 2): the primal of
the forward-mode pass, or the mean of L(+) and L(-). `self_check` compares all three at start-up.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flame.config.condition import Condition, Estimator
from flame.core.rng import derive
from flame.core.tasks import Gradient, GradientResult
from flame.learn.bfloat16 import widened
from flame.learn.params import Layout, Vector, norm, tensor, vector
from flame.policies.perturb.noise import direction

AUTO_REACH = 0.1
"""`h: auto` is this over sqrt(p): the length of h v, whatever p is (E||v||^2 = p)."""


class Objective(Protocol):
    """One bin: the losses (b,) of its b samples as a function of theta (p,)."""

    def losses(self, theta: Vector) -> Vector:
        """(b,) at theta."""
        ...

    def jvp(self, theta: Vector, probes: NDArray[np.float64]) -> tuple[Vector, Vector]:
        """Losses (b,) at theta and their slopes (P, b) along each of the probes (P, p), taken at once."""
        ...

    def gradient(self, theta: Vector) -> tuple[Vector, Vector]:
        """Losses (b,) at theta and the gradient (p,) of their mean."""
        ...


@dataclass(frozen=True, slots=True)
class Slopes:
    """What the probes gave. losses: (b,) at theta. d: (P,) directional derivatives. passes: forward passes spent."""

    losses: Vector
    d: NDArray[np.float64]
    passes: int


def local_step(condition: Condition, layout: Layout, objective: Objective, task: Gradient) -> GradientResult:
    """One trainer's answer to one assign: probe, measure the slopes, upload what `perturb` makes of them."""
    theta = vector(widened(task.theta, layout.dtype))
    if condition.estimator.type == "backprop":
        losses, gradient = objective.gradient(theta)
        return _result(losses, gradient.astype(theta.dtype), passes=2)
    towards = None if task.direction is None else vector(widened(task.direction, layout.dtype))
    probes = condition.perturb.draw(task.seed, layout, towards)  # (P, p)
    slopes = measure(condition.estimator, objective, theta, probes)
    d = slopes.d.astype(theta.dtype).astype(np.float64)  # as they can travel
    sent = condition.perturb.combine(task.seed, d, probes)
    result = _result(slopes.losses, sent.delta.astype(theta.dtype), slopes.passes, len(probes), float(sent.scalars[0]))
    if condition.payload.up == "seeds":
        choice = condition.perturb.choice(task.seed, layout, towards, sent.index)
        result.scalars, result.choice = tensor(sent.scalars.astype(theta.dtype)), tensor(np.array(choice, np.uint8)) if choice else None
    return result


def measure(estimator: Estimator, objective: Objective, theta: Vector, probes: NDArray[np.float64]) -> Slopes:
    """The slopes along the probes (P, p), by the forward estimator that the condition names."""
    if estimator.type == "forward_ad":
        return forward_ad(objective, theta, probes, estimator.chunk)
    return central_difference(objective, theta, probes, step_size(estimator.h, theta.size))


def forward_ad(objective: Objective, theta: Vector, probes: NDArray[np.float64], chunk: int | None = None) -> Slopes:
    """d = mean over the bin of the tangents of the losses: exact. chunk: probes taken at once, None for all."""
    size = chunk or len(probes)
    parts = [objective.jvp(theta, probes[start : start + size]) for start in range(0, len(probes), size)]
    losses, tangents = parts[0][0], np.concatenate([slopes for _, slopes in parts])
    d = np.array([mean(tangent) for tangent in tangents])
    if not np.any(tangents) and mean(losses) > 1e-6 and np.all(probes):  # a share of the parameters may be flat
        raise ArithmeticError(NO_TANGENT.format(size=theta.size))
    return Slopes(losses, d, passes=len(probes))


def central_difference(objective: Objective, theta: Vector, probes: NDArray[np.float64], h: float) -> Slopes:
    """d = (L(theta + h v) - L(theta - h v)) / 2h. Exact on quadratics; error h^2 L'''(v, v, v) / 6 beyond."""
    sums, d = np.zeros(()), []
    for v in probes:
        ahead = objective.losses((theta + h * v).astype(theta.dtype))
        behind = objective.losses((theta - h * v).astype(theta.dtype))
        d.append((mean(ahead) - mean(behind)) / (2 * h))
        sums = sums + ahead.astype(np.float64) + behind
    return Slopes(sums / (2 * len(probes)), np.array(d), passes=2 * len(probes))


def step_size(h: float | str, size: int) -> float:
    """h, or for `auto` AUTO_REACH / sqrt(p)."""
    return AUTO_REACH / sqrt(size) if isinstance(h, str) else h


def mean(values: Vector) -> float:
    """Mean in float64, summed in order."""
    return float(np.add.reduce(values, dtype=np.float64) / len(values))


def utility(losses: Vector) -> float:
    """Oort's U = |bin| sqrt(mean of squared per-sample losses) (OSDI'21)."""
    wide = losses.astype(np.float64)
    return len(wide) * sqrt(mean(wide * wide))


def _result(losses: Vector, delta: Vector, passes: int, probes: int = 0, derivative: float = 0.0) -> GradientResult:
    return GradientResult(tensor(delta), mean(losses), utility(losses), len(losses), probes, passes, derivative)


NO_TANGENT = (
    "forward-mode tangent is missing: the slope is exactly zero for every sample along a probe of all {size} trainable "
    "parameters\nhint: something between the parameters and the loss drops tangents (`.detach()`, inference mode, a quantised "
    "linear, a kernel without a forward-mode formula); use attn_implementation `eager` and an unquantised model, or "
    "`estimator: central_difference`"
)
DISAGREES = (
    "{first} says that the slope along the check's probe is {a:.6g}, {second} says {b:.6g} (tolerance {room:.3g})\nhint: a part of "
    "the model drops tangents or gradients (`.detach()`, inference mode, a quantised linear), or is not a smooth function of its "
    "parameters; repair the model, or use `estimator: central_difference` (which differentiates nothing)"
)


def self_check(objective: Objective, theta: Vector, estimator: Estimator, tolerance: float = 0.01) -> float:
    """Compare the estimator's slope with the other two on one probe, a little off theta; returns backprop's.

    Off theta, because at a head of zeros no slope of the layers below can be seen. Forward mode is looked at only if it
    is what the estimator uses. Raises ArithmeticError, with cause and remedy, when its tangent is missing, or when a slope
    differs from backprop's by more than tolerance x the slope's standard deviation over probes, ||g||.
    """
    away = direction(derive(0, "self-check", "away"), 0, theta.size, "sphere") * (0.5 / sqrt(theta.size))
    probe = direction(derive(0, "self-check", "probe"), 0, theta.size, "sphere")[None]
    there = (theta + away).astype(theta.dtype)
    gradient = objective.gradient(there)[1].astype(np.float64)
    back = float(np.add.reduce(gradient * probe[0]))
    slopes = {"central difference": central_difference(objective, there, probe, step_size("auto", theta.size))}
    if estimator.type == "forward_ad":
        slopes["forward mode"] = forward_ad(objective, there, probe)
    room = tolerance * norm(gradient)
    for name, found in slopes.items():
        if not abs(found.d[0] - back) <= room:
            raise ArithmeticError(DISAGREES.format(first=name, second="backprop", a=found.d[0], b=back, room=room))
    return back
