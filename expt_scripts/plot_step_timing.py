#!/usr/bin/env python3
"""Where measured seconds went: `plot_step_timing.py RUN... [--out DIR]`; the coarse phases of a run where no step was timed."""

import argparse
from pathlib import Path

from start import RUNS, start


def main() -> None:
    """Print a table a run, and draw the shares of all."""
    from flame.analysis.phases import phases
    from flame.analysis.tables import markdown
    from flame.figures.page import plot_phases, taken

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUNS)
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("figures/timing"), help="folder of the figure (%(default)s)")
    asked = parser.parse_args()
    arms = taken(asked.runs)
    for learned in (each for runs in arms.values() for each in runs):
        print(f"{learned.run.label}, on {learned.device}", markdown(phases(learned.run)), "", sep="\n")
    print(*plot_phases(arms, asked.out), sep="\n")


if __name__ == "__main__":
    start(main)
