"""One simulation of a sweep, as a process: `python -m flame.launch.sweeping.arm < order`.

The order is one line of JSON. Standard input stays open as long as somebody waits for the run; its end, however it came
about, ends the run in order, so that it can be resumed. The last line of standard output is how the run has ended.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.config.world import World
from flame.launch.run import Run, resume, run
from flame.launch.screen.progress import GOOD
from flame.runtime.books.checkpoint import NoCheckpoint
from flame.runtime.brokers.guard import wait_for_end_of_stdin

REFUSED = 2


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run, where; path: the run to go on with, if there is one."""

    condition: str
    world: str
    run_set: str
    runs: str
    path: str | None


def main() -> None:
    """Take the order, carry it out, say how it went."""
    order = Order(**orjson.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        print(_told(_carried_out(order)))
    except ConfigError as error:
        print(f"{error.what}; {error.hint}", file=sys.stderr)
        raise SystemExit(REFUSED) from None


def _carried_out(order: Order) -> Run:
    """A run that can't go on, because other code wrote its checkpoint, begins again."""
    condition, world = Condition.model_validate_json(order.condition), World.model_validate_json(order.world)
    if order.path is not None:
        with suppress(NoCheckpoint):
            return resume(Path(order.path), condition, world)
    return run(condition, world, run_set=order.run_set, runs=Path(order.runs))


def _told(ended: Run) -> str:
    """`COMPLETED`; of a bad end also why and where."""
    reason = ended.reason.partition("\n")[0]
    return ended.verdict if ended.verdict in GOOD else f"{ended.verdict}: {reason} ({ended.path.name})"


def _end_with_stdin() -> None:
    wait_for_end_of_stdin()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
