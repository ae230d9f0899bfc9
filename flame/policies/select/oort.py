"""Oort: guided selection by statistical and system utility (Lai et al., OSDI'21; `oort.py` of its published code).

Cycles are numbered from 1. Of an explored node, one that had an update accepted, U is the utility of the
last one, L the cycle in which it was accepted, t the modelled duration. In cycle R its score is

    ((min(U, clip) - min) / range + sqrt(0.1 ln R / L)) x (T / t)^2        the last factor only if t > T

over the free explored nodes: clip their 98th percentile of U, min 0.999 x the smallest U, range = max - min,
1e-4 at least; nodes with U = 0 are scored and set no bounds. T is the pacer's (`pacer.py`): the 30th percentile of the
durations of all nodes, and infinite at 100. Of `want` nodes

    exploit   int(want (1 - epsilon)), sampled by score among those of at least 0.7 x the cut-off, the score
              of the first that wouldn't be taken if the best were
    explore   the rest, sampled by initial reward x penalty among the unexplored: the 5 x as many best
              and whoever ties with the last of them
    fill      uniformly among who is left, where too few are unexplored

epsilon = 0.9 x 0.98^R, at least 0.2, and 0 when no unexplored node is left. With `blacklist` n, nodes with
more than n accepted updates are never chosen: those with the most, at most 0.3 of all nodes.

Where the published code leaves something open: every node's bin has the same number of samples, so the
initial reward, which is that number, is 1 for all; the cut-off is the last score where all are taken (there an
IndexError), and is not widened where it is negative (U = 0 under the smallest); epsilon is back when an
unexplored node joins. Draws hang on names, not on the order of the ledger.

Variants: FedScale has `clip` 0.9 and `cut_off` 0.05, the `flame` fork 0.95 and 0.95. A choice looks at every free
node, so it costs O(n log n).
"""

from collections.abc import Mapping
from dataclasses import replace
from heapq import nlargest
from math import inf, log, sqrt
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from flame.core.rng import derive
from flame.policies.heard import unheard
from flame.policies.policy import Policy
from flame.policies.select.draw import drawn
from flame.policies.select.pacer import Pacer, Pacing, exploiting, paced
from flame.policies.select.view import SelectView, Standing
from flame.telemetry.records import Score

Share = Annotated[float, Field(ge=0, le=1)]


class Preferred(NamedTuple):
    """T in ns, and the number of nodes and the percentile that it was taken from."""

    nodes: int = 0
    percentile: float = 0.0
    duration: float = inf


class State(NamedTuple):
    """What lasts from one choice to the next. scores: of those who were chosen last, by name."""

    pacer: Pacer
    preferred: Preferred = Preferred()
    scores: tuple[Score, ...] = ()


class Bounds(NamedTuple):
    """What utilities are measured by."""

    least: float
    clip: float
    range: float


