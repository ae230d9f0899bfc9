"""Time is an integer number of nanoseconds since `ready`, in both worlds.

Two quantities use this unit and are never mixed: `now`, which a driver hands to each step, and
`stamp`, the logical time that travels in messages and decides order. Floats of seconds exist only
at the edges (configuration, telemetry for people); `seconds` and `in_seconds` are the two gates.
"""

SECOND = 1_000_000_000
MILLISECOND = 1_000_000


def seconds(value: float) -> int:
    """Nanoseconds in `value` seconds, rounded to the nearest."""
    return round(value * SECOND)


def in_seconds(ns: int) -> float:
    """Seconds in `ns` nanoseconds."""
    return ns / SECOND


def clock_text(ns: int) -> str:
    """`ns` as hh:mm:ss.mmm, for messages a person reads."""
    millis, sign = abs(ns) // MILLISECOND, "-" if ns < 0 else ""
    rest, millis = divmod(millis, 1000)
    rest, secs = divmod(rest, 60)
    hours, minutes = divmod(rest, 60)
    return f"{sign}{hours:02}:{minutes:02}:{secs:02}.{millis:03}"
