"""Objectives with known answers: one-sample losses that are linear, quadratic or cubic in theta."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """L = g . theta + 1."""

    g: Array

    def losses(self, theta: Array) -> Array:
        return np.array([self.g @ theta + 1.0])

    def jvp(self, theta: Array, probes: Array) -> tuple[Array, Array]:
        return self.losses(theta), np.array([[self.g @ v] for v in probes])

    def gradient(self, theta: Array) -> tuple[Array, Array]:
        return self.losses(theta), self.g


@dataclass(frozen=True)
class Quadratic:
    """L = theta . A theta / 2 + g . theta + 1, A symmetric."""

    a: Array
    g: Array

    def losses(self, theta: Array) -> Array:
        return np.array([theta @ self.a @ theta / 2 + self.g @ theta + 1.0])

    def jvp(self, theta: Array, probes: Array) -> tuple[Array, Array]:
        gradient = self.gradient(theta)[1]
        return self.losses(theta), np.array([[gradient @ v] for v in probes])

    def gradient(self, theta: Array) -> tuple[Array, Array]:
        return self.losses(theta), self.a @ theta + self.g


@dataclass(frozen=True)
class Cubic:
    """L = (c . theta)^3."""

    c: Array

    def losses(self, theta: Array) -> Array:
        return np.array([(self.c @ theta) ** 3])

    def jvp(self, theta: Array, probes: Array) -> tuple[Array, Array]:
        gradient = self.gradient(theta)[1]
        return self.losses(theta), np.array([[gradient @ v] for v in probes])

    def gradient(self, theta: Array) -> tuple[Array, Array]:
        return self.losses(theta), 3 * (self.c @ theta) ** 2 * self.c


@dataclass(frozen=True)
class Samples:
    """Given per-sample losses, whatever theta; slopes as given."""

    given: Array
    slope: float = 1.0

    def losses(self, theta: Array) -> Array:
        return self.given

    def jvp(self, theta: Array, probes: Array) -> tuple[Array, Array]:
        return self.given, np.full((len(probes), len(self.given)), self.slope)

    def gradient(self, theta: Array) -> tuple[Array, Array]:
        return self.given, np.ones_like(theta)
