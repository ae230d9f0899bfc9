"""What is drawn is what was found: heights, curves and marks against the reducers."""

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from matplotlib.patches import Rectangle

from flame.analysis.learned import Learned
from flame.analysis.seeds import band
from flame.analysis.utilisation import utilisation
from flame.figures.canvas import panel, whiskers
from flame.figures.families.bars import Bar, draw_bars, whisker
from flame.figures.families.learning import cut, rolling
from flame.figures.looks import REGISTRY, SPARE, assigned
from flame.figures.scene import Style
from flame.figures.units import QUANTITIES, number
from flame.telemetry.rundir import RunDir
from tests.figures.test_book import drawn, words


def runs(home: Path, baseline: str) -> list[Learned]:
    return [Learned(RunDir(path)) for path in sorted((home / "runs").glob(f"*_main_{baseline}_*"))]


def test_a_curve_is_the_mean_of_its_seeds_with_peak_sustained_and_gap(figs: Callable[..., Path], home: Path) -> None:
    figure = drawn(figs({"one": {"family": "learning", "x": "commits", "arms": ["fluxtune_stable"]}}), "one").figure
    found = runs(home, "fluxtune_stable")
    table = band([each.curve for each in found], "commits", "accuracy")
    lines = {line.get_marker(): line for line in figure.axes[0].lines if len(line.get_xdata()) > 1 or line.get_marker() == "*"}
    np.testing.assert_allclose(np.asarray(lines["o"].get_ydata()), table["mean"].to_numpy())
    assert lines["*"].get_ydata() == [table["mean"].max()]
    lasting = [each.sustained() for each in found]
    mean = sum(value for value in lasting if value is not None) / 3
    assert any(list(line.get_ydata()) == pytest.approx([mean, mean]) and line.get_linewidth() == 3 for line in figure.axes[0].lines)
    assert words(figure) & {f"target 0.45, {who}{mean - 0.45:+.3f}" for who in ("FluxTune-S ", "")}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_the_targets_label_lies_on_no_curve(figs: Callable[..., Path], home: Path, share: float) -> None:
    heights = band([each.curve for each in runs(home, "fwdllm")], "time_s", "accuracy")["mean"]
    low, high = heights.min(), heights.max()
    target = low + share * (high - low)  # type: ignore[operator]
    figure = drawn(figs({"one": {"family": "learning", "arms": ["fwdllm", "fluxtune_stable"], "target": target}}), "one").figure
    axes = figure.axes[0]
    figure.draw_without_rendering()
    (label,) = [text for text in axes.texts if text.get_text().startswith("target")]
    box = label.get_window_extent()
    for line in (each for each in axes.lines if each.get_zorder() >= 2):
        x, y = line.get_transform().transform(np.column_stack([line.get_xdata(), line.get_ydata()])).T
        along = np.linspace(0, max(len(x) - 1, 0), 4000)
        every = np.column_stack([np.interp(along, range(len(x)), values) for values in (x, y)])
        assert not any(box.contains(*point) for point in every)
    frame = axes.get_window_extent()
    assert frame.x0 <= box.x0 < box.x1 <= frame.x1
    assert not any(box.overlaps(text.get_window_extent()) for text in axes.texts if text is not label)


def test_laps_that_end_together_are_lines_and_others_are_ticks(figs: Callable[..., Path], home: Path) -> None:
    file = figs({x: {"family": "learning", "x": x, "arms": ["fwdllm", "fluxtune_stable"]} for x in ("commits", "time")})
    ends = {tuple(each.laps["commits"]) for name in ("fwdllm", "fluxtune_stable") for each in runs(home, name)}
    axes = drawn(file, "commits").figure.axes[0]
    upright = [line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]]  # type: ignore[index]
    shared = [4 * lap for lap in range(1, 1 + min(len(each) for each in ends))]
    assert upright == shared or len(ends) > 1
    ticks = [line for line in drawn(file, "time").figure.axes[0].lines if line.get_marker() == "|"]
    assert upright or ticks


def test_bars_are_means_and_one_that_never_got_there_says_so(figs: Callable[..., Path], home: Path) -> None:
    file = figs(
        {name: {"family": "bars", "cost": "passes", "arms": ["fwdllm"], "target": target} for name, target in (("near", 0.34), ("far", 1))}
    )
    costs = [each.cost_to(0.34).passes for each in runs(home, "fwdllm")]
    known = [cost for cost in costs if cost is not None]
    assert known
    picture = drawn(file, "near")
    heights = {patch.get_height() for patch in picture.figure.axes[0].patches if isinstance(patch, Rectangle)}
    assert sorted(heights) == pytest.approx([sum(known) / len(known)])
    assert any(text.startswith(number(sum(known) / len(known))) for text in words(picture.figure))
    assert "never" in words(drawn(file, "far").figure)
    assert not drawn(file, "far").figure.axes[0].patches


