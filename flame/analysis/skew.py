"""How skewed data are dealt: class shares of clients, of bins and of cohorts, and whether accuracy falls with them.

A share is of samples. Skew is the total variation distance of a mix of classes from that of all clients together: 0 is
the same mix, and 1 has no class in common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import spearmanr

Positions = NDArray[np.int64]
Mix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Deal:
    """labels: of all samples. parts: positions of each client's, in bin order. size: samples of a bin."""

    labels: NDArray[np.int64]
    parts: Mapping[str, Positions]
    size: int

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.labels.max()) + 1

    @property
    def bins(self) -> int:
        """Of a lap: whole bins of the smallest client."""
        return min(len(part) for part in self.parts.values()) // self.size

    def mix(self, positions: Positions) -> Mix:
        """Share of each class, (classes,)."""
        return np.bincount(self.labels[positions], minlength=self.classes) / len(positions)

    @property
    def prior(self) -> Mix:
        """Of all clients together."""
        return self.mix(np.concatenate(list(self.parts.values())))

    def bin(self, node: str, data_id: int) -> Positions:
        """One bin of one client."""
        return self.parts[node][data_id * self.size : (data_id + 1) * self.size]


def distance(one: Mix, other: Mix) -> float:
    """Total variation, 0 to 1."""
    return float(np.abs(one - other).sum() / 2)


def clients(deal: Deal) -> pl.DataFrame:
    """A row a client and class: its share; and the client's skew and size."""
    prior = deal.prior
    mixes = [(node, len(part), deal.mix(part)) for node, part in deal.parts.items()]
    rows = [(node, size, label, share, distance(mix, prior)) for node, size, mix in mixes for label, share in enumerate(mix)]
    return pl.DataFrame(rows, schema=["client", "samples", "class", "share", "skew"], orient="row")


def bins(deal: Deal, most: int | None = None) -> pl.DataFrame:
    """A row a bin of a lap: the mean skew of the clients' bins, and that of all of them pooled."""
    prior, lap = deal.prior, min(deal.bins, most or deal.bins)
    rows = []
    for data_id in range(lap):
        held = [deal.bin(node, data_id) for node in deal.parts]
        alone = float(np.mean([distance(deal.mix(each), prior) for each in held]))
        rows.append((data_id, alone, distance(deal.mix(np.concatenate(held)), prior)))
    return pl.DataFrame(rows, schema=["data_id", "client_skew", "pooled_skew"], orient="row")


def cohorts(deal: Deal, rounds: pl.DataFrame, most: int | None = None) -> pl.DataFrame:
    """A row a closed cycle of a run: the skew of its cohort's bins, pooled; the deal may be another than the run's."""
    prior, lap = deal.prior, min(deal.bins, most or deal.bins)
    rows = []
    for cycle, version, data_id, cohort in rounds.sort("cycle").select("cycle", "model_version", "data_id", "cohort").iter_rows():
        held = np.concatenate([deal.bin(member["trainer"], data_id % lap) for member in cohort])
        rows.append((cycle, version, distance(deal.mix(held), prior)))
    return pl.DataFrame(rows, schema={"cycle": pl.Int64, "model_version": pl.Int64, "skew": pl.Float64}, orient="row")


def drops(cohort_skew: pl.DataFrame, evaluations: pl.DataFrame) -> pl.DataFrame:
    """A row a commit that was evaluated, but the first: by how much accuracy fell at it, and the mean skew of the cycles behind it."""
    pooled = cohort_skew.group_by(version=pl.col("model_version") + 1).agg(skew=pl.col("skew").mean())
    fell = evaluations.sort("version").with_columns(drop=pl.col("accuracy").shift(1) - pl.col("accuracy")).select("version", "drop")
    return fell.join(pooled, on="version", maintain_order="left").drop_nulls()


def rank_correlation(table: pl.DataFrame, one: str, other: str) -> tuple[float, float] | None:
    """Spearman's rho and its p; None for fewer than three rows or a constant column."""
    columns: Sequence[pl.Series] = [table[one], table[other]]
    if table.height < 3 or any(column.n_unique() < 2 for column in columns):
        return None
    found = spearmanr(columns[0].to_numpy(), columns[1].to_numpy())
    return float(found.statistic), float(found.pvalue)


def overview(deal: Deal, lap: int, cohort_skew: pl.DataFrame, evaluations: pl.DataFrame) -> pl.DataFrame:
    """One row: mean skew of clients, of bins, of bins of all clients pooled, of cohorts; its rank correlation with falls of accuracy."""
    held, each = bins(deal, lap), clients(deal).unique("client")
    found = rank_correlation(drops(cohort_skew, evaluations), "skew", "drop")
    rho, p = found if found is not None else (None, None)
    largest = clients(deal).group_by("client").agg(pl.col("share").max())["share"].median()
    columns = {
        "clients": each.height, "largest_class": largest, "client_skew": each["skew"].mean(), "bin_skew": held["client_skew"].mean(),
        "pooled_bin_skew": held["pooled_skew"].mean(), "cohort_skew": cohort_skew["skew"].mean(), "rank_correlation": rho, "p": p,
    }  # fmt: skip
    return pl.DataFrame([columns])
