"""Each assign probes its share of the trainable tensors and leaves the others alone (SPRY: Panchal et al., NeurIPS 2024).

    v = 0 outside share s,   ghat = S d v,   E[ghat] = S P_s g       P_s: the coordinates of share s, S shares

Shares are runs of neighbouring tensors, in theta's order: of T tensors, tensor i is in share floor(i S / T). They are
dealt in turn, assign id modulo S, so S assigns in a row cover every tensor, whoever gets them.

Why S: the server's mean over n uploads sees each coordinate in n / S of them only. With the factor the mean
over a covering cohort is an unbiased gradient, and in expectation over turns every mean is. (SPRY's server averages
each layer over those who held it: the same, where each share was held as often.) Without it G would be g / S.

What it buys is on the device: tangents of its share alone. The variance of a cohort's mean is that of the whole
perturbation, p / S coordinates seen by a S-th of the uploads. A gate's V, which compares the two halves of a pool, sees
shares as disagreement: thresholds of other perturbations don't carry over.

The share is the seed's residue modulo S (`dealt`), so whoever knows the seed knows the share.
"""

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from flame.learn.params import Layout, Vector
from flame.policies.perturb.best_of import BestOf
from flame.policies.perturb.combined import Choice, Combined, Wide
from flame.policies.perturb.guided import Guided
from flame.policies.perturb.mean_of import MeanOf
from flame.policies.perturb.single import Single
from flame.policies.policy import BY_NAME, Policy

Whole = Annotated[BestOf | Guided | MeanOf | Single, Field(discriminator="type"), BY_NAME]


class Split(Policy):
    """shares: S, at most the number of trainable tensors. of: what is done within a share."""

    type: Literal["split"] = "split"
    shares: Annotated[int, Field(ge=1, le=256)]
    of: Whole = Single()

    @property
    def probes(self) -> int:
        """P of the inner perturbation: a share sees P of p / S directions, n / S times, which is n P of p again."""
        return self.of.probes

    @property
    def worth(self) -> float:
        """The inner one's, on the share: as with `probes`, what p / S loses of an upload, n / S times undoes."""
        return self.of.worth

    def dealt(self, seed: int, turn: int) -> int:
        """A seed of 64 bits whose residue is the share of that turn; 56 of its bits are `seed`'s."""
        return (seed >> 8) * self.shares + turn % self.shares

    def wants_direction(self, version: int, data_id: int) -> bool:
        """Whether the inner one does."""
        return self.of.wants_direction(version, data_id)

    def draw(self, seed: int, layout: Layout, towards: Vector | None) -> Wide:
        """The inner probes of the share, (P, p), zero outside. Raises ValueError for more shares than tensors."""
        alone, where = self._alone(seed, layout)
        return _placed(self.of.draw(seed, alone, _within(towards, where)), where, layout)

    def combine(self, seed: int, slopes: Wide, probes: Wide) -> Combined:
        """What the inner one makes of them, S times as long."""
        return self.of.combine(seed, slopes, self.shares * probes)

    def choice(self, seed: int, layout: Layout, towards: Vector | None, index: int | None) -> Choice:
        """The inner one's, on the share."""
        alone, where = self._alone(seed, layout)
        return self.of.choice(seed, alone, _within(towards, where), index)

    def sent(self, seed: int, layout: Layout, choice: Choice) -> Wide:
        """Those probes of the share, S times as long, zero outside."""
        alone, where = self._alone(seed, layout)
        return self.shares * _placed(self.of.sent(seed, alone, choice), where, layout)

    def told(self, layout: Layout) -> tuple[int, int]:
        """The inner one's, on the share of most tensors."""
        return max(self.of.told(self._alone(number, layout)[0]) for number in range(self.shares))

    def drawn(self, layout: Layout) -> int:
        """The inner one's, on the dearest share."""
        return max(self.of.drawn(self._alone(number, layout)[0]) for number in range(self.shares))

    def fits(self, seed: int, layout: Layout, scalars: int, choice: Choice) -> bool:
        """Whether it fits the inner one on the seed's share."""
        return self.of.fits(seed, self._alone(seed, layout)[0], scalars, choice)

    def share(self, seed: int, layout: Layout) -> slice:
        """Which tensors move, by number: those i with floor(i S / T) = seed mod S."""
        tensors, number = len(layout.names), seed % self.shares
        if self.shares > tensors:
            raise ValueError(f"`perturb.shares` is {self.shares}, and there are {tensors} trainable tensors")
        return slice(-(-number * tensors // self.shares), -(-(number + 1) * tensors // self.shares))

    def _alone(self, seed: int, layout: Layout) -> tuple[Layout, slice]:
        """The layout of a seed's share, and where in theta it lies."""
        share = self.share(seed, layout)
        places = [part for _, part, _ in layout.slices()][share]
        return replace(layout, names=layout.names[share], shapes=layout.shapes[share]), slice(places[0].start, places[-1].stop)


def _within(towards: Vector | None, where: slice) -> Vector | None:
    return None if towards is None else towards[where]


def _placed(inner: Wide, where: slice, layout: Layout) -> Wide:
    """(k, p), zero outside `where`."""
    probes = np.zeros((len(inner), layout.size))
    probes[:, where] = inner
    return probes
