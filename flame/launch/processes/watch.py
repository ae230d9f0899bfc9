"""Watching a real run: reports of the children, deaths, the broker, signals, the wall ceiling.

    worker dies before it was ever ready   the run ends as CRASH, with the tail of its log
    worker dies later                      it is started again, at most `respawns` times; then its nodes are lost
    aggregator dies, or isn't heard        CRASH, with the tail of its log
    broker dies                            it is started again on the same port, at most `respawns` times; one that
                                           isn't ours may be away for `ready_wait_s`
    no cycle closes                        a note says for whom it waits, once until one closes (the aggregator finds out)
    Ctrl-C, TERM, `flame stop`, CRASH,     the aggregator is asked to end the run, and gets END_WAIT_S for it;
    the wall ceiling                       a second signal ends the wait

Everything is done in one loop. What a run is asked from outside is only noted (`flame.launch.folder.asking`).
"""

from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

from flame.config.condition import Condition
from flame.core.messages import AGGREGATOR
from flame.core.time import in_seconds
from flame.launch.folder.asking import Asked
from flame.launch.processes.fleet import Child, Fleet
from flame.launch.screen.ui import Ui
from flame.runtime.brokers.broker import Broker, BrokerError
from flame.runtime.control import (
    Alive,
    AskStop,
    Closed,
    Crashed,
    Ended,
    Finish,
    Ready,
    Scored,
    Silent,
    Stalled,
    WorkerLost,
    WorkerRestarted,
)

POLL_S = 0.5
BROKER_CHECK_S = 1.0
END_WAIT_S = 10.0
GRACES_OF_AGGREGATOR = 4
"""The aggregator may be busy with a large sum for longer than a worker may be silent."""

LOG_TAIL_BYTES = 2000


@dataclass(slots=True)
class Seen:
    """How a run ended, as seen from outside. last: the newest close that was reported."""

    verdict: str
    reason: str
    last: Closed | None


