"""Skew of a deal, by hand."""

import numpy as np
import polars as pl
import pytest

from flame.analysis.skew import Deal, bins, clients, cohorts, distance, drops, overview, rank_correlation

DEAL = Deal(np.array([0, 0, 0, 0, 1, 1, 1, 1]), {"a": np.array([0, 1, 2, 4]), "b": np.array([5, 6, 3, 7])}, 2)
"""Client a has classes 0 0 0 1, b has 1 1 0 1; bins of two."""


def test_clients_and_bins_by_hand() -> None:
    table = clients(DEAL)
    assert table.filter(pl.col("client") == "a").rows() == [("a", 4, 0, 0.75, 0.25), ("a", 4, 1, 0.25, 0.25)]
    # bin 0: a has 0 0, b has 1 1; pooled it is the prior. bin 1: a has 0 1, b has 0 1.
    assert bins(DEAL).rows() == [(0, 0.5, 0.0), (1, 0.0, 0.0)]
    assert bins(DEAL, most=1).height == 1


def test_distance_is_total_variation() -> None:
    assert distance(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1
    assert distance(np.array([0.5, 0.5]), np.array([0.25, 0.75])) == 0.25


def rounds(members: list[tuple[int, int, int, list[str]]]) -> pl.DataFrame:
    rows = [(cycle, version, data_id, [{"trainer": name} for name in names]) for cycle, version, data_id, names in members]
    return pl.DataFrame(rows, schema=["cycle", "model_version", "data_id", "cohort"], orient="row")


def test_cohorts_are_the_bins_that_were_pooled() -> None:
    table = cohorts(DEAL, rounds([(0, 0, 0, ["a"]), (1, 0, 0, ["a", "b"]), (2, 1, 1, ["b"]), (3, 2, 2, ["a"])]))
    assert table["skew"].to_list() == [0.5, 0.0, 0.0, 0.5]  # bin 2 is bin 0 again


def test_drops_are_paired_with_the_cycles_behind_the_commit() -> None:
    skew = pl.DataFrame({"cycle": [0, 1, 2, 3], "model_version": [0, 0, 1, 2], "skew": [0.2, 0.4, 0.6, 0.8]})
    evaluations = pl.DataFrame({"version": [1, 2, 3], "accuracy": [0.5, 0.25, 0.375]})
    assert drops(skew, evaluations).rows() == [(2, 0.25, 0.6), (3, -0.125, 0.8)]


def test_rank_correlation_is_of_ranks_and_absent_where_there_are_none() -> None:
    table = pl.DataFrame({"one": [1.0, 2.0, 10.0, 11.0], "two": [-1.0, 0.0, 0.5, 100.0], "flat": [1.0] * 4})
    assert rank_correlation(table, "one", "two") == (pytest.approx(1.0), pytest.approx(0.0))
    assert rank_correlation(table, "one", "flat") is None
    assert rank_correlation(table.head(2), "one", "two") is None


def test_an_overview_has_the_means_and_the_correlation() -> None:
    table = cohorts(DEAL, rounds([(n, n, n, names) for n, names in enumerate((["a"], ["a", "b"], ["b"], ["a"]))]))
    evaluations = pl.DataFrame({"version": [1, 2, 3, 4], "accuracy": [0.5, 0.6, 0.3, 0.1]})
    (row,) = overview(DEAL, 2, table, evaluations).rows(named=True)
    assert (row["clients"], row["largest_class"], row["client_skew"], row["bin_skew"]) == (2, 0.75, 0.25, 0.25)
    assert (row["pooled_bin_skew"], row["cohort_skew"]) == (0.0, pytest.approx(table["skew"].mean()))
    # skews 0, 0.5, 0 behind falls of -0.1, 0.3, 0.2: ranks 1.5, 3, 1.5 against 1, 3, 2
    assert row["rank_correlation"] == pytest.approx(0.8660254)
