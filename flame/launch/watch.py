"""Watching a real run: reports of the children, deaths, the broker, signals, the wall ceiling.

worker dies before it was ever ready   the run ends as CRASH, with the tail of its log
worker dies later                      it is started again, at most `respawns` times; then its nodes are lost
aggregator dies                        CRASH, with the tail of its log
broker dies                            it is started again on the same port, at most `respawns` times
Ctrl-C, TERM                           the aggregator is asked to stop; a second one ends the wait
wall ceiling                           the same, with its own verdict
"""

from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

from flame.core.messages import AGGREGATOR
from flame.core.time import in_seconds
from flame.launch.fleet import Child, Fleet
from flame.launch.signals import told
from flame.launch.ui import Ui
from flame.runtime.broker import Broker
from flame.runtime.control import AskStop, Closed, Crashed, Ended, Finish, Ready, Scored, Silent, WorkerLost, WorkerRestarted

POLL_S = 0.5
END_WAIT_S = 10.0
LOG_TAIL_BYTES = 2000


class Watch:
    """One run under observation. wall_s: its ceiling."""

    def __init__(self, fleet: Fleet, broker: Broker, run: Path, respawns: int, wall_s: float | None, ui: Ui) -> None:
        self._fleet, self._broker, self._run, self._ui = fleet, broker, run, ui
        self._respawns, self._broker_restarts = respawns, 0
        self._ceiling = monotonic() + wall_s if wall_s is not None else None
        self._ended: Ended | None = None
        self._crash: str | None = None
        self._interrupts = 0
        self._started = monotonic()

    def until_end(self) -> tuple[str, str]:
        """Watch to the end, and see everybody out. The verdict and its reason."""
        with told(self._asked):
            while self._ended is None and self._crash is None and self._interrupts < 2:
                self._look()
        if self._ended is not None:
            self._see_out()
            return self._ended.verdict, self._ended.reason
        return ("CRASH", self._crash) if self._crash else ("INTERRUPTED", "interrupted twice")

    # ---- one look

    def _look(self) -> None:
        children = list(self._fleet.children.values())
        pipes = {child.pipe: child for child in children if child.process.is_alive() or _readable(child.pipe)}
        sentinels = {child.process.sentinel: child for child in children}
        for ready in wait([*pipes, *sentinels], POLL_S):
            if isinstance(ready, Connection):
                self._read(pipes[ready])
        for child in children:
            if not child.process.is_alive() and self._ended is None and self._crash is None:
                self._died(child)
        self._check_broker()
        self._check_ceiling()

    def _read(self, child: Child) -> None:
        try:
            while child.pipe.poll():
                self._report(child, child.pipe.recv())
        except (EOFError, OSError):
            return

    def _report(self, child: Child, report: Any) -> None:
        match report:
            case Ready():
                child.ready = True
            case Closed(now, cycle, round, data_id, iteration, version, in_flight):
                self._ui.closed(now, in_seconds(now), cycle, round, data_id, iteration, version, in_flight)
            case Scored(accuracy, loss):
                self._ui.scored(accuracy, loss)
            case Silent(worker, why):
                self._ui.noted(f"`{worker}` is silent ({why}); it is killed and started again")
                self._fleet.kill(worker)
            case Crashed(name, error):
                self._crash = f"{name}: {error}"
            case Ended():
                self._ended = report

    def _died(self, child: Child) -> None:
        self._read(child)
        if self._ended is not None or self._crash is not None:
            return
        how = f"`{child.name}` ended with exit code {child.process.exitcode}"
        if child.name == AGGREGATOR or not (child.ready or child.respawns):
            self._crash = f"{how}\n{log_tail(self._run, child.name)}"
        elif child.respawns < self._respawns:
            self._ui.noted(f"{how}; started again ({child.respawns + 1} of {self._respawns})")
            self._aggregator.tell(WorkerRestarted(child.name, how))
            self._fleet.restart(child)
        elif child.nodes:
            self._ui.noted(f"{how}; its {self._respawns} respawns are spent, its trainers are lost")
            self._aggregator.tell(WorkerLost(child.name, child.nodes, f"{how}; its respawns are spent"))
            child.nodes = []

    @property
    def _aggregator(self) -> Child:
        return self._fleet.children[AGGREGATOR]

    def _check_broker(self) -> None:
        if self._broker.alive() or self._ended is not None or self._crash is not None:
            return
        if self._broker_restarts >= self._respawns:
            self._crash = f"the broker at {self._broker.host}:{self._broker.port} died {self._broker_restarts + 1} times"
            return
        self._broker_restarts += 1
        self._ui.noted(f"the broker has died; started again on port {self._broker.port} ({self._broker_restarts} of {self._respawns})")
        self._broker.restart()

    def _check_ceiling(self) -> None:
        if self._ceiling is not None and monotonic() > self._ceiling:
            self._ceiling = None
            self._aggregator.tell(AskStop("the ceiling of wall time was reached", "WALL_CEILING"))

    # ---- the end

    def _see_out(self) -> None:
        """Workers leave by themselves; then the aggregator clears the run's topics."""
        workers = [name for name in self._fleet.children if name != AGGREGATOR]
        self._fleet.join(workers, END_WAIT_S)
        self._aggregator.tell(Finish())
        self._fleet.join([AGGREGATOR], END_WAIT_S)

    def _asked(self, signal: str) -> None:
        self._interrupts += 1
        self._aggregator.tell(AskStop(signal, "INTERRUPTED"))


def _readable(pipe: Connection) -> bool:
    try:
        return pipe.poll()
    except OSError:
        return False


def log_tail(run: Path, name: str) -> str:
    """The last lines of a child's log, found from its end."""
    path = run / "logs" / f"{name}.log"
    if not path.exists():
        return f"  (no {path.name})"
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(f"  {path.name}: {line}" for line in lines[-12:])
