"""Rungs in causal order, and how they hang together.

A rung rests on its upstreams and on theirs. An upstream that isn't built yet is skipped over to its
own upstreams, so that building it later changes nothing for the others.
"""

from collections.abc import Iterable, Mapping

from parity.rung import Rung


class Ladder:
    """Built rungs, listed in causal order. unbuilt: upstreams of rungs that don't exist yet.

    Raises ValueError for ids that are not unique, an unknown upstream, a circle, or a rung that is listed
    before one on which it rests.
    """

    def __init__(self, rungs: Iterable[Rung], unbuilt: Mapping[str, tuple[str, ...]] | None = None) -> None:
        listed = tuple(rungs)
        self._rungs = {rung.id: rung for rung in listed}
        self._unbuilt = dict(unbuilt or {})
        if len(self._rungs) < len(listed) or self._rungs.keys() & self._unbuilt.keys():
            raise ValueError("two rungs have the same id")
        self._above = {rung.id: self._reach(rung.id, ()) for rung in listed}
        self.rungs = listed
        self._check_order()

    def upstream(self, id: str) -> list[str]:
        """All built rungs on which `id` rests, transitively, in causal order."""
        return [rung.id for rung in self.rungs if rung.id in self._above[id]]

    def _reach(self, id: str, path: tuple[str, ...]) -> set[str]:
        if id in path:
            raise ValueError(f"rungs rest on each other: {' -> '.join((*path, id))}")
        found: set[str] = set()
        for above in self._direct(id):
            found |= {above} & self._rungs.keys() | self._reach(above, (*path, id))
        return found

    def _direct(self, id: str) -> tuple[str, ...]:
        if id in self._rungs:
            return self._rungs[id].upstream
        if id in self._unbuilt:
            return self._unbuilt[id]
        raise ValueError(f"upstream `{id}` is no rung, built or unbuilt")

    def _check_order(self) -> None:
        seen: set[str] = set()
        for rung in self.rungs:
            early = sorted(self._above[rung.id] - seen)
            if early:
                raise ValueError(f"rung `{rung.id}` is listed before `{early[0]}`, on which it rests")
            seen.add(rung.id)
