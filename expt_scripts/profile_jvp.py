#!/usr/bin/env python3
"""What forward-mode steps of a run's condition cost on this machine: `profile_jvp.py RUN [--probes 1 10] [--bins 5]`."""

import argparse

from start import start


def main() -> None:
    """Print a row for each number of probes, in one pass and one by one."""
    import polars as pl

    from flame.analysis.tables import markdown
    from flame.figures.page import taken
    from flame.learn.timing import steps

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--probes", type=int, nargs="+", default=[1, 2, 5, 10])
    parser.add_argument("--bins", type=int, default=5)
    asked = parser.parse_args()
    ((learned,),) = taken([asked.run]).values()
    rows = list(steps(learned.run.condition, asked.probes, asked.bins))
    print(markdown(pl.DataFrame(rows, schema=["probes", "taken", "ms_a_step", "ms_a_probe"], orient="row")))


if __name__ == "__main__":
    start(main)
