"""The log of committed steps: all that the model's next version is made of, but the perturbations themselves.

    theta_{t+1} = server_opt(theta_t, G),   G = sum omega_i delta_i / n,   delta_i rebuilt from (seed, scalars, choice)

Whoever holds theta_t recomputes theta_{t+1} with `retaken`: the mean, the server's step and the rebuilding are
the very functions that the aggregator uses, in the same order, so the bits are the same. The digest of the last
theta goes along: another processor's mathematics is found, not trained on.

Written down, per commit: at (versions, 5) int32 (progress before it), counts (versions,) int32; per upload in
canonical order: seeds (n,) int64, rates (n,) float64, and its numbers behind one another: scalars (sum k,) in theta's
dtype, choice (sum c,) uint8. Where k differs among the uploads, scalars_of (n,) int32 has each one's; choice_of as much for
c, which differs where the shares of a `split` of `guided` have different numbers of tensors.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flame.core.progress import Progress
from flame.core.tensor import Tensor
from flame.learn.params import Layout, array, tensor, total, vector, weighted_mean
from flame.policies.payload.rules import KEPT
from flame.policies.perturb import Perturb, PerturbRule, rebuilt
from flame.policies.perturb.combined import Choice
from flame.policies.server_opt import ServerOpt, StepView

Numbers = NDArray[np.generic]

DRAWN = 60_000_000
"""Random numbers that following one log may take: a core draws some 3 x 10^7 a second, so 2 s.

A trainer follows it in its machine's step, and while a step runs, its worker sends no heartbeat. At `limits.grace_s` (15 s)
without one the worker is taken for dead and killed, so this stays far below it, on a core that is shared or slow too.
"""


@dataclass(frozen=True, slots=True)
class Logged:
    """One upload of a committed bin. seed: of its probes. rate: omega."""

    seed: int
    rate: float
    scalars: Tensor
    choice: Choice


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. at: (round, data_id, iteration, model_version, cycle) before it."""

    at: tuple[int, int, int, int, int]
    uploads: tuple[Logged, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """By what a step is made; of server steps those without state."""

    perturb: Perturb
    server_opt: ServerOpt
    layout: Layout


def committed(at: Progress, uploads: Sequence[Logged]) -> Commit:
    """The commit of `uploads`, in canonical order."""
    return Commit((at.round, at.data_id, at.iteration, at.model_version, at.cycle), tuple(uploads))


def retaken(theta: Tensor, commits: Sequence[Commit], rules: Rules) -> tuple[Tensor, Tensor]:
    """theta after these commits, one at least, and u, the sum of the last one's uploads."""
    direction = theta
    for commit in commits:
        theta, direction = _TAKEN.take(theta, commit, rules)
    return theta, direction


def drawn(commit: Commit, perturb: PerturbRule, layout: Layout) -> int:
    """Random numbers that taking this step again draws: of n uploads of P probes n P p, at most."""
    return len(commit.uploads) * perturb.drawn(layout)


class _Taken:
    """Steps that this process has taken: as many as one log may have, so that trainers of one process share them."""

    def __init__(self) -> None:
        self._steps: OrderedDict[tuple[Tensor, Commit, Rules], tuple[Tensor, Tensor]] = OrderedDict()
        self._drawn = 0

    def take(self, theta: Tensor, commit: Commit, rules: Rules) -> tuple[Tensor, Tensor]:
        """theta and the sum of uploads after one commit."""
        step = theta, commit, rules
        taken = self._steps.get(step)
        if taken is None:
            taken = self._steps[step] = _step(theta, commit, rules)
            self._drawn += self._cost(step)
        self._steps.move_to_end(step)
        while len(self._steps) > 1 and (self._drawn > DRAWN or len(self._steps) > KEPT):
            self._drawn -= self._cost(self._steps.popitem(last=False)[0])
        return taken

    @staticmethod
    def _cost(step: tuple[Tensor, Commit, Rules]) -> int:
        return drawn(step[1], step[2].perturb, step[2].layout)


_TAKEN = _Taken()


def _step(theta: Tensor, commit: Commit, rules: Rules) -> tuple[Tensor, Tensor]:
    deltas = [tensor(rebuilt(rules.perturb, each.seed, rules.layout, vector(each.scalars), each.choice)) for each in commit.uploads]
    aggregate = weighted_mean(deltas, [each.rate for each in commit.uploads])
    view = StepView(Progress(*commit.at), len(deltas), rules.perturb.worth)
    moved, _ = rules.server_opt.step(vector(theta), aggregate, view, None)
    direction = total(deltas)
    assert direction is not None
    return tensor(moved), direction


# ---- as tensors


def written(commits: Sequence[Commit], theta: Tensor) -> dict[str, Tensor]:
    """The commits, and the digest of the theta that they lead to."""
    uploads = [each for commit in commits for each in commit.uploads]
    return {
        "at": tensor(np.array([commit.at for commit in commits], np.int32)),
        "counts": tensor(np.array([len(commit.uploads) for commit in commits], np.int32)),
        "seeds": tensor(np.array([each.seed for each in uploads], np.uint64).view(np.int64)),
        "rates": tensor(np.array([each.rate for each in uploads], np.float64)),
        "digest": tensor(np.frombuffer(bytes.fromhex(theta.digest), np.uint8)),
        **_flat("scalars", [vector(each.scalars) for each in uploads]),
        **(_flat("choice", [np.array(each.choice, np.uint8) for each in uploads]) if any(each.choice for each in uploads) else {}),
    }


def _flat(name: str, pieces: Sequence[Numbers]) -> dict[str, Tensor]:
    lengths = [len(piece) for piece in pieces]
    told = {} if len(set(lengths)) == 1 else {f"{name}_of": tensor(np.array(lengths, np.int32))}
    return {name: tensor(np.concatenate(pieces))} | told


def read(parts: Mapping[str, Tensor]) -> tuple[list[Commit], str]:
    """Commits and digest of `written`."""
    uploads, places = _uploads(parts), array(parts["at"]).tolist()
    counts = array(parts["counts"]).tolist()
    commits = [Commit(tuple(at), tuple(next(uploads) for _ in range(count))) for at, count in zip(places, counts, strict=True)]
    return commits, bytes(parts["digest"].data).hex()


def _uploads(parts: Mapping[str, Tensor]) -> Iterator[Logged]:
    seeds = array(parts["seeds"]).view(np.uint64).tolist()
    rates, scalars = array(parts["rates"]).tolist(), _pieces("scalars", parts, len(seeds))
    choices = [piece.tolist() for piece in _pieces("choice", parts, len(seeds))] if "choice" in parts else [()] * len(seeds)
    for seed, rate, slopes, choice in zip(seeds, rates, scalars, choices, strict=True):
        yield Logged(seed, rate, tensor(slopes), tuple(choice))


def _pieces(name: str, parts: Mapping[str, Tensor], count: int) -> list[Numbers]:
    """What `_flat` put together."""
    numbers, lengths = array(parts[name]), parts.get(f"{name}_of")
    return np.split(numbers, count if lengths is None else np.cumsum(array(lengths))[:-1])
