"""Who computes where, in a real run: workers dealt in turn over devices, and over cores where they are to be pinned.

The aggregator sits where the fewest workers do; of several such, where most memory is free. It is a pure function of what
there is: the machine is looked at by `flame.launch.preflight.measure`, the processes sit down by themselves.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flame.core.messages import AGGREGATOR
from flame.launch.preflight.issue import Issue, cannot

P = TypeVar("P", str, int)


@dataclass(frozen=True, slots=True)
class Gpu:
    """name: `cuda:N`. free: bytes that can be taken."""

    name: str
    free: int


@dataclass(frozen=True, slots=True)
class Seat:
    """device: where torch computes. cores: where the process may run, empty for anywhere."""

    device: str = "cpu"
    cores: tuple[int, ...] = ()


def seats(workers: Sequence[str], gpus: Sequence[Gpu], cores: Sequence[int] = ()) -> dict[str, Seat]:
    """A seat for each worker and the aggregator. gpus: to be used, none for `cpu`. cores: to be pinned to, none for not at all."""
    free = {gpu.name: gpu.free for gpu in gpus} or {"cpu": 0}
    devices, pins = list(free), [*cores]
    dealt = {worker: devices[number % len(devices)] for number, worker in enumerate(workers)}
    pinned = {worker: pins[number % len(pins)] for number, worker in enumerate(workers)} if pins else {}
    dealt[AGGREGATOR] = _emptiest(devices, dealt, free)
    if pins:
        pinned[AGGREGATOR] = _emptiest(pins, pinned, {})
    return {name: Seat(device, (pinned[name],) if pins else ()) for name, device in dealt.items()}


def _emptiest(places: Sequence[P], taken: Mapping[str, P], free: Mapping[P, int]) -> P:
    counts = Counter(taken.values())
    return min(places, key=lambda place: (counts[place], -free.get(place, 0)))


def crowded(placed: Mapping[str, Seat], gpus: Sequence[Gpu], each: int) -> Iterator[Issue]:
    """GPUs with less free memory than their processes need. each: bytes of one process."""
    counts = Counter(seat.device for seat in placed.values())
    for gpu in gpus:
        if counts[gpu.name] * each > gpu.free:
            yield cannot(
                f"`{gpu.name}` has {gpu.free >> 20} MiB free, and {counts[gpu.name]} processes on it need about "
                f"{counts[gpu.name] * each >> 20} MiB",
                "lower `--workers`, name more GPUs (`--device cuda:0,1`), or free some of its memory",
            )


def report(placed: Mapping[str, Seat], visible: Sequence[str] = ()) -> list[str]:
    """Who sits where, how even it is, and what stays idle. visible: all GPUs that there are. Nothing where all is as ever."""
    lines = [*_by_device(placed)] if {seat.device for seat in placed.values()} != {"cpu"} else []
    pinned = [f"{name} {','.join(map(str, seat.cores))}" for name, seat in placed.items() if seat.cores]
    lines += [f"cores: {', '.join(pinned)}"] if pinned else []
    counts = Counter(seat.device for name, seat in placed.items() if name != AGGREGATOR)
    used = {seat.device for seat in placed.values()}
    spread = max(counts.values(), default=0) - min((counts[device] for device in used), default=0)
    if spread > 1:
        lines.append(f"uneven: the fullest device has {spread} workers more than the emptiest")
    idle = [name for name in visible if name not in used]
    return [*lines, f"idle: {', '.join(idle)}"] if idle else lines


def _by_device(placed: Mapping[str, Seat]) -> Iterator[str]:
    for device in sorted({seat.device for seat in placed.values()}):
        yield f"{device}: {', '.join(name for name, seat in placed.items() if seat.device == device)}"
