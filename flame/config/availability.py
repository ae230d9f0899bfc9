"""When each trainer of a condition can be used: one trace per node, known before the run.

Traces belong to the condition and not to the seed, as delays do. Each is made in seconds, from generators or
a file, divided by `time_scale`, and repeats at its end:

- `syn_0` is always. `syn_10`, `syn_20`, `syn_50` are away in that share of the cells of a grid of 600 s, each
  cell by itself, over 536 400 s. The law is integers throughout: the same on every machine.
- `phone_2st`, `phone_3st_50`, `phone_3st_75` are made by `flame.config.phones`, over the same horizon.
- `file` reads phones or FedScale's intervals (`flame.config.registry` has the formats). A client's record
  repeats at its own end: what a phone did after its last event isn't known.

`traces` makes each when it is asked for, once: a generated one takes a millisecond or more, and of 10^5 trainers most
are never chosen. Files are read at once, so that what is wrong with one is said before a run. Who may look is another
matter: the inbox and the trainer itself, a selector as far as its awareness goes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from flame.config.condition import Availability, Condition
from flame.config.errors import ConfigError, shown, unknown
from flame.config.phones import phone
from flame.config.registry import clients
from flame.core.rng import derive
from flame.core.time import seconds
from flame.core.trace import ALWAYS, State, Trace

GRID, HORIZON = 600, 536_400
"""Seconds of a cell of a synthetic trace, and after which generated traces repeat."""
AWAY = {"syn_10": 0.1, "syn_20": 0.2, "syn_50": 0.5}
"""The share of cells in which a device is away."""
LANES = 4
"""Cells that are decided by one derived number, 16 bits each."""
FORCED_S = 300.0
"""The start of each recorded phone, which its source forced to be on."""
STATES: Mapping[int, State] = {0: "UN_AVL", 1: "AVL_EVAL", 2: "AVL_TRAIN"}
"""The states of recorded phones."""

Events = Iterable[tuple[float, State]]
"""Seconds, and the state that begins there."""


class Generated(Mapping[str, Trace]):
    """Traces by node, in the order given; `make` makes one, when it is first asked for."""

    def __init__(self, nodes: Iterable[str], make: Callable[[str], Trace]) -> None:
        self._made: dict[str, Trace | None] = dict.fromkeys(nodes)
        self._make = make

    def __getitem__(self, node: str) -> Trace:
        found = self._made[node]
        if found is None:
            found = self._made[node] = self._make(node)
        return found

    def __contains__(self, node: object) -> bool:
        return node in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def traces(condition: Condition) -> Mapping[str, Trace]:
    """The trace of each trainer, by node, in the order of their names. Raises ConfigError for a file that won't do."""
    given, nodes = condition.availability, condition.nodes
    if given.trace == "syn_0":
        return dict.fromkeys(nodes, ALWAYS)
    if given.path is not None:
        return dict(zip(nodes, _all_recorded(clients(given.path, nodes, given.reuse), given), strict=True))
    return Generated(nodes, partial(_made, given))


def _made(given: Availability, node: str) -> Trace:
    return _scaled(_generated(given.trace, node), HORIZON, given.time_scale)


def _scaled(events: Events, end: float, scale: float) -> Trace:
    period = seconds(end / scale)
    return Trace.of([(seconds(at / scale), state) for at, state in events], period if period > 0 else None)


# ---- generated


def _generated(kind: str, node: str) -> Events:
    return _grid(AWAY[kind], node) if kind in AWAY else phone(node, kind, HORIZON)


def _grid(share: float, node: str) -> Events:
    bound, cells = round(share * 2**16), HORIZON // GRID
    for word in range(-(-cells // LANES)):
        drawn = derive(0, "away", node, word)
        for cell in range(word * LANES, min(word * LANES + LANES, cells)):
            away = (drawn >> 16 * (cell % LANES)) & 0xFFFF < bound
            yield cell * GRID, "UN_AVL" if away else "AVL_TRAIN"


# ---- recorded


def _all_recorded(held: Sequence[Mapping[str, Any]], given: Availability) -> Iterator[Trace]:
    """The traces of clients; of one that several trainers share, one trace."""
    made: dict[int, Trace] = {}
    for client in held:
        if id(client) not in made:
            made[id(client)] = _recorded(client, given)
        yield made[id(client)]


def _recorded(client: Mapping[str, Any], given: Availability) -> Trace:
    if "active" in client and "inactive" in client:
        return _intervals(client, given)
    key = given.key or "2st"
    if key not in client:
        raise unknown("key", key, [name for name in client if name != "delay"], f" in a client of `{given.path}` (`availability.key`)")
    return _phone(_checked(client[key], _is_event, given), given)


def _phone(recorded: Sequence[Sequence[Any]], given: Availability) -> Trace:
    """A list of [t, state], from `skip_s` on to its last event."""
    skip = FORCED_S if given.skip_s is None else given.skip_s
    end = max((at for at, _ in recorded), default=0.0)
    return _scaled([(at - skip, STATES[state]) for at, state in recorded], end - skip, given.time_scale)


def _intervals(client: Mapping[str, Any], given: Availability) -> Trace:
    """FedScale's: from active[i] to inactive[i] the client trains, until `finish_time`, where its record ends."""
    if given.key is not None:
        raise ConfigError(f"`availability.key` says nothing to the intervals of `{given.path}`", "drop it, or give a file of phones")
    skip, end = given.skip_s or 0.0, client.get("finish_time")
    begins, ends = (_checked(client[name], _is_time, given) for name in ("active", "inactive"))
    if len(begins) != len(ends) or end is None or not _is_time(end):
        raise _odd({**client, "model": "..."}, given, "give `active` and `inactive` of one length, and `finish_time`")
    events: list[tuple[float, State]] = [(-skip, "UN_AVL")]
    for begin, stop in zip(begins, ends, strict=True):
        events += [(begin - skip, "AVL_TRAIN"), (stop - skip, "UN_AVL")]
    return _scaled(events, end - skip, given.time_scale)


def _checked(listed: Any, right: Callable[[Any], bool], given: Availability) -> Sequence[Any]:
    wrong = [listed] if not isinstance(listed, list) else [entry for entry in listed if not right(entry)]
    if wrong:
        raise _odd(wrong[0], given, "correct it: seconds from 0 on, and states 0, 1 or 2")
    return list(listed)


def _is_event(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and _is_time(entry[0]) and type(entry[1]) is int and entry[1] in STATES


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _odd(value: Any, given: Availability, hint: str) -> ConfigError:
    return ConfigError(f"`availability.path`: a client of `{given.path}` holds {shown(value)}", hint)
