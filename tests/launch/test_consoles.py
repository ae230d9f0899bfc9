"""Tables on terminals of any width: what is a number is never cut."""

from io import StringIO

import pytest
from rich.console import Console

from flame.config.sweeps import worded
from flame.launch.screen.consoles import table

POINT = worded({"perturb": {"type": "mean_of", "probes": 10}, "server_opt": {"type": "trust_ratio", "rho": 0.3, "schedule": "inverse"}})
TITLES = ("point", "n", "verdicts", "commits", "sustained")
ROWS = [[POINT, "3/3", "3 COMPLETED", "300", "0.917"], ["batch_size=4", "2/3", "2 COMPLETED", "301", "0.851"]]


def shown(width: int) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(table(console, TITLES, ROWS, ("commits", "verdicts"), TITLES[3:], folded="point"))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("width", range(50, 150, 3))
def test_a_long_cell_is_folded_before_a_number_is_cut_or_left_out(width: int) -> None:
    text = shown(width)
    assert max(map(len, text.splitlines())) <= width
    for number in ("3/3", "2/3", "0.917", "0.851"):
        assert number in text
    assert "".join(POINT.split()) in "".join(line[: text.index(" n ")] for line in text.splitlines()).replace(" ", "")
    assert ("300" in text) == (width >= 70)  # thirty columns for the point, forty for the rest


def test_a_policy_of_a_point_is_one_word() -> None:
    assert POINT == "perturb=mean_of(probes 10) server_opt=trust_ratio(rho 0.3, schedule inverse)"
    assert worded({"select": {"type": "random"}, "goal": 3}) == "select=random goal=3"


def test_policies_of_a_point_are_joined_and_inner_ones_are_words_too() -> None:
    gated = [{"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 3}]
    assert worded({"commit": gated}) == "commit=variance(threshold 0.3)+cap(max 3)"
    assert worded({"commit": ["agg_goal", gated[1]]}) == "commit=agg_goal+cap(max 3)"
    split = {"type": "split", "shares": 2, "of": {"type": "mean_of", "probes": 10}}
    assert worded({"perturb": split}) == "perturb=split(shares 2, of mean_of(probes 10))"
    assert worded({"perturb": {"type": "some", "of": [{"type": "guided"}, split]}}) == f"perturb=some(of guided+{worded({'': split})[1:]})"
    assert worded({"delays.values": [0.1, 0.2]}) == "delays.values=[0.1, 0.2]"
