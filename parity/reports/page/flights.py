"""Who was in flight when: a lane per trainer, real in its upper half and sim in its lower, on one axis of stamps.

Bars that lie exactly below each other are what parity looks like. A bar that began while the one before it was
open is marked, wherever it is. Of a long run only a part is drawn, and said which: that around the first overlap,
or the beginning.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import floor, log10

from markupsafe import Markup

from parity.exhibits import Interval, Timelines
from parity.reports.page.svg import Scale, box, line, number, picture, text

MOST_BARS = 600
"""Of each side; with more, they can't be told apart and the page grows heavy."""
AXIS, TOP = 14.0, 3.0

Lanes = Mapping[str, Sequence[Interval]]


def flights(timelines: Timelines, width: float, *, most_lanes: int, tall: float = 0.0) -> Markup | None:
    """The drawing; None where nobody was ever dispatched. tall: height of a lane; without, a small picture."""
    nodes = _nodes(timelines, most_lanes)
    begin, end = span(timelines)
    if not nodes or end <= begin:
        return None
    lane = tall or max(8.0, (64.0 - AXIS - TOP) / len(nodes))
    left = 42.0
    x = Scale(begin / 1e9, end / 1e9, left, width - 6)
    height = TOP + lane * len(nodes) + AXIS
    parts = [*_axis(x, height, 8 if tall else 3)]
    for row, node in enumerate(nodes):
        y = TOP + row * lane
        if tall or lane >= 8 or row in (0, len(nodes) - 1):
            parts.append(text(left - 4, y + lane / 2 + 3, node, "axis", "end"))
        for half, (side, lanes) in enumerate(timelines.sides.items()):
            parts += _bars(lanes.get(node, ()), side, x, (y + 0.75 + half * (lane / 2 - 0.5), lane / 2 - 1.0))
    said = f"intervals in flight of {len(nodes)} trainers, stamps {number(x.low)} to {number(x.high)} s"
    return picture(width, height, said, parts)


def span(timelines: Timelines) -> tuple[int, int]:
    """The part of the run that is drawn, in ns."""
    bars = sorted(bar for lanes in timelines.sides.values() for own in lanes.values() for bar in own)
    if len(bars) <= MOST_BARS * len(timelines.sides):
        return 0, max((end for _, end, _ in bars), default=0)
    first = next((place for place, (_, _, overlaps) in enumerate(bars) if overlaps), 0)
    most = MOST_BARS * len(timelines.sides)
    start = max(0, min(first - most // 4, len(bars) - most))
    return (bars[start][0] if start else 0), bars[start + most - 1][0]


def whole(timelines: Timelines) -> int:
    """The end of the run, in ns."""
    return max((end for lanes in timelines.sides.values() for own in lanes.values() for _, end, _ in own), default=0)


def _nodes(timelines: Timelines, most: int) -> list[str]:
    """The trainers that are drawn: those with an overlap before others, in the order of their lanes."""
    everybody = {node: any(bar[2] for lanes in timelines.sides.values() for bar in lanes.get(node, ())) for node in _named(timelines)}
    chosen = set(sorted(everybody, key=lambda node: not everybody[node])[:most])
    return [node for node in everybody if node in chosen]


def _named(timelines: Timelines) -> list[str]:
    """Everybody who was ever in flight, in the order of the condition."""
    names = {node: None for lanes in timelines.sides.values() for node in lanes}
    return [node for node in names if any(lanes.get(node) for lanes in timelines.sides.values())]


def _bars(bars: Sequence[Interval], side: str, x: Scale, place: tuple[float, float]) -> Iterator[Markup]:
    y, tall = place
    for start, end, overlaps in bars:
        if end / 1e9 < x.low or start / 1e9 > x.high:
            continue
        left, right = x(max(start / 1e9, x.low)), x(min(end / 1e9, x.high))
        kind = "parted-bar" if overlaps else f"{side}-bar"
        what = f"{side} {start / 1e9:.3f} to {end / 1e9:.3f} s" + (", overlaps the one before" if overlaps else "")
        yield box(left, y, max(0.8, right - left - 0.8), tall, kind, what)


def _axis(x: Scale, height: float, most: int) -> Iterator[Markup]:
    """Round stamps and their lines."""
    step = _round_step((x.high - x.low) / most)
    for tick in range(-int(-x.low // step), int(x.high // step) + 1):
        at = x(tick * step)
        yield line([(at, TOP), (at, height - AXIS)], "grid")
        yield text(at, height - 3, f"{number(tick * step)} s", "axis", "start" if tick * step == x.low else "middle")


def _round_step(rough: float) -> float:
    """The least of 1, 2, 5 times a power of ten that isn't below `rough`."""
    power = 10.0 ** floor(log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
