"""Rungs from outside the tree: `flame parity --rung my_pkg.module:name`.

A guest is declared like every other rung. It is tried last, so it may rest on any of the ladder, and on guests before it.
"""

from collections.abc import Sequence

from flame.config.errors import nearest
from flame.config.outside import imported
from parity.ladder import Ladder
from parity.rung import Rung


class GuestError(Exception):
    """A rung that can't be taken. str() says which, and what to do."""


def with_guests(ladder: Ladder, named: Sequence[str]) -> Ladder:
    """The ladder with the rungs of these names at its end. Raises GuestError."""
    if not named:
        return ladder
    guests = [_found(name) for name in named]
    try:
        return Ladder([*ladder.rungs, *guests])
    except ValueError as error:
        raise GuestError(f"--rung {' '.join(named)}: {error}\nhint: docs/rungs.md lists the rungs, with their ids") from None


def _found(where: str) -> Rung:
    if not all(where.partition(":")):
        raise GuestError(f"--rung: `{where}` names no rung\nhint: write it as MODULE:NAME, such as `my_rungs:fairness`")
    try:
        module, name = imported(where)
    except ValueError as error:
        raise GuestError(f"--rung {error}") from None
    found = getattr(module, name, None)
    if isinstance(found, Rung):
        return found
    known = [each for each, value in vars(module).items() if isinstance(value, Rung)]
    what = "is no rung" if found is not None else "isn't there"
    raise GuestError(f"--rung `{where}` {what}\nhint: {nearest(name, known)}decorate the function with `parity.rung.rung`")
