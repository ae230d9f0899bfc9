"""Ctrl-C and TERM while a run goes on: told to the run, which ends in order."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any


@contextmanager
def on_signals(listener: Callable[[str], None]) -> Iterator[None]:
    """While inside, call `listener` with the signal's name. Elsewhere than in the main thread, signals stay as they are."""
    if current_thread() is not main_thread():
        yield
        return

    def asked(signum: int, frame: Any) -> None:
        listener(signal.Signals(signum).name)

    before = {signum: signal.signal(signum, asked) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
