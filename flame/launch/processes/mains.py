"""What runs in the processes of a real run: the aggregator's and the workers' main functions.

Each has its output in `logs/`, belongs to the run's process group, leaves Ctrl-C to the launcher, and
holds a pipe to it: orders come through it, and when it ends, the launcher is gone and so is the child.
"""

import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread, Timer
from typing import Any

from flame.core.messages import AGGREGATOR, Presence
from flame.core.profile import Profile
from flame.core.time import in_seconds
from flame.launch.processes.hosting import Spec, close, heartbeat, serve, transport_of
from flame.learn.learner import build
from flame.roles.aggregator import Aggregator
from flame.runtime.aggregator_side import AggregatorSide, Standing
from flame.runtime.books.checkpoint import Checkpoint, keeper
from flame.runtime.books.process_books import open_books, presence, verdict_of, write_verdict
from flame.runtime.compute.executors import Beside
from flame.runtime.control import Crashed, Finish, Founded, Orphaned
from flame.runtime.real import Driver
from flame.runtime.transport.invitation import Invitation

LAST_SECONDS = 5.0
"""How long a child without a launcher may take to end in order."""

FINISH_WAIT = 30.0
"""How long the aggregator waits, after the end, to be told that the workers are gone."""


def aggregator_main(spec: Spec, pipe: Connection) -> None:
    """The aggregator's process."""
    with _Child(spec, AGGREGATOR, pipe) as child:
        condition = spec.condition
        learner = build(condition, prefix_cache=spec.world.prefix_cache, device=spec.seat(AGGREGATOR).device)
        facts = learner.facts
        kept = Checkpoint.read(spec.run) if spec.lives else None
        books = open_books(spec.run, AGGREGATOR, "1", condition, spec.world, facts, [AGGREGATOR], kept.place if kept else None)
        standing: Standing | None = kept.state if kept else None
        aggregator = standing.aggregator if standing else Aggregator(condition, facts.init, facts.bins, spec.world.level, facts.layout)
        mine, keep = presence(AGGREGATOR, "1", Profile(AGGREGATOR, 0), facts, spec.code), keeper(spec.run, books, spec.world)
        side = AggregatorSide(aggregator, mine, child.report, keep, standing, spec.lives, _invitation(spec, mine))
        transport = transport_of(spec, AGGREGATOR, "1", [AGGREGATOR], child.mailbox, listens=True)
        compute = Beside(learner, child.mailbox.put)
        driver = Driver({AGGREGATOR: aggregator}, side, transport, child.mailbox, compute, books.journal, books.sink, heartbeat(condition))
        stop = driver.run()
        close(books, AGGREGATOR, driver, learner)
        write_verdict(spec.run, verdict_of(aggregator, stop.verdict, stop.reason, in_seconds(driver.now)))
        child.wait_for_finish()
        transport.clear()
        transport.close()


def _invitation(spec: Spec, mine: Presence) -> Invitation | None:
    """For those who join from elsewhere, where somebody is to."""
    slots = {name: nodes for name, nodes in spec.slots().items() if name in spec.remote()}
    if not slots:
        return None
    condition, world = spec.condition.model_dump(mode="json"), spec.world.model_dump(mode="json")
    return Invitation(spec.run.name, condition, world, mine.init, mine.data, mine.code, slots)


def worker_main(spec: Spec, name: str, life: int, nodes: list[str], pipe: Connection) -> None:
    """A worker's process: it hosts the trainers `nodes`."""
    with _Child(spec, name, pipe) as child:
        learner = build(spec.condition, prefix_cache=spec.world.prefix_cache, device=spec.seat(name).device)
        stop = serve(spec, name, life, nodes, learner, child.mailbox, child.report)
        if stop.verdict == "CRASH":
            child.report(Crashed(name, stop.reason))


class _Child:
    """The frame of a child's life: group, signals, log file, pipe."""

    def __init__(self, spec: Spec, name: str, pipe: Connection) -> None:
        self.mailbox: SimpleQueue[Any] = SimpleQueue()
        self._spec, self._name, self._pipe = spec, name, pipe
        self._orphaned = False

    def __enter__(self) -> "_Child":
        os.environ.clear()
        os.environ.update(self._spec.environment)
        os.setpgid(0, self._spec.group)
        if (cores := self._spec.seat(self._name).cores) and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)
        if self._spec.group == 0:
            self.report(Founded())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._redirect()
        Thread(target=self._listen, name="pipe", daemon=True).start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            traceback.print_exception(error)
            self.report(Crashed(self._name, f"{type(error).__name__}: {error}"))
        sys.stdout.flush()
        sys.stderr.flush()
        self._pipe.close()
        os._exit(0 if error is None else 1)

    def report(self, message: Any) -> None:
        """Tell the launcher; if it is gone, the pipe's thread knows it too."""
        try:
            self._pipe.send(message)
        except OSError:
            self.mailbox.put(Orphaned())

    def wait_for_finish(self) -> None:
        """Until the launcher says that everybody else is gone, or FINISH_WAIT; not at all without a launcher."""
        if self._orphaned:
            return
        patience = Timer(FINISH_WAIT, lambda: self.mailbox.put(Orphaned()))
        patience.daemon = True
        patience.start()
        while not isinstance(self.mailbox.get(), Finish | Orphaned):
            pass

    def _listen(self) -> None:
        try:
            while True:
                self.mailbox.put(self._pipe.recv())
        except (EOFError, OSError):
            self._orphaned = True
            self.mailbox.put(Orphaned())
            last = Timer(LAST_SECONDS, lambda: os._exit(3))
            last.daemon = True
            last.start()

    def _redirect(self) -> None:
        path = self._spec.run / "logs" / f"{self._name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as log:
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
