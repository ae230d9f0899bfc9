"""`python -m flame.launch.cli`: the same as `flame`."""

from flame.launch.cli import main

main()
