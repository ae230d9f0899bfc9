"""A step of a share of the model's own length, along G (after LARS: You et al. 2017; algorithms.md, section 5).

    theta <- theta - rho_t max(||theta||, floor) G / ||G||

One norm over all trainables. The length of G cancels, so one rho serves models and perturbations whose
best learning rates differ thirty times: best_of, which is a longer G, is no longer a longer step. The
floor lets a head of zeros start. It never comes to rest by itself, hence the schedules, in t = commits so far:

    constant   rho
    linear     rho max(0, 1 - t / over)
    inverse    rho / (1 + t / over)

`cap` bounds rho_t by what G can know. The mean of n uploads that are worth w random directions each has a cosine of
about sqrt(n w / p) with the gradient while n w is far below p, and what is longer than that is noise:

    rho_t <- min(rho_t, cap sqrt(n w / p))        n uploads in the pool, w of their perturbation, p trainables

w is p E[cos^2] of one upload: P for `mean_of` P, 1 for `single` and `guided`, and for `best_of`, which sends one direction of
P, the mean of the largest of P squared normals: 3.80 of ten, 2.99 with the coin. The cap binds where p is large against
n w (n w / p is 4e-4 on a language model, 0.1 on a head), and never for true gradients, whose w is p.
"""

from math import sqrt
from typing import Literal, Self

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from flame.learn.params import Vector, norm
from flame.policies.heard import heard
from flame.policies.policy import Policy
from flame.policies.server_opt.step import descended, wide
from flame.policies.server_opt.view import StepView

Schedule = Literal["constant", "linear", "inverse"]
LAW: dict[Schedule, str] = {"constant": "", "linear": " x (1 - t/{over})", "inverse": " / (1 + t/{over})"}


class TrustRatio(Policy):
    """rho: share of ||theta|| per commit. floor: the least ||theta|| that counts. over: commits of the schedule.

    cap: bounds the share by cap sqrt(n w / p); None is no bound.
    """

    HEARD = heard("schedule", ["linear", "inverse"], "over")
    type: Literal["trust_ratio"] = "trust_ratio"
    rho: PositiveFloat = 0.02
    schedule: Schedule = "constant"
    over: PositiveInt = 300
    floor: NonNegativeFloat = 1.0
    cap: PositiveFloat | None = None

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        if self.schedule == "linear" and "over" not in self.model_fields_set:
            raise ValueError("`schedule: linear` stands still after `over` commits, which isn't given; give one, such as `over: 600`")
        return self

    @property
    def gain(self) -> str:
        """It has none: the length of G cancels."""
        share = f"{self.rho:.3g}{LAW[self.schedule].format(over=self.over)}"
        share += "" if self.cap is None else f", at most {self.cap:.3g} sqrt(nw/p),"
        return f"{share} of ||theta|| (at least {self.floor:.3g}), whatever G's length"

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: None) -> tuple[Vector, None]:
        """The next theta; the same where G is zero."""
        length = norm(aggregate)
        if length == 0:
            return theta.copy(), state
        reach = self._share(view, theta.size) * max(norm(theta), self.floor)
        return descended(theta, reach * (wide(aggregate) / length)), state

    def _share(self, view: StepView, size: int) -> float:
        rho = self.rho_at(view.progress.model_version)
        return rho if self.cap is None else min(rho, self.cap * sqrt(view.uploads * view.worth / size))

    def rho_at(self, commits: int) -> float:
        """rho_t, t the number of commits before this one."""
        past = commits / self.over
        shares = {"constant": 1.0, "linear": max(0.0, 1 - past), "inverse": 1 / (1 + past)}
        return self.rho * shares[self.schedule]
