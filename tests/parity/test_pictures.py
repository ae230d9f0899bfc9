"""Pictures of whatever a rung may have looked at: well formed, within their frame, and true to it."""

from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.engine import Result
from parity.exhibits import Exhibit, Samples, Sequences, Tally, Timelines
from parity.reports.page.pictures import HEIGHT, MOST_CELLS, WIDTH, picture_of
from parity.reports.printable import printable
from parity.rung import DIST, Finding
from parity.rungs import LADDER

numbers = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=40)
values = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3), st.lists(st.sampled_from(["t1", "t2", "t3"]), max_size=9)
)


def drawn(exhibit: Exhibit | None = None, **finding: Any) -> str | None:
    return picture_of(Result(LADDER.rungs[0], DIST, "PASS", Finding(True, exhibit=exhibit, **finding), ""))


def check_within(svg: str | None) -> None:
    """It is XML, and every coordinate is a number inside the frame."""
    if svg is None:
        return
    root = fromstring(printable(svg))
    wide, high = float(root.attrib["width"]), float(root.attrib["height"])
    for each in root.iter():
        points = [tuple(map(float, point.split(","))) for point in each.get("points", "").split()]
        if each.tag == "rect":
            x, y, width, height = (float(each.attrib[name]) for name in ("x", "y", "width", "height"))
            assert width >= 0
            assert height >= 0
            points += [(x, y), (x + width, y + height)]
        assert all(-4 <= x <= wide + 4 and -4 <= y <= high + 4 for x, y in points), (each.tag, points)


@settings(max_examples=60, deadline=None)
@given(numbers, numbers, st.booleans())
def test_any_samples(real: list[float], sim: list[float], aligned: bool) -> None:
    check_within(drawn(Samples(np.array(real, np.float64), np.array(sim, np.float64), aligned)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(values, values), min_size=1, max_size=60))
def test_any_sequences(pairs: list[tuple[object, object]]) -> None:
    real, sim = ([pair[side] for pair in pairs] for side in (0, 1))
    parted = [one != two for one, two in pairs]
    svg = drawn(Sequences("cycles", [f"cycle {number}" for number in range(len(pairs))], real, sim, parted))
    check_within(svg)
    if svg is not None and "of both runs" in svg:
        assert f"{sum(parted)} of {len(pairs)} differ" in svg
        assert svg.count('class="parted-band"') <= min(sum(parted), MOST_CELLS)
        assert any(parted) == ('class="parted-band"' in svg)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 9))
def test_any_tally(real: int, sim: int, wrong: int) -> None:
    svg = drawn(Tally("rows", {"real": (real, 0), "sim": (sim, wrong)}))
    check_within(svg)
    assert ('class="parted-bar"' in str(svg)) == (wrong > 0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**10), st.integers(1, 10**9), st.booleans()), max_size=30), st.integers(1, 60))
def test_any_timeline(bars: list[tuple[int, int, bool]], trainers: int) -> None:
    lanes: dict[str, list[tuple[int, int, bool]]] = {f"t{number}": [] for number in range(trainers)}
    for number, (start, long, overlaps) in enumerate(sorted(bars)):
        lanes[f"t{number % trainers}"].append((start, start + long, overlaps))
    svg = drawn(Timelines({"real": lanes, "sim": {}}))
    check_within(svg)
    if any(overlaps for _, _, overlaps in bars):
        assert 'class="parted-bar"' in str(svg)


def test_a_number_without_a_tolerance_has_no_picture_and_one_with_it_has() -> None:
    assert drawn(effect=3.0) is None
    assert drawn() is None
    svg = drawn(effect=11.0, tol=1.0)
    check_within(svg)
    assert "tolerance 1" in str(svg)
    assert (WIDTH, HEIGHT) == (300.0, 64.0)


def test_equal_samples_lie_on_each_other_and_shifted_ones_are_marked() -> None:
    sample = np.arange(10.0)
    same, shifted = drawn(Samples(sample, sample, False)), drawn(Samples(sample, sample + 3, False))
    assert 'class="parted"' not in str(same)
    assert 'class="parted"' in str(shifted)
    lines = [line.attrib["points"] for line in fromstring(str(same)).iter("polyline")]
    assert lines[1] == lines[2]
