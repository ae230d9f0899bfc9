"""Checkpoints: the state of a run while nothing is half-way, and how far its books were written by then.

A checkpoint is the machines as they are, what they wait for (a simulation's heap, a real aggregator's timers and open
assigns), and the jobs that are out as tasks: tasks are pure, so what was being computed is computed again. It stands in
one file, written aside and renamed. Going on from it cuts the books back to where they were, so that what follows is
what would have followed.

The file is a pickle of this very code's objects: it holds the code's digest, and another code refuses it.
"""

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from flame.config.world import World
from flame.runtime.books.process_books import Books, Place, code_digest

NAME = "checkpoint"

EVERY = {"sim": 25, "real": 1}
"""Commits between two of them, where the world doesn't say."""


class NoCheckpoint(Exception):
    """There is nothing to go on from. str() says why."""


@dataclass(slots=True)
class Checkpoint:
    """What lies in the file. code: of the code that wrote it. place: of its books. state: `sim.State`, or a real run's `Standing`."""

    code: str
    place: Place
    state: Any

    @classmethod
    def read(cls, run: Path) -> Self:
        """The last one of a run. Raises NoCheckpoint where there is none, or one of another code."""
        try:
            file = (run / NAME).open("rb")
        except FileNotFoundError:
            raise NoCheckpoint("it was stopped before its first checkpoint") from None
        with file:
            code = pickle.load(file)
            if code != code_digest():
                raise NoCheckpoint(f"its checkpoint was written by other code ({code}, this is {code_digest()})")
            return cls(code, *pickle.load(file))

    def write(self, run: Path) -> None:
        """Whole, or not at all."""
        aside = run / f"{NAME}.part"
        with aside.open("wb") as file:
            pickle.dump(self.code, file, pickle.HIGHEST_PROTOCOL)
            pickle.dump((self.place, self.state), file, pickle.HIGHEST_PROTOCOL)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(run / NAME)


class Checkpoints:
    """Writes one when a run begins, and after every `every` commits."""

    def __init__(self, run: Path, books: Books, every: int) -> None:
        self._run, self._books, self._every = run, books, every
        self._last: int | None = None

    def keep(self, version: int, state: Callable[[], Any]) -> None:
        """Nothing is half-way, the model is at `version`: write one if it is time."""
        if self._last is None or version - self._last >= self._every:
            self._last = version
            Checkpoint(code_digest(), self._books.place(), state()).write(self._run)


def keeper(run: Path, books: Books, world: World) -> Callable[[int, Callable[[], Any]], None] | None:
    """What keeps the state of a run of that world; None where it wants none."""
    every = EVERY[world.kind] if world.checkpoint is None else world.checkpoint
    return Checkpoints(run, books, every).keep if every else None
