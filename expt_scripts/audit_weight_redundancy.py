#!/usr/bin/env python3
"""Weights that were sent to trainers who held them already: `audit_weight_redundancy.py RUN...`."""

import argparse

from start import RUNS, start


def main() -> None:
    """Print a row a run."""
    import polars as pl

    from flame.analysis.tables import markdown
    from flame.analysis.traffic import redundancy
    from flame.figures.page import taken

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUNS)
    arms = taken(parser.parse_args().runs)
    print(markdown(pl.concat([redundancy(learned.run) for runs in arms.values() for learned in runs], how="vertical_relaxed")))


if __name__ == "__main__":
    start(main)
