#!/usr/bin/env python3
"""What forward-mode steps of a run's condition cost on this machine: `profile_jvp.py RUN [--probes 1 10] [--bins 5]`."""

import argparse

from start import count, start


def main() -> None:
    """Print a row for each number of probes, in one pass and one by one."""
    import polars as pl

    from flame.analysis.tables import markdown
    from flame.figures.page import one
    from flame.learn.timing import steps

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", metavar="RUN", help="a run directory, whose condition is taken")
    parser.add_argument("--probes", metavar="P", type=count, nargs="+", default=[1, 2, 5, 10], help="numbers of probes (1 2 5 10)")
    parser.add_argument("--bins", metavar="N", type=count, default=5, help="bins that are timed, the median is told (%(default)s)")
    asked = parser.parse_args()
    rows = list(steps(one(asked.run).run.condition, asked.probes, asked.bins))
    print(markdown(pl.DataFrame(rows, schema=["probes", "taken", "ms_a_step", "ms_a_probe"], orient="row")))


if __name__ == "__main__":
    start(main)
