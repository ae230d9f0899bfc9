#!/usr/bin/env python3
"""Class shares of clients, bins and cohorts under several deals, beside accuracy: `diagnose_partition_binning.py RUN [--alpha A]...`."""

import argparse
from pathlib import Path

from start import above_zero, start


def main() -> None:
    """Print skews and rank correlations; draw a map of shares for each deal, and the cohorts' skew over the falls of accuracy."""
    from flame.analysis import skew
    from flame.analysis.tables import into, markdown
    from flame.figures.page import one, plot_shares, plot_skew
    from flame.learn.data.dealt import dealt

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", metavar="RUN", help="a run directory")
    parser.add_argument(
        "--alpha", metavar="A", type=above_zero, action="append", default=[], help="another deal beside the run's own; repeatable"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("figures/skew"), help="folder of the figures (%(default)s)")
    asked = parser.parse_args()
    into(asked.out)
    run = one(asked.run)
    held = {name: dealt(run.run.condition, alpha) for name, alpha in (("as run", None), *((f"alpha {a:g}", a) for a in asked.alpha))}
    deals = {name: (skew.Deal(labels, parts, run.run.condition.batch_size), lap) for name, (labels, parts, lap) in held.items()}
    cohorts = {name: skew.cohorts(deal, run.rounds, lap) for name, (deal, lap) in deals.items()}
    for name, (deal, lap) in deals.items():
        print(name, markdown(skew.overview(deal, lap, cohorts[name], run.evaluations)), "", sep="\n")
        print(*plot_shares(skew.clients(deal), asked.out, f"shares-{name.replace(' ', '-')}"), sep="\n")
    print(*plot_skew(cohorts, skew.drops(cohorts["as run"], run.evaluations), asked.out), sep="\n")


if __name__ == "__main__":
    start(main)
