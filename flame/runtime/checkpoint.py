"""Checkpoints of a simulation: its state between two entries, and how far its books were written by then.

A checkpoint is the machines as they are, the heap, and the jobs that are out as tasks: tasks are pure, so what was being
computed is computed again. It stands in one file, written aside and renamed. Going on from it cuts the books back to
where they were, so that what follows is what would have followed.

The file is a pickle of this very code's objects: it holds the code's digest, and another code refuses it.
"""

import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from flame.runtime.books import Books, Place, code_digest
from flame.runtime.sim import Simulation, State

NAME = "checkpoint"


class NoCheckpoint(Exception):
    """There is nothing to go on from. str() says why."""


@dataclass(slots=True)
class Checkpoint:
    """What lies in the file. code: digest of the code that wrote it. place: of its books."""

    code: str
    place: Place
    state: State

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
    """Writes one when a simulation begins, and after every `every` commits."""

    def __init__(self, run: Path, books: Books, every: int) -> None:
        self._run, self._books, self._every = run, books, every
        self._last: int | None = None

    def seen(self, simulation: Simulation) -> None:
        """An entry is done: write one if it is time."""
        if self._last is None or simulation.version - self._last >= self._every:
            self._last = simulation.version
            Checkpoint(code_digest(), self._books.place(), simulation.state()).write(self._run)
