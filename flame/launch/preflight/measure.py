"""What is found out about this machine before anything starts: cores, memory, and how long one task takes.

A learner is built for each baseline, in this process, as each process of the run will build its own.
One gradient and one evaluation are run on it: the first time fills caches, the second is measured.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Self

import psutil

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.config.world import World
from flame.core.tasks import Evaluate, Gradient, Task
from flame.launch.preflight.holding import NOTHING, Holding, held
from flame.launch.preflight.placement import Gpu, Seat, seats
from flame.learn.device import free, listed, peak, visible
from flame.learn.learner import Learner, build

REPEATS = 5
LONG_S = 2.0
"""Seconds after which a task isn't repeated any more."""
LEARNER_BYTES = 300 << 20
"""A process with torch loaded, at least."""
BROKER_BYTES = 80 << 20
DRIVER = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True, slots=True)
class Measured:
    """One baseline's learner: digests in hex, measured seconds. fault: why it can't be built; then nothing else is known.

    device_bytes: what such a process takes of its GPU. vector: bytes of theta. holding: bytes that the machines of the run hold.
    """

    fault: ConfigError | None = None
    notes: tuple[str, ...] = ()
    data: str = ""
    model: str = ""
    parameters: int = 0
    bins: int = 0
    gradient_s: float = 0.0
    evaluate_s: float | None = None
    device: str = "cpu"
    device_bytes: int = 0
    vector: int = 0
    holding: Holding = NOTHING


@dataclass(frozen=True, slots=True)
class Machine:
    """cores: usable by this process. available: bytes that can be taken. needed: an estimate for the run; most: where its bins are long.

    gpus: all that are visible, used or not.
    """

    cores: int
    available: int
    needed: int
    most: int
    gpus: Sequence[str] = ()

    def beside(self, holding: Holding) -> Self:
        """This machine, for a run that also holds so much."""
        return replace(self, needed=self.needed + holding.least, most=self.most + holding.most)


def measure(condition: Condition, *, prefix_cache: bool, evaluations: bool, device: str = "cpu") -> Measured:
    """Build the learner of `condition` and run one task of each kind on it."""
    learner = attempt(condition, prefix_cache=prefix_cache, device=device)
    if isinstance(learner, ConfigError):
        return Measured(learner)
    facts = learner.facts
    gradient, evaluate = _tasks(condition, learner)
    took = _seconds(learner, gradient)
    judged = _seconds(learner, evaluate) if evaluations and condition.eval.every else None
    size, vector, there = facts.layout.size, facts.init.nbytes, (facts.device, peak(facts.device))
    holding = held(condition, size, vector)
    return Measured(None, learner.notes, facts.data, facts.model, size, facts.bins, took, judged, *there, vector, holding)


def largest(measured: Iterable[Measured]) -> Holding:
    """What the run holds that may hold most."""
    return max((each.holding for each in measured), key=lambda holding: holding.most, default=NOTHING)


def attempt(condition: Condition, *, prefix_cache: bool, device: str = "cpu") -> Learner | ConfigError:
    """The learner of `condition`, or why it can't be built."""
    try:
        return build(condition, prefix_cache=prefix_cache, device=device)
    except ConfigError as error:
        return error
    except ArithmeticError as error:
        what, _, hint = str(error).partition("\nhint: ")
        return ConfigError(f"the start-up self-check failed: {what}", hint or "use another `estimator`")


def placed(condition: Condition, world: World) -> tuple[dict[str, Seat], list[Gpu]]:
    """Where each process of a real run sits here, and the GPUs that it uses. Raises ConfigError for one that isn't there."""
    names = [f"w{number}" for number in range(min(world.workers, condition.trainers))]
    devices = listed(world.device, condition.commit_order) if condition.task == "text" else ["cpu"]
    gpus = [Gpu(device, free(device)) for device in devices if device != "cpu"]
    return seats(names, gpus, cores() if world.pin else ()), gpus


def _tasks(condition: Condition, learner: Learner) -> tuple[Task, Task]:
    """The dearest of each kind: a gradient with a direction, where the policy may use one."""
    facts, node = learner.facts, condition.nodes[-1]
    direction = facts.init if condition.perturb.wants_direction(1, 1) else None
    return Gradient(node, 1, min(1, facts.bins - 1), 1, facts.init, direction), Evaluate(1, facts.init)


def _seconds(learner: Learner, task: Task) -> float:
    """The median of a few runs after the first: one that the scheduler held up says nothing."""
    learner.run(task)
    took: list[float] = []
    while len(took) < REPEATS and sum(took) < LONG_S:
        started = perf_counter()
        learner.run(task)
        took.append(perf_counter() - started)
    return median(took)


def machine(processes: int, broker: bool) -> Machine:
    """This machine, for a run of that many processes with a learner each, as large as this one is now."""
    own = max(psutil.Process().memory_info().rss, LEARNER_BYTES if processes else 0)
    needed = own * (1 + processes) + (BROKER_BYTES if broker else 0)
    return Machine(usable_cores(), _available(), needed, needed, gpus_here())


def gpus_here() -> list[str]:
    """The visible GPUs: as torch counts them, where somebody has loaded it, else as the driver does."""
    return visible() if "torch" in sys.modules else [f"cuda:{number}" for number, _ in enumerate(DRIVER.glob("*"))]


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(cores()) or os.cpu_count() or 1


def cores() -> list[int]:
    """The cores that this process may run on; empty where the system doesn't say."""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return sorted(affinity(0)) if affinity else []


def _available() -> int:
    """Free memory, and no more than a control group leaves."""
    available = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        available = min(available, limit - used)
    return available
