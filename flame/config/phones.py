"""Phones that come and go: a generator fitted to the published statistics of 300 phones over six days.

A phone alternates between sessions, in which it trains (idle, charging, on a network), and gaps. Both are
drawn from mixtures of lognormals: a short kind (a plug that wobbles, seconds), a long one (hours), and for gaps
a third, the days on which nobody plugs it in. Shares, medians and widths were fitted by least squares, then
rounded, to what is published, as it would be seen: an interval of length L lies wholly within a record
of length H with a chance of 1 - L/H, so the law is longer than what is seen of it.

                              published       the law, seen in six days
    sessions,   median        615 s           605 s
                p75           54 min          54 min
    gaps,       median        144 s           142 s
                p75           3.1 h           3.1 h
                p90           11.7 h          11.7 h
    share of time available   0.16            0.16

Published is nothing of the lower tails, nor of the sessions' upper one: there the fit leaned on the traces
themselves (a quarter of the sessions under 30 s and of the gaps under 4 s, one session in ten over 2.4 h).

Three states: a gap begins in AVL_EVAL where the battery is full enough (`chance`), and turns to UN_AVL
when the battery has run down (a lognormal of hours) if no session comes first. `phone_3st_50` is fitted to
the published shares of the three states 0.16/0.35/0.49 (battery over one half), `phone_3st_75` to those of the
recorded traces, 0.16/0.19/0.65 (over three quarters). A phone has the same sessions in each, and when it is
AVL_EVAL over three quarters it is so over one half. The fit is of time: most short recorded gaps have no AVL_EVAL.

A trace is stationary: it starts in a session with the chance of 0.16, in an interval drawn by the law of
those that cover a fixed instant, at a uniform place in it. Phones are alike here, and there is neither day nor
night; recorded phones have from none to hundreds of sessions.
"""

from collections.abc import Iterator
from math import log
from typing import NamedTuple

from flame.config.draws import Mixture, Piece, lognormal, uniform
from flame.core.trace import State

SESSIONS = Mixture((Piece(0.44, 23.0, 1.5), Piece(0.56, 2_820.0, 1.27)))
GAPS = Mixture((Piece(0.489, 4.1, 1.6), Piece(0.367, 7_370.0, 1.2), Piece(0.144, 61_800.0, 0.9)))
SHARE = SESSIONS.mean / (SESSIONS.mean + GAPS.mean)
"""Of the time, in sessions."""


class Battery(NamedTuple):
    """How long after a session a phone can still evaluate. chance: at all. median: in seconds. sd: of the logarithm."""

    chance: float
    median: float
    sd: float = 0.8


BATTERIES = {"phone_2st": Battery(0.0, 1.0), "phone_3st_50": Battery(0.9, 32_800.0), "phone_3st_75": Battery(0.75, 15_600.0)}


def phone(node: str, kind: str, horizon: int) -> Iterator[tuple[int, State]]:
    """The events of one phone, in whole seconds up to `horizon`; the first is at 0 or before it."""
    battery, training = BATTERIES[kind], uniform("phone", node, "phase") < SHARE
    length = _whole((SESSIONS if training else GAPS).covering().draw("phone", node, 0))
    now, number = -int(uniform("phone", node, "elapsed") * length), 0
    while now < horizon:
        if training:
            yield now, "AVL_TRAIN"
        else:
            yield from _gap(now, length, battery, node, number)
        now, number, training = now + length, number + 1, not training
        length = _whole((SESSIONS if training else GAPS).draw("phone", node, number))


def _gap(begin: int, length: int, battery: Battery, node: str, number: int) -> Iterator[tuple[int, State]]:
    runs_down = 0
    if uniform("phone", node, number, "full") < battery.chance:
        runs_down = _whole(lognormal(log(battery.median), battery.sd, uniform("phone", node, number, "battery")))
        yield begin, "AVL_EVAL"
    if runs_down < length:
        yield begin + runs_down, "UN_AVL"


def _whole(value: float) -> int:
    return max(1, round(value))
