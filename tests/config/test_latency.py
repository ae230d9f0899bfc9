"""Laws of latency: draws are distributed as the law says, and a file that holds none is refused."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.config.errors import ConfigError
from flame.config.latency import Law, drawn, read_law

LAWS = st.lists(st.floats(0, 10), min_size=2, max_size=20).map(lambda values: tuple(sorted(values)))


@given(LAWS, st.integers(0, 1 << 20))
def test_a_draw_lies_within_its_law_and_is_a_function_of_its_path(law: tuple[float, ...], place: int) -> None:
    value = drawn(law, 3, "legs", place)
    assert round(law[0] * 1e9) <= value <= round(law[-1] * 1e9)
    assert value == drawn(law, 3, "legs", place)


def test_draws_have_the_quantiles_of_the_law() -> None:
    law = (0.0, 0.001, 0.002, 0.01, 0.5)
    values = np.array([drawn(law, 7, "hold", place) for place in range(8_000)]) / 1e9
    assert [(values <= knot).mean() for knot in law[1:4]] == pytest.approx([0.25, 0.5, 0.75], abs=0.02)
    assert values.mean() == pytest.approx(np.mean([(one + two) / 2 for one, two in pairwise(law)]), rel=0.1)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"clients": {}}, "holds no latency law"),
        ([1.0], "holds no latency law"),
        ({"latency": {"legs_s": [0, 1]}}, "`latency.hold_s`"),
        ({"latency": {"legs_s": [1, 0], "hold_s": [0, 1]}}, "quantiles fall"),
        ({"latency": {"legs_s": [-1, 0], "hold_s": [0, 1]}}, "`latency.legs_s.0`"),
        ({"latency": {"legs_s": [0], "hold_s": [0, 1]}}, "`latency.legs_s`"),
    ],
)
def test_a_file_without_a_law_is_refused(held: object, said: str, tmp_path: Path) -> None:
    file = tmp_path / "law.json"
    file.write_text(json.dumps(held))
    with pytest.raises(ConfigError, match=said):
        read_law(str(file))


def test_an_evaluation_is_prompt_where_nothing_is_said(tmp_path: Path) -> None:
    file = tmp_path / "law.json"
    file.write_text(json.dumps({"latency": {"legs_s": [0, 1], "hold_s": [0, 1]}}))
    assert read_law(str(file)) == Law(legs_s=(0, 1), hold_s=(0, 1), eval_s=(0, 0))
