"""The evidence of a rung as a small drawing: real in one colour, sim in the other, what differs in a third.

- `Samples`: both distributions, one above the other as shares of values below (place by place where they are aligned).
- `Sequences`: both courses where the values are numbers (columns, where they are few); otherwise a cell for each
  place, coloured by what is in it.
- `Tally`: how much was looked at in each run, and how much of it was wrong.
- neither: the effect against its tolerance. A rung that found nothing has no picture.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from parity.engine import Result
from parity.exhibits import Exhibit, Samples, Sequences, Tally, Timelines
from parity.reports.page.flights import flights
from parity.reports.page.svg import Point, Scale, box, dot, line, picture, text, told

WIDTH, HEIGHT = 300.0, 64.0
LEFT, RIGHT, TOP, BOTTOM = 42.0, 4.0, 6.0, 13.0
"""Margins: words on the left, a scale below."""
MOST_POINTS = 240
MOST_CELLS = 40
MOST_TOKENS = 6
"""Members of a cell that are drawn one by one; a longer list is one colour."""
FEW = 6
"""Numbers that have names of their own rather than an order."""
HUES = 12

Array = NDArray[np.float64]


def picture_of(result: Result) -> Markup | None:
    """The picture of a rung's evidence; None where it has none."""
    exhibit = _exhibit(result)
    if isinstance(exhibit, Samples):
        return _courses(exhibit.real, exhibit.sim, ()) if exhibit.aligned else _shares(exhibit)
    if isinstance(exhibit, Sequences):
        return _sequences(exhibit)
    if isinstance(exhibit, Tally):
        return _tally(exhibit)
    if isinstance(exhibit, Timelines):
        return flights(exhibit, WIDTH, most_lanes=10)
    return _gauge(result)


def _exhibit(result: Result) -> Exhibit | None:
    """Of several measures the one that made the headline is drawn."""
    finding = result.finding
    headline = [measure for measure in finding.measures if measure.effect == finding.effect] or finding.measures
    return headline[0].samples if headline else finding.exhibit


def _shares(samples: Samples) -> Markup | None:
    """Both empirical distributions, and where they are farthest apart."""
    sides = {kind: np.sort(values[np.isfinite(values)]) for kind, values in (("real", samples.real), ("sim", samples.sim))}
    sides = {kind: values for kind, values in sides.items() if values.size}
    if not sides:
        return None
    everything = np.concatenate([*sides.values()])
    x = Scale(float(everything.min()), float(everything.max()), LEFT, WIDTH - RIGHT)
    y = Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    parts = [*_frame(x), text(LEFT - 4, TOP + 7, "100 %", "axis", "end"), text(LEFT - 4, HEIGHT - BOTTOM, "0", "axis", "end")]
    parts += [line(_steps(values, x, y), kind) for kind, values in sides.items()]
    if len(sides) == 2:
        parts.append(_farthest(sides["real"], sides["sim"], x, y))
    return picture(WIDTH, HEIGHT, f"shares of values below, real and sim, from {told(x.low)} to {told(x.high)}", parts)


def _steps(values: Array, x: Scale, y: Scale) -> list[Point]:
    """A distribution as steps; at most `MOST_POINTS` of them."""
    levels = np.arange(values.size) if values.size <= MOST_POINTS else np.linspace(0, values.size - 1, MOST_POINTS).astype(int)
    points: list[Point] = [(LEFT, y(0.0))]
    for level in levels:
        at, below = x(float(values[level])), points[-1][1]
        points += [(at, below), (at, y((level + 1) / values.size))]
    return [*points, (WIDTH - RIGHT, y(1.0))]


def _farthest(real: Array, sim: Array, x: Scale, y: Scale) -> Markup:
    values = np.union1d(real, sim)
    one, two = (np.searchsorted(side, values, side="right") / side.size for side in (real, sim))
    worst = int(np.argmax(np.abs(one - two)))
    at = x(float(values[worst]))
    return line([(at, y(float(one[worst]))), (at, y(float(two[worst])))], "parted") if one[worst] != two[worst] else Markup("")


def _sequences(both: Sequences) -> Markup | None:
    real, sim = (_numbers(side) for side in (both.real, both.sim))
    if real is not None and sim is not None and len(both.places) <= FEW:
        return _columns(both, real, sim)
    if real is not None and sim is not None:
        return _courses(real, sim, [place for place, apart in enumerate(both.parted) if apart])
    return _cells(both)


