"""The session layer: delivery end to end, without IO, so that it can be tested by itself.

A transport may lose what a restarted broker held, deliver twice, or find a new process where the
old one was. Roles know nothing of it:

  aggregator   `Dispatches` keeps each open assign and sends it again until it is answered: when its
               trainer comes back, when the connection does, and every `resend_s` unless the worker's
               heartbeat says that it has it. A trainer of a new incarnation holds no weights: whatever
               is sent again, or refers to weights that this incarnation was never sent (those that it
               keeps, or those that a difference builds on), comes with full ones.
  trainer      `Answers` runs an id once; asked again, it sends its last update again. A new incarnation
               may be given, late, what the one before has answered: while it runs that, it takes
               nothing, and the open assign comes again.

Derived seeds make a rerun bit-equal, so reconnects, broker restarts and respawned workers change
nothing that a role can see.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from flame.core.messages import Assign, Message, Payload, Update, Weights


@dataclass(slots=True)
class _Open:
    """An assign that isn't answered. confirmed: its worker has said that it has it."""

    node: str
    assign: Assign
    sent: int
    confirmed: bool = False


class Dispatches:
    """The aggregator's end. `now` is the run's, ns since ready; `resend`: the pause between two sends of one assign.

    recall: the full weights of a version that may have been sent to nobody whole.
    What is sent again says anew when it was sent, so that its trainer waits for what is left until the due.
    newest: the largest id that was sent.
    """

    def __init__(self, resend: int, recall: Callable[[int], Payload]) -> None:
        self._resend, self._recall = resend, recall
        self.newest = 0
        self._open: dict[int, _Open] = {}
        self._by_node: dict[str, int] = {}
        self._weights: dict[int, Payload] = {}
        self._incarnation: dict[str, str] = {}
        self._holds: dict[str, int | None] = {}

    def send(self, node: str, assign: Assign, now: int) -> list[Message]:
        """What to send for a new assign: itself, after the weights if this incarnation lacks them."""
        self._open[assign.id] = _Open(node, assign, now)
        self._by_node[node] = self.newest = assign.id
        if assign.version not in self._weights:
            self._weights[assign.version] = assign.payload if assign.payload.kind == "full" else self._recall(assign.version)
            self._forget_weights(assign.version)
        lacks = assign.payload.kind != "full" and self._holds.get(node) not in builds_on(assign)
        self._holds[node] = assign.version
        return [self._full(assign.version), assign] if lacks else [assign]

    def answered(self, node: str, update_id: int) -> bool:
        """Whether this is the first answer to an open assign of `node`; later ones are duplicates."""
        if self._by_node.get(node) != update_id:
            return False
        del self._by_node[node], self._open[update_id]
        return True

    def present(self, node: str, incarnation: str, now: int) -> list[Message]:
        """A trainer has announced itself, again or anew: what it must be sent."""
        if self._incarnation.get(node) != incarnation:
            self._incarnation[node] = incarnation
            self._holds[node] = None
        open_id = self._by_node.get(node)
        return self._again(self._open[open_id], now) if open_id is not None else []

    def heard(self, nodes: list[str], busy: list[int]) -> None:
        """A heartbeat of the worker that hosts `nodes`: which of their open assigns it has, and which not."""
        for node in nodes:
            open_id = self._by_node.get(node)
            if open_id is not None:
                self._open[open_id].confirmed = open_id in busy

    def reconnected(self, now: int) -> list[tuple[str, Message]]:
        """The connection was lost and is back: everything that is open, again."""
        return [(row.node, msg) for row in list(self._open.values()) for msg in self._again(row, now)]

    def overdue(self, now: int) -> list[tuple[str, Message]]:
        """What was sent `resend` ago or longer and nobody has confirmed."""
        late = [row for row in self._open.values() if not row.confirmed and now - row.sent >= self._resend]
        return [(row.node, msg) for row in late for msg in self._again(row, now)]

    def void(self, node: str) -> None:
        """The node is given up."""
        open_id = self._by_node.pop(node, None)
        if open_id is not None:
            del self._open[open_id]

    def _again(self, row: _Open, now: int) -> list[Message]:
        row.sent, row.confirmed = now, False
        row.assign = replace(row.assign, sent_now=now)
        self._holds[row.node] = row.assign.version
        return [row.assign] if row.assign.payload.kind == "full" else [self._full(row.assign.version), row.assign]

    def _full(self, version: int) -> Weights:
        return Weights(version, self._weights[version])

    def _forget_weights(self, newest: int) -> None:
        needed = {row.assign.version for row in self._open.values()} | {newest}
        for version in [version for version in self._weights if version not in needed]:
            del self._weights[version]


def incarnation_of(worker: str, life: int) -> str:
    """The name of one life of a worker."""
    return f"{worker}.{life}"


def life_of(incarnation: str) -> int:
    """Which life of its worker an incarnation is; 0 for a name that doesn't say."""
    told = incarnation.rpartition(".")[2]
    return int(told) if told.isdecimal() else 0


def builds_on(assign: Assign) -> tuple[int, ...]:
    """Versions of which a trainer must hold one to take an assign without full weights."""
    base = assign.payload.base
    return (assign.version,) if base is None else (assign.version, base)


class Answers:
    """The trainers' end, for all trainers of one worker."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        self._last: dict[str, Update] = {}
        self._held: dict[str, int] = {}
        self._newest: dict[str, int] = {}

    def receive(self, node: str, msg: Message) -> tuple[Message | None, Update | None]:
        """What the role shall get, and what shall be sent again; both None for a duplicate."""
        if isinstance(msg, Weights):
            return (self._take_weights(node, msg), None)
        if not isinstance(msg, Assign):
            return msg, None
        last = self._last.get(node)
        if last is not None and msg.id == last.id:
            return None, last
        if node in self._running or msg.id <= self._newest.get(node, 0):
            return None, None
        if msg.payload.kind != "full" and self._held.get(node) not in builds_on(msg):
            return None, None
        self._held[node] = msg.version
        self._running[node] = self._newest[node] = msg.id
        return msg, None

    def sent(self, node: str, update: Update) -> None:
        """The role has answered."""
        self._running.pop(node, None)
        self._last[node] = update

    def busy(self) -> list[int]:
        """Ids at work, as a heartbeat says them."""
        return list(self._running.values())

    def _take_weights(self, node: str, msg: Weights) -> Weights | None:
        if node in self._running or self._held.get(node) == msg.version:
            return None
        self._held[node] = msg.version
        return msg
