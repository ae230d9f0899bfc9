#!/usr/bin/env python3
"""How V falls within bins, and what other rules would have done: `characterize_variance_curve.py RUN... [--bins N] [--rule R]...`."""

import argparse
from pathlib import Path

from start import RUNS, count, start

RULES = ["cap,max=5", "cap,max=10", "plateau,patience=3,eps=0.15", "plateau,patience=5,eps=0.1"]


def main() -> None:
    """Print decay, reasons and counterfactual stops of each run; draw all decay curves. A rule: `variance,threshold=0.3;cap,max=20`."""
    from flame.analysis.tables import markdown
    from flame.analysis.variance import compared, decay, mean_decay, parse, reasons
    from flame.figures.families.variance import VarianceDecay
    from flame.figures.page import draw, shown, taken
    from flame.figures.scene import Scene

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUNS)
    parser.add_argument("--bins", metavar="N", type=count, help="only the first N bins of each run, for a like-for-like comparison")
    parser.add_argument("--rule", metavar="R", action="append", help=f"where it would have stopped; repeatable; else {' | '.join(RULES)}")
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("figures/variance"), help="folder of the figure (%(default)s)")
    asked = parser.parse_args()
    arms, rules = taken(asked.runs), {rule: parse(rule) for rule in asked.rule or RULES}
    for learned in (each for runs in arms.values() for each in runs):
        curves = decay(learned.rounds, asked.bins)
        tables = (mean_decay(curves), reasons(learned.rounds), compared(curves, rules))
        print(learned.run.label, *(f"{markdown(table)}\n" for table in tables), sep="\n")
    print(*draw({"decay": VarianceDecay(bins=asked.bins, least=1)}, Scene(shown(arms)), asked.out), sep="\n")


if __name__ == "__main__":
    start(main)