def _columns(both: Sequences, real: Array, sim: Array) -> Markup:
    """A pair of columns for each place, with its name below."""
    high = max([1e-300, *(abs(value) for side in (real, sim) for value in side if isfinite(value))])
    room, y = (WIDTH - LEFT - RIGHT) / len(both.places), Scale(0.0, high, HEIGHT - BOTTOM, TOP + 9)
    wide, parts = min(18.0, room / 3), _frame(None)
    for place, name in enumerate(both.places):
        middle = LEFT + (place + 0.5) * room
        if both.parted[place]:
            parts.append(box(middle - wide - 3, TOP - 4, 2 * wide + 6, HEIGHT - BOTTOM - TOP + 4, "parted-band"))
        for x, kind, value in ((middle - wide, "real-bar", real[place]), (middle + 1, "sim-bar", sim[place])):
            top = y(abs(float(value))) if isfinite(value) else y(0.0)
            parts.append(box(x, top, wide - 1, HEIGHT - BOTTOM - top, kind, f"{name}: {value:g}"))
            parts.append(text(x + wide / 2, top - 2, told(float(value)), "axis", "middle"))
        parts.append(text(middle, HEIGHT - 2, name, "axis", "middle"))
    return picture(WIDTH, HEIGHT, f"{both.what} of both runs: {sum(both.parted)} of {len(both.places)} differ", parts)


def _numbers(values: Sequence[object]) -> Array | None:
    """The values as numbers, absent ones as NaN; None when they are something else."""
    if any(isinstance(value, bool) or not isinstance(value, int | float | None) for value in values):
        return None
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _courses(real: Array, sim: Array, parted: Sequence[int]) -> Markup | None:
    """Both courses over their places; a mark under each place where they differ."""
    finite = np.concatenate([side[np.isfinite(side)] for side in (real, sim)])
    if not finite.size:
        return None
    last = max(real.size, sim.size) - 1
    x = Scale(0, last, LEFT, WIDTH - RIGHT)
    y = Scale(float(finite.min()), float(finite.max()), HEIGHT - BOTTOM - 3, TOP + 1)
    parts = [*_frame(None), text(LEFT, HEIGHT - 2, "0", "axis"), text(WIDTH - RIGHT, HEIGHT - 2, last, "axis", "end")]
    parts += _heights(y)
    parts += [box(x(place) - 0.75, TOP, 1.5, HEIGHT - BOTTOM - TOP, "parted-band") for place in _thinned(parted)]
    for kind, side in (("real", real), ("sim", sim)):
        parts += _course(side, kind, x, y)
    apart = f"; {len(parted)} differ" if parted else ""
    return picture(WIDTH, HEIGHT, f"both courses over {last + 1} places, from {told(y.low)} to {told(y.high)}{apart}", parts)


def _heights(y: Scale) -> list[Markup]:
    if y.low == y.high:
        return [text(LEFT - 4, y(y.low) + 3, told(y.low), "axis", "end")]
    return [text(LEFT - 4, TOP + 7, told(y.high), "axis", "end"), text(LEFT - 4, HEIGHT - BOTTOM, told(y.low), "axis", "end")]


def _course(side: Array, kind: str, x: Scale, y: Scale) -> list[Markup]:
    places = [place for place in _thinned(range(side.size)) if isfinite(side[place])]
    points = [(x(place), y(float(side[place]))) for place in places]
    dots = [dot(*point, 2.0, f"{kind}-dot") for point in points] if len(points) <= 16 else []
    return [line(points, kind), *dots]


