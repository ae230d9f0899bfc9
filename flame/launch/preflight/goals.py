"""Goals that a run can't fill, or only by waiting: because trainers leave, are barred, or are away."""

from collections.abc import Iterator

from flame.config.availability import traces
from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.launch.preflight.issue import Issue, cannot, unwise
from flame.launch.preflight.starving import LOOKED_AT, at_once, ever_there, not_barred


def growing(condition: Condition) -> Iterator[Issue]:
    """K that may grow past who stays, and a K that can only fall."""
    name, staying = condition.baseline, condition.trainers - len(condition.population.leaves)
    largest, dynamic = max(sizes.goal for sizes in condition.possible_sizes), condition.sizes.type != "static"
    if (condition.loop == "sync" or dynamic) and largest > staying:
        field = "sizes.goal_max" if dynamic else "goal"
        yield unwise(f"{name}: `{field}` K = {largest}, but only {staying} trainers stay to the end", f"lower `{field}` to {staying}")
    if dynamic and any(rule.type == "agg_goal" for rule in condition.commit):
        yield unwise(
            f"{name}: `sizes` {condition.sizes.type} under `agg_goal`: each bin takes one cycle, so K only falls",
            "give a `commit` rule that looks at the uploads, or `sizes: static`",
        )


def starving(condition: Condition) -> Iterator[Issue]:
    """K against who is left when the blacklist is full, and against the traces."""
    yield from _barred(condition)
    if condition.availability.trace == "syn_0":
        return
    if condition.trainers > LOOKED_AT:
        yield from _everybody(condition)
    else:
        yield from _away(condition)


def _barred(condition: Condition) -> Iterator[Issue]:
    largest, left = _largest(condition), not_barred(condition.select, condition.trainers)
    if left < largest:
        yield unwise(
            f"{condition.baseline}: {_short_of(condition, left)}, and `select.blacklist_share` leaves {left} trainers to choose from "
            "when the blacklist is full",
            f"lower it to {1 - largest / condition.trainers:.3g}, or give `select.blacklist: null`",
        )


def _everybody(condition: Condition) -> Iterator[Issue]:
    goal = condition.goal
    if condition.loop == "sync" and goal == condition.trainers:
        yield cannot(
            f"{condition.baseline}: `goal` K = {goal} is all `trainers`, and {_under(condition)} some are away: "
            "a synchronous cycle would wait for every absence",
            f"lower `goal` to {max(goal - 1, 1)} or less, give more `trainers`, or use `loop: async`",
        )


def _away(condition: Condition) -> Iterator[Issue]:
    goal, name, largest = condition.goal, condition.baseline, _largest(condition)
    try:
        given = traces(condition)
    except ConfigError as error:
        yield cannot(f"{name}: {error.what}", error.hint)
        return
    ever = ever_there(given, largest)
    if ever < largest:
        weight = cannot if ever < goal else unwise
        yield weight(
            f"{name}: {_short_of(condition, ever)}, and {_under(condition)} {ever} trainers are ever there",
            f"{_lower(condition, ever)}, or give more `trainers` or another trace",
        )
    if ever < goal or condition.loop != "sync":
        return
    yield from _everybody(condition)
    if goal < condition.trainers and (most := at_once(given, min(ever, largest))) < min(ever, largest):
        yield unwise(
            f"{name}: {_short_of(condition, most)}, and {_under(condition)} at most {most} trainers are there at once: "
            "a synchronous cycle waits for one after another",
            f"{_lower(condition, most)}, give more `trainers`, or use `loop: async`",
        )


def _largest(condition: Condition) -> int:
    """The largest K that may come into force."""
    return max(sizes.goal for sizes in condition.possible_sizes)


def _short_of(condition: Condition, there: int) -> str:
    """The first K that so many trainers can't fill, by the name of its field."""
    return f"`goal` K = {condition.goal}" if there < condition.goal else f"`sizes.goal_max` K = {_largest(condition)}"


def _lower(condition: Condition, there: int) -> str:
    return f"lower `{'goal' if there < condition.goal else 'sizes.goal_max'}` to {max(there, 1)}"


def _under(condition: Condition) -> str:
    return f"under `availability.trace: {condition.availability.trace}`"