class Watch:
    """One run under observation."""

    def __init__(self, fleet: Fleet, broker: Broker, run: Path, condition: Condition, ui: Ui, wanted: Asked) -> None:
        self._fleet, self._broker, self._run, self._ui, self._wanted = fleet, broker, run, ui, wanted
        self._limits = condition.limits
        self._ceiling = monotonic() + condition.stop.wall_s if condition.stop.wall_s is not None else None
        self._ended: Ended | None = None
        self._asked: tuple[str, str, float] | None = None
        self._beyond_asking: str | None = None
        self._last: Closed | None = None
        self._heard: float | None = None
        self._broker_restarts, self._broker_checked = 0, monotonic()
        self._broker_lost: float | None = None

    def until_end(self) -> Seen:
        """Watch to the end, and see everybody out."""
        self._invite()
        while not self._over():
            self._look()
        if self._ended is not None:
            self._see_out()
            return Seen(self._ended.verdict, self._ended.reason, self._last)
        verdict, reason = ("CRASH", self._beyond_asking) if self._beyond_asking else self._asked[:2] if self._asked else ("CRASH", "")
        return Seen(verdict, reason, self._last)

    def _invite(self) -> None:
        """Say how the workers are started that aren't ours to start."""
        if self._fleet.remote():
            where = f"{self._broker.host}:{self._broker.port} --run {self._run.name}"
            self._ui.noted(f"waits for {', '.join(self._fleet.remote())} to join: flame worker --join {where}")

    def _over(self) -> bool:
        waited_enough = self._asked is not None and (monotonic() > self._asked[2] or self._wanted.again)
        return self._ended is not None or self._beyond_asking is not None or waited_enough

    def _ask(self, verdict: str, why: str) -> None:
        """Let the aggregator end the run; the first reason is the one that counts."""
        if self._asked is None:
            self._asked = (verdict, why, monotonic() + END_WAIT_S)
            self._aggregator.tell(AskStop(why, verdict))

    # ---- one look

    def _look(self) -> None:
        watched = [child for child in self._fleet.children.values() if not child.buried]
        pipes, sentinels = {child.pipe: child for child in watched}, [child.process.sentinel for child in watched]
        for ready in wait([*pipes, *sentinels], POLL_S):
            if isinstance(ready, Connection):
                self._read(pipes[ready])
        for child in watched:
            if not child.process.is_alive() and not self._over():
                self._died(child)
        if self._asked is None and (why := self._wanted.why) is not None:
            self._ask("INTERRUPTED", why)
        self._check_aggregator()
        self._check_broker()
        self._check_ceiling()

    def _read(self, child: Child) -> None:
        try:
            while child.pipe.poll():
                self._report(child, child.pipe.recv())
        except (EOFError, OSError):
            return

    def _report(self, child: Child, report: Any) -> None:
        if child.name == AGGREGATOR:
            self._heard = monotonic()
        match report:
            case Ready():
                child.ready = True
            case Closed(now, cycle, round, data_id, iteration, version, in_flight):
                self._last = report
                self._ui.closed(now, in_seconds(now), cycle, round, data_id, iteration, version, in_flight)
            case Scored(accuracy, loss):
                self._ui.scored(accuracy, loss)
            case Silent(worker, incarnation, why) if worker in self._fleet.remote():
                self._missed(worker, incarnation, why)
            case Silent(worker, incarnation, why) if incarnation in (None, self._fleet.children[worker].incarnation):
                self._ui.noted(f"`{worker}` is silent ({why}); it is killed and started again")
                self._fleet.kill(worker)
            case Stalled(seconds, waits):
                self._ui.noted(f"no cycle has closed for {seconds:.0f} s\n{waits}")
            case Crashed(name, error) if name == AGGREGATOR:
                self._beyond_asking = f"{name}: {error}"
            case Crashed(name, error):
                self._ask("CRASH", f"{name}: {error}")
            case Ended():
                self._ended = report
            case Alive():
                pass

    def _missed(self, worker: str, incarnation: str | None, why: str) -> None:
        """A worker that isn't ours is silent: somebody may start it again while the aggregator waits; then its trainers are lost."""
        if incarnation is not None:
            self._ui.noted(f"`{worker}` is silent ({why}); it may join again: flame worker --slot {worker}")
        else:
            self._ui.noted(f"nobody has joined as `{worker}`; its trainers are lost")
            self._aggregator.tell(WorkerLost(worker, self._fleet.remote()[worker], f"{why}, and nobody joined in its place"))

    def _died(self, child: Child) -> None:
        """Bury it, once what it and the aggregator still had to say is read."""
        for speaker in (child, self._aggregator):
            self._read(speaker)
        if self._over():
            return
        child.buried = True
        how = f"`{child.name}` ended with exit code {child.process.exitcode}"
        if child.name == AGGREGATOR:
            self._beyond_asking = f"{how}\n{log_tail(self._run, child.name)}"
        elif not (child.ready or child.respawns):
            self._ask("CRASH", f"{how}\n{log_tail(self._run, child.name)}")
        elif child.respawns < self._limits.respawns:
            self._ui.noted(f"{how}; started again ({child.respawns + 1} of {self._limits.respawns})")
            self._aggregator.tell(WorkerRestarted(child.name, how))
            self._fleet.restart(child)
        else:
            self._ui.noted(f"{how}; its {self._limits.respawns} respawns are spent, its trainers are lost")
            self._aggregator.tell(WorkerLost(child.name, child.nodes, f"{how}; its respawns are spent"))

    @property
    def _aggregator(self) -> Child:
        return self._fleet.children[AGGREGATOR]

    def _check_aggregator(self) -> None:
        bound = GRACES_OF_AGGREGATOR * self._limits.grace_s
        if self._heard is not None and monotonic() - self._heard > bound and not self._over():
            self._beyond_asking = f"the aggregator has said nothing for {bound:.0f} s\n{log_tail(self._run, AGGREGATOR)}"

    def _check_broker(self) -> None:
        now = monotonic()
        if now - self._broker_checked < BROKER_CHECK_S or self._over():
            return
        self._broker_checked = now
        if self._broker.alive():
            self._broker_lost = None
        elif self._broker_restarts >= self._limits.respawns:
            self._ask("CRASH", f"the broker at {self._broker.host}:{self._broker.port} died {self._broker_restarts + 1} times")
        else:
            self._revive_broker(now)

    def _revive_broker(self, now: float) -> None:
        try:
            self._broker.restart()
        except BrokerError as error:
            if self._broker_lost is None:
                self._broker_lost = now
                self._ui.noted(f"the broker at {self._broker.host}:{self._broker.port} doesn't answer")
            elif now - self._broker_lost > self._limits.ready_wait_s:
                self._ask("CRASH", str(error))
            return
        self._broker_restarts += 1
        self._ui.noted(
            f"the broker has died; started again on port {self._broker.port} ({self._broker_restarts} of {self._limits.respawns})"
        )

    def _check_ceiling(self) -> None:
        if self._ceiling is not None and monotonic() > self._ceiling:
            self._ask("WALL_CEILING", "the ceiling of wall time was reached")

    # ---- the end

    def _see_out(self) -> None:
        """Workers leave by themselves; then the aggregator clears the run's topics."""
        workers = [name for name in self._fleet.children if name != AGGREGATOR]
        self._fleet.join(workers, END_WAIT_S)
        self._aggregator.tell(Finish())
        self._fleet.join([AGGREGATOR], END_WAIT_S)


def log_tail(run: Path, name: str) -> str:
    """The last lines of a child's log, found from its end."""
    path = run / "logs" / f"{name}.log"
    if not path.exists():
        return f"  (no {path.name})"
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(f"  {path.name}: {line}" for line in lines[-12:])
