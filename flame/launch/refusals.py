"""How a command refuses: one message on stderr, exit code 2."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from flame.launch import screen

REFUSED = 2


@contextmanager
def refusals() -> Iterator[None]:
    """A configuration that can't be run is one message and exit code 2."""
    from flame.config.errors import ConfigError

    try:
        yield
    except ConfigError as error:
        screen.err().print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(REFUSED) from None