def _thinned(places: Sequence[int]) -> Sequence[int]:
    return places[:: max(1, -(-len(places) // MOST_POINTS))]


def _cells(both: Sequences) -> Markup:
    """Two rows of cells, from shortly before the first place that differs, and below them all places as one bar."""
    first = next((place for place, apart in enumerate(both.parted) if apart), 0)
    start = max(0, min(first - 4, len(both.places) - MOST_CELLS))
    shown = range(start, min(start + MOST_CELLS, len(both.places)))
    hues = _hues([_tokens(side[place]) for place in shown for side in (both.real, both.sim)])
    step, tall = min(16.0, (WIDTH - LEFT - RIGHT) / len(shown)), (HEIGHT - TOP - BOTTOM - 4) / 2
    parts = [text(LEFT - 4, TOP + tall / 2 + 3, "real", "axis", "end"), text(LEFT - 4, TOP + tall * 1.5 + 7, "sim", "axis", "end")]
    for number, place in enumerate(shown):
        x = LEFT + number * step
        if both.parted[place]:
            parts.append(box(x - 0.5, TOP - 3, step, 2 * tall + 10, "parted-band"))
        for row, side in ((TOP, both.real), (TOP + tall + 4, both.sim)):
            parts += _cell(side[place], (x, row, step - 1, tall), hues, f"{both.places[place]}: {side[place]}")
    last = both.places[shown[-1]] if len(shown) > 1 else ""
    parts += [text(LEFT, HEIGHT - 2, both.places[start], "axis"), text(LEFT + len(shown) * step, HEIGHT - 2, last, "axis", "end")]
    return picture(WIDTH, HEIGHT, f"{both.what} of both runs: {sum(both.parted)} of {len(both.places)} differ", parts)


def _tokens(value: object) -> tuple[str, ...]:
    """What a cell is made of."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) <= MOST_TOKENS:
        return tuple(str(part) for part in value)
    return () if value is None else (str(value),)


def _hues(cells: Sequence[tuple[str, ...]]) -> dict[str, int]:
    """Token -> hue; tokens with a number in their name, such as t3, have that of the number."""
    names = sorted({token for cell in cells for token in cell}, key=lambda token: (len(token), token))
    return {token: number % HUES for number, token in enumerate(names)}


def _cell(value: object, place: tuple[float, float, float, float], hues: Mapping[str, int], told: str) -> list[Markup]:
    x, y, width, height = place
    tokens = _tokens(value)
    if not tokens:
        return [box(x, y, width, height, "hole", told)]
    part = height / len(tokens)
    return [box(x, y + number * part, width, part, f"hue{hues[token]}", told) for number, token in enumerate(tokens)]


def _tally(tally: Tally) -> Markup:
    """A bar for each run, as long as much was looked at; what was wrong at its end."""
    most = max(n for n, _ in tally.sides.values()) or 1
    tall, gap, parts = 9.0, 20.0, list[Markup]()
    top = (HEIGHT - gap * len(tally.sides)) / 2
    for row, (side, (n, wrong)) in enumerate(tally.sides.items()):
        y, long = top + row * gap, (WIDTH - LEFT - RIGHT) * n / most
        bad = max(3.0, long * min(1.0, wrong / max(1, n))) if wrong else 0.0
        parts += [text(LEFT - 4, y + tall - 1, side, "axis", "end"), box(LEFT, y, max(1.0, long - bad), tall, f"{side}-bar")]
        parts += [box(LEFT + max(0.0, long - bad), y, bad, tall, "parted-bar")] if wrong else []
        parts.append(text(LEFT, y + tall + 8.5, f"{n} {tally.what}" + (f", {wrong} wrong" if wrong else ""), "axis"))
    said = ", ".join(f"{side} {n} {tally.what}, {wrong} wrong" for side, (n, wrong) in tally.sides.items())
    return picture(WIDTH, HEIGHT, said, parts)


def _gauge(result: Result) -> Markup | None:
    """The effect on a line from nothing to a little beyond it, and the tolerance as a gate."""
    effect, tol = result.finding.effect, result.finding.tol
    if effect is None or tol is None or not isfinite(effect):
        return None
    x, y = Scale(0.0, 1.15 * max(abs(effect), tol) or 1.0, LEFT, WIDTH - RIGHT), HEIGHT / 2 - 2
    at, gate = x(abs(effect)), x(tol)
    right = effect > tol if result.verdict == "PASS" else effect < tol and result.verdict == "FAIL"
    allowed = (gate, WIDTH - RIGHT) if right else (LEFT, gate)
    parts = [box(LEFT, y - 5, WIDTH - LEFT - RIGHT, 10, "rail"), box(allowed[0], y - 5, allowed[1] - allowed[0], 10, "allowed")]
    parts += [line([(gate, y - 11), (gate, y + 11)], "gate"), dot(at, y, 4.5, f"effect-{result.verdict.lower()}")]
    parts += [_beside(gate, y + 22, f"tolerance {told(tol)}"), _beside(at, y - 13, f"effect {told(effect)}")]
    return picture(WIDTH, HEIGHT, f"effect {told(effect)}, tolerance {told(tol)}", parts)


def _beside(x: float, y: float, what: str) -> Markup:
    """A word above or below a place, within the picture."""
    half = 2.6 * len(what)
    return text(min(max(x, half), WIDTH - half), y, what, "axis", "middle")


def _frame(x: Scale | None) -> list[Markup]:
    """The ground line and, if asked, the ends of the scale."""
    ground = line([(LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM)], "ground")
    if x is None:
        return [ground]
    if x.low == x.high:
        return [ground, text(x(x.low), HEIGHT - 2, told(x.low), "axis", "middle")]
    return [ground, text(LEFT, HEIGHT - 2, told(x.low), "axis"), text(WIDTH - RIGHT, HEIGHT - 2, told(x.high), "axis", "end")]
