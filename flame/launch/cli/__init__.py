"""The command line. `flame.launch.cli.commands` is where it begins."""

from flame.launch.cli.commands import ABOUT, app, main

__all__ = ["ABOUT", "app", "main"]