@pytest.mark.parametrize("value", [68_000 / 3, 0.1, 2998.123])
def test_a_whisker_of_equal_seeds_is_no_length_whatever_their_mean_is_rounded_to(value: float) -> None:
    figure, axes = panel()
    for bits in (-1, 0, 1):
        mean = value + bits * np.spacing(value)
        assert [side.min() >= 0 for side in whiskers(np.array([mean]), value, value)] == [True, True]
        whisker(axes, 0, mean, value, value)
    draw_bars(axes, [Bar("one", [value] * 3, "black", "")], 1.0, "never")
    plt.close(figure)


def test_shares_of_a_row_are_those_of_its_trainers(figs: Callable[..., Path], home: Path) -> None:
    figure = drawn(figs(), "time").figure
    first = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle) and round(patch.get_y() + 0.35) == 0]
    tables = [utilisation(each) for each in runs(home, "fwdllm")]
    expected = [100 * sum(float(table[name].mean()) for table in tables) / 3 for name in ("computing", "waiting", "away")]  # type: ignore[arg-type]
    assert [patch.get_width() for patch in first] == pytest.approx(expected)


def test_a_map_shows_every_mean_of_its_sweep(figs: Callable[..., Path], home: Path) -> None:
    figure = drawn(figs(), "map").figure
    grid = np.asarray(figure.axes[0].images[0].get_array())
    peaks: dict[tuple[float, int], list[float]] = {}
    for path in (home / "runs").glob("*_tiny_*"):
        each = Learned(RunDir(path))
        peaks.setdefault((each.run.condition.server_opt.lr, each.run.condition.goal), []).append(each.peak() or 0.0)  # type: ignore[union-attr]
    expected = [[sum(peaks[lr, goal]) / 2 for lr in (0.1, 1.0)] for goal in (1, 2)]
    np.testing.assert_allclose(grid, expected)
    assert {f"{value:#.3g}" for row in expected for value in row} <= words(figure)


CURVE = pl.DataFrame({"accuracy": [0.2, 0.6, 0.5, 0.3, 0.3], "loss": [2.0, 1.0, 0.9, 1.5, 1.6]})


@pytest.mark.parametrize(("mode", "rows"), [("none", 5), ("peak_acc", 2), ("last_improvement", 3)])
def test_curves_are_cut_where_they_are_asked_to_be(mode: str, rows: int) -> None:
    assert cut(CURVE, mode).height == rows  # type: ignore[arg-type]
    assert cut(CURVE.clear(), mode).height == 0  # type: ignore[arg-type]


def test_smoothing_keeps_the_raw_values_and_their_envelope(figs: Callable[..., Path]) -> None:
    plain, smooth = (drawn(figs(), "accuracy-time", Style(smooth=width)) for width in (0, 5))
    thin = [line for line in smooth.figure.axes[0].lines if line.get_linewidth() == 0.4]
    raw = [line for line in plain.figure.axes[0].lines if line.get_marker() in ("D", "o") and len(line.get_xdata()) > 1]
    assert len(thin) == len(raw) == 2
    for one, other in zip(thin, raw, strict=True):
        np.testing.assert_array_equal(np.asarray(one.get_ydata()), np.asarray(other.get_ydata()))
    assert "running mean of 5 evaluations, for the eye" in smooth.caption
    stars = [[line.get_ydata() for line in each.figure.axes[0].lines if line.get_marker() == "*"] for each in (plain, smooth)]
    assert stars[0] == stars[1]


def test_a_rolling_mean_is_centred() -> None:
    assert rolling(np.array([0.0, 3.0, 6.0, 0.0]), 3, np.mean).tolist() == [1.5, 3.0, 3.0, 3.0]
    assert rolling(np.array([0.0, 3.0, 6.0, 0.0]), 3, np.max).tolist() == [3.0, 6.0, 6.0, 6.0]


def test_no_two_baselines_look_alike_and_each_can_be_told_without_colour() -> None:
    assert len({look.marker for look in REGISTRY.values()}) == len(REGISTRY)
    assert len({look.marker for look in SPARE}) == len(SPARE)
    given = assigned(["fwdllm", "mine", "yours"], REGISTRY)
    assert given["fwdllm"] == REGISTRY["fwdllm"]
    assert len({(look.line, look.marker) for look in given.values()}) == 3


@pytest.mark.parametrize(
    ("name", "most", "unit"),
    [("time", 100, "s"), ("time", 200, "min"), ("time", 20_000, "h"), ("bytes", 2e9, "MB"), ("passes", 5e6, "millions")],
)
def test_units_are_those_that_are_read_best(name: str, most: float, unit: str) -> None:
    assert QUANTITIES[name].scale([most])[1] == unit
    assert QUANTITIES[name].scale([])[1] in ("s", "B", "count")
