"""Decay curves and what other rules would have done, by hand."""

import polars as pl
import pytest

from flame.analysis.learned import Learned
from flame.analysis.variance import compared, decay, mean_decay, parse, reasons, stops
from flame.config.errors import ConfigError
from tests.analysis.conftest import records

V = [[0.9, 0.5, 0.45, 0.44], [0.8, 0.2], [0.9, 0.7]]
"""Three bins, the last incomplete."""


def rounds() -> pl.DataFrame:
    """Their closes, in order; K = 5 uploads each."""
    rows = []
    for data_id, curve in enumerate(V):
        for iteration, variance in enumerate(curve):
            committed = data_id < 2 and iteration == len(curve) - 1
            reason = ("cap", "natural")[data_id] if committed else "keep"
            rows.append((len(rows), 0, data_id, iteration, 5 * (iteration + 1), variance, 0.3, committed, reason))
    names = ["cycle", "round", "data_id", "iteration", "pool", "variance", "threshold", "committed", "reason"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_decay_is_a_row_a_close_and_knows_what_is_complete() -> None:
    table = decay(rounds())
    assert table["bin"].to_list() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert table["complete"].to_list() == [True] * 6 + [False] * 2
    assert table["n"].to_list() == [5, 10, 15, 20, 5, 10, 5, 10]
    assert decay(rounds(), bins=1)["variance"].to_list() == V[0]


def test_the_same_bin_of_two_laps_is_two_bins() -> None:
    twice = pl.concat([rounds().head(4), rounds().head(4).with_columns(cycle=pl.col("cycle") + 4, round=pl.lit(1, pl.Int64))])
    assert decay(twice)["bin"].to_list() == [0] * 4 + [1] * 4


def test_means_are_over_the_bins_that_got_there() -> None:
    table = mean_decay(decay(rounds()))
    assert table.select("iteration", "bins", "n").rows() == [(0, 3, 5.0), (1, 3, 10.0), (2, 1, 15.0), (3, 1, 20.0)]
    assert table["median"].to_list() == [0.9, 0.5, 0.45, 0.44]
    assert table["low"].to_list()[:2] == pytest.approx([0.85, 0.35])


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("cap,max=2", [(1, 10, 0.5, "cap"), (1, 10, 0.2, "cap")]),
        ("cap,max=3", [(2, 15, 0.45, "cap"), (1, 10, 0.2, "open")]),
        ("variance,threshold=0.48", [(2, 15, 0.45, "natural"), (1, 10, 0.2, "natural")]),
        # a drop of 10 % from 0.5 to 0.45 is under 15 %; one of 44 % is not
        ("plateau,patience=1,eps=0.15", [(2, 15, 0.45, "plateau"), (1, 10, 0.2, "open")]),
        ("variance,threshold=0.3;plateau,patience=1,eps=0.05", [(3, 20, 0.44, "plateau"), (1, 10, 0.2, "natural")]),
        ("plateau,patience=3,eps=0.9", [(3, 20, 0.44, "plateau"), (1, 10, 0.2, "open")]),
    ],
)
def test_other_rules_stop_where_a_hand_says(rules: str, expected: list[tuple[int, int, float, str]]) -> None:
    assert stops(decay(rounds()), parse(rules)).select("iteration", "n", "variance", "reason").rows() == expected


def test_rules_are_compared_over_the_same_complete_bins() -> None:
    table = compared(decay(rounds()), {name: parse(name) for name in ("cap,max=2", "cap,max=3")})
    assert table.drop("mean_variance").rows() == [("cap,max=2", 2, 1, 1, 0, 1.0), ("cap,max=3", 2, 1, 0, 1, 2.0)]


def test_the_rules_of_a_run_stop_its_bins_where_it_did(plain: Learned) -> None:
    rules = plain.run.condition.commit
    found = stops(decay(plain.rounds), rules)
    commits = [each for each in records(plain.run.path, "agg_round") if each["committed"]]
    assert found["iteration"].to_list() == [each["at"]["iteration"] for each in commits]
    assert found["reason"].to_list() == [each["reason"] for each in commits]
    counts = dict(reasons(plain.rounds).iter_rows())
    assert counts == {name: sum(each["reason"] == name for each in records(plain.run.path, "agg_round")) for name in counts}
    assert sum(counts.values()) == 25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no commit rule"),
        ("plato", "unknown commit policy `plato` in `plato`\nhint: did you mean `plateau`?"),
        ("cap,20", "`20` in `cap,20` is not of the form `key=value`"),
        ("cap,max=0", "`commit.0.max` is `0`"),
        ("cap,maxi=3", "unknown key `commit.0.maxi`"),
    ],
)
def test_rules_that_can_not_be_meant_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text)
    assert message in str(refused.value)
