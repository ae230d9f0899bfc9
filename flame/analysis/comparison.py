"""Baselines side by side: one row a baseline over its seeds, if they share what they must share.

Runs of different shared conditions (`condition_fp`) can't be compared: who learned more would say nothing about the
baselines. `same_condition` refuses them, and says where they differ. A mean is made of seeds alone: `one_arm` refuses
runs of one name that differ in anything else.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from flame.analysis import curve as curves
from flame.analysis.finished import arm_of
from flame.analysis.learned import Learned
from flame.analysis.productivity import productivity
from flame.config.condition import Condition
from flame.config.errors import ConfigError, shown
from flame.config.fingerprint import SHARED
from flame.telemetry.rundir import RunDir

ARM = tuple(name for name in Condition.model_fields if name not in ("seed", "limits"))
"""What the seeds of one arm share."""

Arms = Mapping[str, Sequence[RunDir]]
"""Runs by the name under which they are shown; those of one name are seeds of one condition."""


def same_condition(runs: Sequence[RunDir]) -> None:
    """Raises ConfigError where two of them have different shared conditions, naming the first difference."""
    first = runs[0]
    for other in runs[1:]:
        if other.condition_fp != first.condition_fp:
            found = next(differences(first.condition, other.condition), "a file of devices")
            raise ConfigError(
                f"`{first.label}` and `{other.label}` don't share their condition ({first.condition_fp}, {other.condition_fp}): {found}",
                "compare runs of one run-set; `flame conditions RUN OTHER` lists all that differs",
            )


def differences(one: Condition, other: Condition, fields: Sequence[str] = SHARED) -> Iterator[str]:
    """The places of these fields in which two conditions differ, with both values; an entry of a list goes by its `type`."""
    left, right = (_flat(each.model_dump(mode="json", include=set(fields))) for each in (one, other))
    for place in sorted(left.keys() | right.keys()):
        if left.get(place) != right.get(place):
            yield f"`{place}` is {shown(left.get(place))} and {shown(right.get(place))}"


def _flat(value: Any, place: str = "") -> dict[str, Any]:
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        value = {str(entry.get("type", number)): entry for number, entry in enumerate(value)}
    if not isinstance(value, dict) or not value:
        return {place: value}
    return {key: inner for name, below in value.items() for key, inner in _flat(below, f"{place}.{name}".lstrip(".")).items()}


def one_arm(name: str, runs: Sequence[RunDir], remedy: str = "give each condition a name of its own, `name=DIR`") -> None:
    """Raises ConfigError where the runs of one name differ in more than their seed, or have one seed, and so would count as two."""
    for other in runs[1:]:
        if arm_of(other) != arm_of(runs[0]):
            raise ConfigError(
                f"`{name}`: `{runs[0].label}` and `{other.label}` are no seeds of one condition: {apart(runs[0], other)}", remedy
            )
    by_seed: dict[int, list[RunDir]] = defaultdict(list)
    for run in runs:
        by_seed[run.condition.seed].append(run)
    for seed, found in by_seed.items():
        if len(found) > 1:
            raise ConfigError(
                f"`{name}` has seed {seed} twice: `{found[0].label}` and `{found[1].label}`", "give each seed once, or two names"
            )


def apart(one: RunDir | Condition, other: RunDir) -> str:
    """In what two conditions differ beside their seeds: the first place, and how many more there are."""
    condition = one if isinstance(one, Condition) else one.condition
    found = list(differences(condition, other.condition, ARM)) or ["`limits.max_rejects`, or what a file of devices holds"]
    return found[0] + (f", and {len(found) - 1} more" if len(found) > 1 else "")


def comparison(arms: Mapping[str, Sequence[Learned]], targets: Sequence[float] = ()) -> pl.DataFrame:
    """A row a name: n seeds, mean accuracies and costs, and in how many seeds each target was reached. Raises ConfigError."""
    same_condition([learned.run for group in arms.values() for learned in group])
    for name, group in arms.items():
        one_arm(name, [learned.run for learned in group])
    return pl.DataFrame([_row(name, group, targets) for name, group in arms.items()], infer_schema_length=None)


def _row(name: str, group: Sequence[Learned], targets: Sequence[float]) -> dict[str, Any]:
    gains, whole = [productivity(learned) for learned in group], [learned.spent() for learned in group]
    lasting = [learned.sustained() for learned in group]
    row: dict[str, Any] = {
        "baseline": name, "n": len(group),
        "peak": _mean([learned.peak() for learned in group]), "sustained": _mean(lasting),
        "worst": min((value for value in lasting if value is not None), default=None) if None not in lasting else None,
        "last": _mean([curves.last(learned.evaluations) for learned in group]),
        "time_s": _mean([learned.end / 1e9 for learned in group]), "passes": _mean([spent.passes for spent in whole]),
        "down_bytes": _mean([spent.down for spent in whole]), "up_bytes": _mean([spent.up for spent in whole]),
        "loss_drop": _mean([gain.loss_drop for gain in gains]), "per_million_passes": _mean([gain.per_million_passes for gain in gains]),
        "per_gb": _mean([gain.per_gb for gain in gains]), "per_compute_h": _mean([gain.per_compute_h for gain in gains]),
        "device": gains[0].device,
    }  # fmt: skip
    for target in targets:
        row |= _to(target, group)
    return row


def _to(target: float, group: Sequence[Learned]) -> dict[str, Any]:
    """Means over the seeds that reached a target, and how many did."""
    stamps = [learned.reached(target) for learned in group]
    there = [learned for learned, stamp in zip(group, stamps, strict=True) if stamp is not None]
    spent = [learned.cost_to(target) for learned in there]
    return {
        f"reached_{target:g}": len(there), f"time_s_to_{target:g}": _mean([stamp / 1e9 for stamp in stamps if stamp is not None]),
        f"passes_to_{target:g}": _mean([each.passes for each in spent]), f"bytes_to_{target:g}": _mean([each.both for each in spent]),
    }  # fmt: skip


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, if every one is known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