class Scored(Policy):
    """Oort's rule, in the fields' terms. penalty: exponent of T / t; 0 is none.

    rounding: of the number exploited. `down` never exploits where one slot is refilled; `fair` rounds up as
    often as the fraction says, by a derived draw. blacklist: accepted updates that are too many; None is off.
    """

    HEARD = unheard("blacklist", None, "blacklist_share") + unheard("penalty", 0, "percentile", "pacer_step", "pacer_delta")
    clip: Share = 0.98
    cut_off: Share = 0.7
    percentile: Annotated[float, Field(gt=0, le=100)] = 30.0
    penalty: NonNegativeFloat = 2.0
    pacer_step: PositiveInt = 20
    pacer_delta: PositiveFloat = 5.0
    epsilon: Share = 0.9
    epsilon_decay: Share = 0.98
    epsilon_min: Share = 0.2
    window: PositiveFloat = 5.0
    blacklist: NonNegativeInt | None = None
    blacklist_share: Share = 0.3
    rounding: Literal["down", "fair"]

    def choose(self, view: SelectView, want: int, state: State | None) -> tuple[list[str], State]:
        """At most `want` free nodes, by name."""
        before = state or State(Pacer(self.percentile))
        pacer = paced(before.pacer, Pacing(self.pacer_step, self.pacer_delta), view.nodes, view.progress.cycle + 1)
        preferred = preferred_duration(view.nodes, pacer.percentile, before.preferred)
        known, fresh = self.rated(view, preferred.duration)
        exploited = self._exploited(known, want, view)
        explored = self._explored(fresh, want - len(exploited), view)
        filled = self._filled(known, exploited, want - len(exploited) - len(explored), view)
        scores = sorted((*exploited, *explored, *filled), key=lambda score: score.trainer)
        chosen = [score.trainer for score in scores]
        pacer = exploiting(pacer, view.nodes, chosen, [score.trainer for score in exploited])
        return chosen, State(pacer, preferred, tuple(scores))

    def scores(self, state: State) -> list[Score] | None:
        """The parts of the scores of those who were chosen last, by name."""
        return list(state.scores)

    def rated(self, view: SelectView, preferred: float) -> tuple[dict[str, Score], dict[str, Score]]:
        """Scores of the free nodes that may be chosen: the explored, and the unexplored. preferred: T in ns."""
        barred = blacklisted(view.nodes, self.blacklist, self.blacklist_share)
        standings = {node: view.nodes[node] for node in view.free if node not in barred}
        bounds = bounds_of([each.utility for each in standings.values() if each.count and each.utility > 0], self.clip)
        known, fresh = dict[str, Score](), dict[str, Score]()
        for node, each in standings.items():
            penalty = (preferred / each.duration) ** self.penalty if each.duration > preferred else 1.0
            if each.count:
                utility = (min(each.utility, bounds.clip) - bounds.least) / bounds.range
                uncertainty = sqrt(0.1 * log(view.progress.cycle + 1) / (each.last + 1))
                known[node] = Score(node, "exploit", (utility + uncertainty) * penalty, utility, uncertainty, penalty)
            else:
                fresh[node] = Score(node, "explore", penalty, None, None, penalty)
        return known, fresh

    def share(self, view: SelectView) -> float:
        """epsilon: the share of a choice that is left to exploration."""
        decayed = self.epsilon * self.epsilon_decay ** (view.progress.cycle + 1)
        return max(decayed, self.epsilon_min) if view.unexplored else 0.0

    def _exploited(self, known: Mapping[str, Score], want: int, view: SelectView) -> list[Score]:
        exact = want * (1.0 - self.share(view))
        extra = derive(view.seed, "select", view.ordinal, "round") / 2**64 if self.rounding == "fair" else 0.0
        size = min(int(exact + extra), want, len(known))
        pool = above_cut_off(known, size, self.cut_off)
        return [known[node] for node in drawn(pool, size, view.seed, "select", view.ordinal, "exploit")]

    def _explored(self, fresh: Mapping[str, Score], want: int, view: SelectView) -> list[Score]:
        size = min(want, len(fresh))
        pool = best_with_ties(fresh, max(size, int(self.window * size)))
        return [fresh[node] for node in drawn(pool, size, view.seed, "select", view.ordinal, "explore")]

    def _filled(self, known: Mapping[str, Score], exploited: list[Score], want: int, view: SelectView) -> list[Score]:
        taken = frozenset(score.trainer for score in exploited)
        left = {node: 1.0 for node in known if node not in taken}
        return [replace(known[node], how="fill") for node in drawn(left, want, view.seed, "select", view.ordinal, "fill")]


class Oort(Scored):
    """Oort as published, for a synchronous loop."""

    type: Literal["oort"] = "oort"
    rounding: Literal["down", "fair"] = "down"


def preferred_duration(nodes: Mapping[str, Standing], percentile: float, before: Preferred) -> Preferred:
    """T: that percentile of all durations. It is taken anew when nodes have joined or the pacer has moved."""
    if (len(nodes), percentile) == before[:2]:
        return before
    if percentile >= 100:
        return Preferred(len(nodes), percentile, inf)
    durations = sorted(each.duration for each in nodes.values())
    return Preferred(len(nodes), percentile, float(durations[_place(len(durations), percentile / 100)]))


def bounds_of(utilities: list[float], clip: float) -> Bounds:
    """Clip, least and range of the positive utilities; where there are none, of a single 0."""
    ordered = sorted(utilities) or [0.0]
    least = 0.999 * ordered[0]
    return Bounds(least, ordered[_place(len(ordered), clip)], max(ordered[-1] - least, 1e-4))


def _place(size: int, share: float) -> int:
    return min(int(size * share), size - 1)


def above_cut_off(known: Mapping[str, Score], size: int, cut_off: float) -> dict[str, float]:
    """Scores of at least `cut_off` x that of the first node that isn't among the best `size`."""
    if not size:
        return {}
    edge = nlargest(size + 1, (score.score for score in known.values()))[-1]
    lowest = min(edge, edge * cut_off)
    return {node: score.score for node, score in known.items() if score.score >= lowest}


def best_with_ties(fresh: Mapping[str, Score], size: int) -> dict[str, float]:
    """The best `size` scores, and all that equal the last of them."""
    if not size:
        return {}
    edge = nlargest(size, (score.score for score in fresh.values()))[-1]
    return {node: score.score for node, score in fresh.items() if score.score >= edge}


def blacklisted(nodes: Mapping[str, Standing], most: int | None, share: float) -> frozenset[str]:
    """Nodes with more than `most` accepted updates, those with the most of them first, up to a share of all nodes."""
    if most is None:
        return frozenset()
    over = sorted((node for node, each in nodes.items() if each.count > most), key=lambda node: (-nodes[node].count, node))
    return frozenset(over[: int(share * len(nodes))])
