"""What a local step costs, for each estimator and number of probes: CPU time in forwards, and peak memory.

    python bench/costs.py [--part head] [--part adapter:1 ...] [--probes 1 10] [--bins 5] [--data r8]

Each row is a process of its own with one torch thread, batch 8 x 64 tokens. One forward is the loss of the same
batch under the same condition with everything computed from the tokens (median CPU time over `--bins` bins, each
touched once before); a row's time is divided by it, and by its probes. Peak is the process's largest resident set during
the steps less that before them: library and model, and what start-up needed, don't count. A part is `name` or
`name:last layers`.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from flame.config import Condition
from flame.core.rng import derive
from flame.core.tasks import Gradient
from flame.learn.params import tensor
from flame.learn.text import TextLearner
from flame.learn.timing import timed

PARTS = ("head", "adapter:1", "bitfit:2", "lora:2", "bitfit", "all")


@dataclass(frozen=True, slots=True)
class Arm:
    """One row. way: `vmap` (all probes in a pass), `loop` (one by one), `kept` or `recomputed` activations of backprop."""

    part: str
    estimator: str
    probes: int
    way: str
    cached: bool
    data: str
    bins: int

    @property
    def condition(self) -> Condition:
        """The text condition that it measures."""
        part, _, last = self.part.partition(":")
        estimator: dict[str, object] = {"type": self.estimator}
        if self.estimator == "forward_ad":
            estimator["chunk"] = None if self.way == "vmap" else 1
        if self.estimator == "backprop":
            estimator["checkpointed"] = self.way == "recomputed"
        return Condition.model_validate(
            {
                "task": "text", "data": self.data, "partition": {"type": "niid_label"}, "stop": {"cycles": 4},
                "trainable": {"part": part, "last_layers": int(last or 0)}, "estimator": estimator,
                "perturb": {"type": "single"} if self.probes == 1 else {"type": "mean_of", "probes": self.probes},
            }
        )  # fmt: skip


def arms(parts: list[str], probes: list[int], data: str, bins: int) -> Iterator[Arm]:
    """The rows of the table, part by part. What trains from the tokens on has no prefix to keep, a head no layers to recompute."""
    for part in parts:
        for cached in (False,) if part in ("all", "bitfit", "lora", "adapter") else (True, False):
            yield Arm(part, "backprop", 1, "kept", cached, data, bins)
            if part != "head":
                yield Arm(part, "backprop", 1, "recomputed", cached, data, bins)
            for count in probes:
                yield Arm(part, "central_difference", count, "loop", cached, data, bins)
                yield Arm(part, "forward_ad", count, "loop", cached, data, bins)
                if count > 1:
                    yield Arm(part, "forward_ad", count, "vmap", cached, data, bins)


def measured(arm: Arm) -> dict[str, float]:
    """Run in a process of its own: CPU seconds of the step and of a forward, p, and peak bytes above the loaded model."""
    condition = arm.condition
    learner = TextLearner(condition, prefix_cache=arm.cached)
    theta = tensor(learner.init)
    learner.objective(learner.bin("t1", 0)).losses(learner.init)
    before = settled()

    def step(number: int) -> None:
        learner.run(Gradient("t1", 0, number, derive(1, number), theta))

    spent = cpu(step, arm.bins)
    peak = resident("VmHWM") - before
    plain = TextLearner(condition, prefix_cache=False)
    forward = cpu(lambda number: plain.objective(plain.bin("t1", number)).losses(plain.init), arm.bins)
    return {"step": spent, "forward": forward, "size": learner.facts.layout.size, "peak": peak}


def settled() -> int:
    """Bytes of the resident set, once freed memory is given back; its high-water mark starts here again (Linux)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def resident(line: str) -> int:
    """Bytes of a line of the process's status."""
    found = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(f"{line}:"))
    return 1024 * int(found.split()[1])


def cpu(step: Callable[[int], object], bins: int) -> float:
    """Median CPU seconds of step(bin), each bin touched once before."""
    return median(timed(step, bins))


def row(arm: Arm, found: dict[str, float]) -> str:
    """A line of the Markdown table."""
    ratio = found["step"] / found["forward"]
    where = "prefix kept" if arm.cached else "from tokens"
    return (
        f"| {arm.part} ({found['size']:,.0f}) | {arm.estimator} | {arm.probes} | {arm.way} | {where} "
        f"| {ratio:.3f} | {ratio / arm.probes:.3f} | {1e3 * found['step']:.1f} | {found['peak'] / 1e6:.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", help=f"repeatable; default {', '.join(PARTS)}")
    parser.add_argument("--probes", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--bins", type=int, default=5)
    parser.add_argument("--data", default="r8")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(Arm(**json.loads(asked.one)))))
        return
    print("| part (p) | estimator | P | way | below the cut | forwards a step | forwards a probe | CPU ms a step | peak MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for arm in arms(asked.part or list(PARTS), asked.probes, asked.data, asked.bins):
        command = [sys.executable, __file__, "--one", json.dumps(asdict(arm))]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        print(row(arm, json.loads(done.stdout)), flush=True)


if __name__ == "__main__":
    main()
