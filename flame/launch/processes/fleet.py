"""The processes of one real run: started from a fork server, restarted, and torn down to the last.

One process group per run. The fork server has torch loaded, so ten trainers are up in seconds and
share its pages. Teardown is TERM, a grace, KILL, and a look whether anything is left.
"""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from time import monotonic, sleep
from typing import Any

from flame.core.messages import AGGREGATOR
from flame.launch.processes.hosting import Spec
from flame.launch.processes.mains import aggregator_main, worker_main
from flame.runtime.compute.executors import fork_server
from flame.runtime.control import Founded
from flame.runtime.transport.session import incarnation_of

GRACE_S = 3.0
FOUND_WAIT_S = 60.0
"""How long the first child may take to exist: the fork server loads torch before it."""


class StartError(Exception):
    """A run's processes can't be started. str() says why, and a remedy."""


@dataclass(slots=True)
class Child:
    """One process. life: which of its worker's, over all parts of a run. respawns: how often it was started again. buried: its
    death has been dealt with."""

    name: str
    nodes: list[str]
    process: ForkServerProcess
    pipe: Connection
    life: int = 0
    respawns: int = 0
    ready: bool = False
    buried: bool = False

    @property
    def incarnation(self) -> str:
        """What a worker of this life calls itself."""
        return incarnation_of(self.name, self.life)

    def tell(self, order: Any) -> None:
        """Send an order; a dead child doesn't hear it."""
        try:
            self.pipe.send(order)
        except OSError:
            return


def _founded(pipe: Connection) -> bool:
    """Whether the first child has made its group; until then nobody can join it."""
    try:
        return pipe.poll(FOUND_WAIT_S) and isinstance(pipe.recv(), Founded)
    except (EOFError, OSError):
        return False


class Fleet:
    """The aggregator and the workers of one run."""

    def __init__(self, spec: Spec) -> None:
        self._context = fork_server()
        self._spec = spec
        self.children: dict[str, Child] = {}

    def start(self) -> None:
        """Start everybody. Raises StartError where the first process isn't up in time: the others join its group."""
        self._start(AGGREGATOR, [AGGREGATOR], aggregator_main, ())
        if not self._spec.group:
            self.kill(AGGREGATOR)
            raise StartError(
                f"the aggregator's process wasn't up after {FOUND_WAIT_S:.0f} s, or ended at once\n"
                "hint: see logs/aggregator.log; a machine that is this busy can't hold a real run: try again when it is quieter"
            )
        for name, nodes in self._spec.slots().items():
            if name not in self._spec.remote():
                self._start_worker(name, nodes, 0)

    def restart(self, child: Child) -> None:
        """Start a worker again that has died."""
        child.pipe.close()
        self._start_worker(child.name, child.nodes, child.respawns + 1)

    def _start_worker(self, name: str, nodes: list[str], respawn: int) -> None:
        life = self._spec.lives + respawn
        self._start(name, nodes, worker_main, (name, life, nodes))
        self.children[name].life, self.children[name].respawns = life, respawn

    def _start(self, name: str, nodes: list[str], main: Callable[..., None], args: tuple[Any, ...]) -> None:
        mine, theirs = self._context.Pipe()
        process = self._context.Process(target=main, args=(self._spec, *args, theirs), name=name, daemon=True)
        process.start()
        theirs.close()
        self.children[name] = Child(name, nodes, process, mine)
        if self._spec.group == 0 and process.pid is not None and _founded(mine):
            self._spec = replace(self._spec, group=process.pid)

    def remote(self) -> dict[str, list[str]]:
        """Workers that others start, with their trainers."""
        return {name: nodes for name, nodes in self._spec.slots().items() if name in self._spec.remote()}

    @property
    def group(self) -> int:
        """The process group of the run."""
        return self._spec.group

    def kill(self, name: str) -> None:
        """Kill one child now."""
        self.children[name].process.kill()

    def join(self, names: list[str], patience: float) -> list[str]:
        """Wait for these to end; who is left after `patience` seconds."""
        until = monotonic() + patience
        for name in names:
            self.children[name].process.join(max(0.0, until - monotonic()))
        return [name for name in names if self.children[name].process.is_alive()]

    def tear_down(self) -> None:
        """TERM, grace, KILL; then nothing of the group is left."""
        names = list(self.children)
        for signum in (signal.SIGTERM, signal.SIGKILL):
            if not self.join(names, 0.0) and not self._group_alive():
                break
            self._signal_group(signum)
            self.join(names, GRACE_S)
        for child in self.children.values():
            child.pipe.close()
        self._wait_gone()

    def _wait_gone(self) -> None:
        until = monotonic() + GRACE_S
        while self._group_alive() and monotonic() < until:
            sleep(0.02)

    def _group_alive(self) -> bool:
        try:
            os.killpg(self._spec.group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return self._spec.group != 0

    def _signal_group(self, signum: int) -> None:
        try:
            if self._spec.group:
                os.killpg(self._spec.group, signum)
        except ProcessLookupError:
            return
