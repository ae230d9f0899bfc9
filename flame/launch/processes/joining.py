"""`flame worker`: host some trainers of a run whose launcher is elsewhere.

    knock      wait for the run's invitation, and see which of its workers are there already
    compare    the same code, the same data, the same first weights; else there is nothing to join
    serve      as any worker does, until the run ends, Ctrl-C, or nothing is heard of it for `ready_wait_s`

Its books stand under the run's own name in `runs/`; where that isn't a folder shared with the launcher, copy them there.
"""

from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from rich.console import Console

from flame.config.condition import Condition
from flame.config.errors import ConfigError, unknown
from flame.config.world import World
from flame.core.effects import Stop
from flame.core.profile import Profile
from flame.core.time import seconds
from flame.launch.folder.signals import on_signals
from flame.launch.processes.hosting import Spec, serve
from flame.launch.processes.reaching import connect, reached
from flame.learn.learner import build
from flame.runtime.books.process_books import code_digest, presence, write_condition
from flame.runtime.control import Finish
from flame.runtime.transport import chunks, envelope
from flame.runtime.transport.access import Access
from flame.runtime.transport.invitation import BadInvitation, Invitation
from flame.runtime.transport.link import MqttLink, Raw, Wiring
from flame.runtime.transport.session import life_of
from flame.runtime.transport.topics import Topics

LOOK_S = 1.0
"""How long to look for workers that are there already, once the invitation has come."""

WELL, BAD = 0, 1


@dataclass(frozen=True, slots=True)
class Door:
    """What stands at a run's door. seen: the last life of each worker that was ever there; gone: those who have left."""

    invitation: Invitation
    seen: dict[str, int]
    gone: frozenset[str]

    def slot(self, wanted: str | None) -> str:
        """As which worker to join. Raises ConfigError where that isn't to be had."""
        slots, here = self.invitation.slots, self.seen.keys() - self.gone
        if wanted is not None and wanted not in slots:
            raise unknown("worker", wanted, list(slots), f" of `{self.invitation.run}`")
        free = [slot for slot in ([wanted] if wanted else slots) if slot not in here]
        if not free:
            raise ConfigError(
                f"all workers of `{self.invitation.run}` from elsewhere are there: {', '.join(sorted(here & slots.keys()))}", AGAIN
            )
        return free[0]


AGAIN = "start the run with a larger `--remote`, or wait for one of them to leave"


def join(broker: str, run: str, slot: str | None, user: str | None, ca: str | None, wait_s: float, runs: Path, err: Console) -> int:
    """Join, and serve to the end; the exit code. Raises ConfigError, before anything is started, where that can't be."""
    host, port, access = reached(broker, user, ca)
    door = _knock(Topics(run, user), host, port, access, wait_s)
    invitation = door.invitation
    name = door.slot(slot)
    if invitation.code != code_digest():
        raise ConfigError(f"`{run}` runs flame {invitation.code}, this is {code_digest()}", "install the same version on both hosts")
    condition = Condition.model_validate(invitation.condition)
    world = World.model_validate(invitation.world | {"broker": broker, "broker_user": user, "broker_ca": ca})
    learner = build(condition, prefix_cache=world.prefix_cache, device=world.device)
    different = invitation.difference(presence(name, "", Profile(name, 0), learner.facts, code_digest()))
    if different is not None:
        raise ConfigError(f"`{run}` can't be joined: {different}", "prepare the same data and model on both hosts: `flame data prepare`")
    learner.warm()
    path = runs / run
    if not (path / "condition.json").exists():
        write_condition(path, condition, world)
    nodes, life = invitation.slots[name], door.seen.get(name, -1) + 1
    err.print(f"joined `{run}` as {name}, life {life}: {', '.join(nodes)}", markup=False)
    stop = _serve(Spec(path, condition, world, host, port, 0, code_digest(), {}), name, life, nodes, learner)
    err.print(f"{stop.verdict}: {stop.reason}", markup=False)
    return WELL if stop.verdict == "COMPLETED" else BAD


def _serve(spec: Spec, name: str, life: int, nodes: list[str], learner: Any) -> Stop:
    mailbox: SimpleQueue[Any] = SimpleQueue()
    patience = seconds(spec.condition.limits.ready_wait_s)
    with on_signals(lambda signal: mailbox.put(Finish())):
        return serve(spec, name, life, nodes, learner, mailbox, lambda report: None, patience)


def _knock(topics: Topics, host: str, port: int, access: Access, wait_s: float) -> Door:
    """Wait for the invitation, then look a moment for who is there. Raises ConfigError after `wait_s`."""
    heard: SimpleQueue[Any] = SimpleQueue()
    client = f"flame-knock-{monotonic():.6f}"
    link = MqttLink(Wiring(client, host, port, [topics.invite, topics.presence("+")], topics.echo(client), None, heard.put, access))
    try:
        connect(link, wait_s)
        return _door(topics, heard, wait_s)
    finally:
        link.close(LOOK_S)


def _door(topics: Topics, heard: "SimpleQueue[Any]", wait_s: float) -> Door:
    invitation: Invitation | None = None
    seen: dict[str, int] = {}
    gone: set[str] = set()
    until = monotonic() + wait_s
    while (left := until - monotonic()) > 0:
        try:
            mail = heard.get(timeout=left)
        except Empty:
            break
        if not isinstance(mail, Raw) or not mail.payload:
            continue
        if mail.topic == topics.invite:
            invitation, until = _invited(topics.run, mail.payload), monotonic() + LOOK_S
        else:
            worker, life, left_again = _present(mail)
            seen[worker] = max(life, seen.get(worker, -1))
            (gone.add if left_again else gone.discard)(worker)
    if invitation is None:
        raise ConfigError(
            f"nobody has invited to `{topics.run}` within {wait_s:g} s", "start it with `flame run --remote 1`, or correct --run"
        )
    return Door(invitation, seen, frozenset(gone))


def _invited(run: str, payload: bytes) -> Invitation:
    try:
        return Invitation.unpacked(payload)
    except BadInvitation as error:
        raise ConfigError(f"the invitation to `{run}`: {error}", "install the same version on both hosts") from None


def _present(mail: Raw) -> tuple[str, int, bool]:
    """Worker, life, and whether it has left, of what lies on a presence topic."""
    outside, parts = envelope.unpack(bytes(chunks.parse(mail.payload).piece))
    return outside.src, life_of(outside.incarnation), not parts
