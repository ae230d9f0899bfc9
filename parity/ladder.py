"""Rungs in causal order, and how they hang together.

A rung rests on its upstreams and on theirs. An upstream that isn't built yet is skipped over to its
own upstreams, so that building it later changes nothing for the others.
"""

from collections.abc import Iterable, Mapping

from parity.rung import Rung


class Ladder:
    """Built rungs, sorted by stage and, within one, upstream first. unbuilt: upstreams of rungs that don't exist yet.

    Raises ValueError for ids that are not unique, an upstream that is unknown or of a later stage, or a circle.
    """

    def __init__(self, rungs: Iterable[Rung], unbuilt: Mapping[str, tuple[str, ...]] | None = None) -> None:
        listed = tuple(rungs)
        self._rungs = {rung.id: rung for rung in listed}
        self._unbuilt = dict(unbuilt or {})
        if len(self._rungs) < len(listed) or self._rungs.keys() & self._unbuilt.keys():
            raise ValueError("two rungs have the same id")
        self._above = {rung.id: self._reach(rung.id, ()) for rung in listed}
        for rung in listed:
            self._check_stages(rung)
        self.rungs = tuple(sorted(listed, key=lambda rung: (rung.stage, len(self._above[rung.id]))))

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

    def _check_stages(self, rung: Rung) -> None:
        late = [above for above in self._above[rung.id] if self._rungs[above].stage > rung.stage]
        if late:
            raise ValueError(f"rung `{rung.id}` of stage {rung.stage} rests on `{late[0]}` of a later stage")
