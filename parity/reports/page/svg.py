"""SVG as text: elements, numbers, axes. Colours are classes, so that a picture follows the page from light to dark."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

Point = tuple[float, float]


def picture(width: float, height: float, told: str, parts: Iterable[Markup]) -> Markup:
    """A whole drawing. told: what it shows, for those who can't see it."""
    inside = Markup("").join(parts)
    return Markup('<svg viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}</svg>').format(
        number(width), number(height), number(width), number(height), told, inside
    )


def box(x: float, y: float, width: float, height: float, kind: str, told: str = "") -> Markup:
    """A rectangle. told: shown when it is pointed at."""
    title = Markup("<title>{}</title>").format(told) if told else Markup("")
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" class="{}">{}</rect>').format(
        number(x), number(y), number(width), number(height), kind, title
    )


def line(points: Sequence[Point], kind: str) -> Markup:
    """A line through points."""
    return Markup('<polyline points="{}" class="{}"/>').format(" ".join(f"{number(x)},{number(y)}" for x, y in points), kind)


def dot(x: float, y: float, radius: float, kind: str) -> Markup:
    """A filled circle."""
    return Markup('<circle cx="{}" cy="{}" r="{}" class="{}"/>').format(number(x), number(y), number(radius), kind)


def text(x: float, y: float, what: object, kind: str = "", anchor: str = "start") -> Markup:
    """A word on its baseline."""
    return Markup('<text x="{}" y="{}" text-anchor="{}" class="{}">{}</text>').format(number(x), number(y), anchor, kind, escape(what))


def number(value: float) -> str:
    """A coordinate to a hundredth, without a needless zero."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def told(value: float) -> str:
    """A value for people: three digits."""
    return f"{value:.3g}" if abs(value) < 1000 or value % 1 else f"{value:.0f}"


class Scale:
    """From values to coordinates. Values that are all one lie in the middle."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self._start, self._end = low, high, start, end

    def __call__(self, value: float) -> float:
        """Where `value` is."""
        if self.high == self.low:
            return (self._start + self._end) / 2
        return self._start + (value - self.low) / (self.high - self.low) * (self._end - self._start)
