"""One simulation of a sweep, as a process: `python -m flame.launch.arm < order`.

The order is one line of JSON. Standard input stays open as long as somebody waits for the run; its end, however it came
about, ends the run in order, so that it can be resumed.
"""

import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import orjson

from flame.config.condition import Condition
from flame.config.world import World
from flame.launch.run import resume, run
from flame.runtime.guard import wait_for_end_of_stdin


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run, where; path: the run to go on with, if there is one."""

    condition: str
    world: str
    run_set: str
    runs: str
    path: str | None


def main() -> None:
    """Take the order, carry it out."""
    order = Order(**orjson.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    condition, world = Condition.model_validate_json(order.condition), World.model_validate_json(order.world)
    if order.path is not None:
        resume(Path(order.path), condition, world)
    else:
        run(condition, world, run_set=order.run_set, runs=Path(order.runs))


def _end_with_stdin() -> None:
    wait_for_end_of_stdin()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
