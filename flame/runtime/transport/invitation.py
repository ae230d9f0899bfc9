"""What a worker from elsewhere is told before it joins a run: retained by the aggregator on the run's `invite` topic.

It is read by a process that knows nothing of the run, perhaps by another version: plain JSON, its schema and the code's
digest first.
"""

from dataclasses import asdict, dataclass
from typing import Any, Self

import orjson

from flame.core.messages import Presence

SCHEMA = 1


class BadInvitation(ValueError):
    """What lies on the topic can't be read. str() says why."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """condition, world: as JSON. init, data, code: digests that a worker must share. slots: workers from elsewhere, with their trainers."""

    run: str
    condition: dict[str, Any]
    world: dict[str, Any]
    init: str
    data: str
    code: str
    slots: dict[str, list[str]]
    schema: int = SCHEMA

    def packed(self) -> bytes:
        """As it is sent."""
        return orjson.dumps(asdict(self))

    @classmethod
    def unpacked(cls, payload: bytes) -> Self:
        """What was sent. Raises BadInvitation."""
        try:
            plain = orjson.loads(payload)
            if plain["schema"] != SCHEMA:
                raise BadInvitation(f"it has schema {plain['schema']}, and this version reads {SCHEMA}; use the version that wrote it")
            return cls(**plain)
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise BadInvitation(f"it can't be read: {error}") from None

    def difference(self, mine: Presence) -> str | None:
        """What of a worker's own digests isn't the run's; None when all are."""
        pairs = (("code", self.code, mine.code), ("data", self.data, mine.data), ("init", self.init, mine.init))
        wrong = [f"its {what} digest is {theirs}, here it is {own}" for what, theirs, own in pairs if theirs != own]
        return wrong[0] if wrong else None
