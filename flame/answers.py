"""What somebody who is asked yes or no has typed."""

from typing import TextIO


def yes(typed: TextIO, *, unasked: bool = True) -> bool:
    """Whether the next line is a yes; an empty one is `unasked`. The end of the input, as Ctrl-D makes it, is a no."""
    line = typed.readline()
    return line != "" and line.strip().lower() in ("y", "yes", *([""] if unasked else []))
