"""Measuring the replicate floor: the ladder's statistics on every ordered pair of the replicates."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, permutations

from flame.telemetry.rundir import RunDir
from parity.engine import attempt, gather, statistical
from parity.evidence import Pair, Run, window_of
from parity.floor import OWN, Floor
from parity.ladder import Ladder
from parity.rung import Finding


class FloorError(Exception):
    """Runs that make no floor. str() says why, and what would."""


def floors(runs: Sequence[RunDir], ladder: Ladder, max_bin: int | None = None) -> dict[str, Floor]:
    """Fingerprint -> the floor that its replicates make. Raises FloorError for a run that is no replicate of another."""
    distinct = {run.path.resolve(): run for run in runs}
    ordered = sorted(distinct.values(), key=_kin)
    groups = [(kin, list(group)) for kin, group in groupby(ordered, _kin)]
    for (fingerprint, world), group in groups:
        if world != "real":
            raise FloorError(f"`{group[0].label}` is a {world} run\nhint: the floor is made of real runs")
        if len(group) < 2:
            raise FloorError(
                f"`{group[0].label}` has no replicate here: none of the others has its fingerprint {fingerprint}\n"
                f"hint: flame replicate {group[0].path} -n 3"
            )
    return {fingerprint: _floor(group, ladder, max_bin) for (fingerprint, _), group in groups}


def _kin(run: RunDir) -> tuple[str, str]:
    return run.run_fp, run.world.kind


def _floor(runs: Sequence[RunDir], ladder: Ladder, max_bin: int | None) -> Floor:
    effects: dict[str, dict[str, tuple[float, ...]]] = defaultdict(dict)
    for one, other in permutations(runs, 2):
        for rung, name, effect in _effects(Pair(Run("real", one), Run("sim", other)), ladder, max_bin):
            effects[rung][name] = (*effects[rung].get(name, ()), effect)
    return Floor(tuple(run.label for run in runs), effects)


def _effects(pair: Pair, ladder: Ladder, max_bin: int | None) -> Iterator[tuple[str, str, float]]:
    """(rung, measure, effect) of what two replicates show."""
    gather(pair, ladder)
    window = window_of(pair, max_bin)
    for rung in ladder.rungs:
        if statistical(rung, pair) and not rung.alone:
            for name, effect in _numbers(attempt(rung, pair, window).finding):
                yield rung.id, name, effect


def _numbers(finding: Finding) -> Iterator[tuple[str, float]]:
    if finding.measures:
        yield from ((measure.name, measure.effect) for measure in finding.measures)
    elif finding.effect is not None and not finding.skip:
        yield OWN, finding.effect
