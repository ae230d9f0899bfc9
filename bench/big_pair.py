"""How long the ladder takes over a large pair, and how much memory: `python -m bench.big_pair [--mb 1024] [--loop sync|async]`.

A synthetic pair (tests/parity/fixtures.py) of that many megabytes a side is written, and judged in a process of its own.
Reported: how the bytes divide into kinds of records, CPU seconds, wall, the load of the machine, and the peak of resident memory.
The pair is deleted afterwards, unless --into keeps it; one that is there is judged as it is, a pair of true runs too.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import perf_counter

from flame.config import Condition
from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import pair_of
from tests.parity.fixtures import condition, write_pair

BYTES_PER_UPDATE = {"sync": 2_500, "async": 3_000}
"""Telemetry of one update, all of its records: measured on the synthetic pair."""
TRAINERS = 100
SAMPLED = 50_000
"""Lines of which the mix is told."""


def main() -> int:
    """Write, judge, report."""
    options = _parser().parse_args()
    with TemporaryDirectory() as scratch:
        folder = options.into or Path(scratch)
        kept = [RunDir(path.parent) for path in sorted(folder.glob("*/condition.json"))]
        pair = pair_of(*kept) if kept else write_pair(folder, _condition(options.loop, options.mb))
        print(f"{_size(pair) / 1e6:.0f} MB a side: {_mix(pair.sim)}", flush=True)
        return _judged(pair)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mb", type=int, default=1024, help="megabytes of telemetry a side")
    parser.add_argument("--loop", choices=sorted(BYTES_PER_UPDATE), default="sync", help="of the condition")
    parser.add_argument("--into", type=Path, help="keep the pair in this folder")
    return parser


def _condition(loop: str, megabytes: int) -> Condition:
    updates = megabytes * 1_000_000 // BYTES_PER_UPDATE[loop]
    if loop == "sync":
        return condition(trainers=TRAINERS, goal=TRAINERS, concurrency=TRAINERS, stop={"cycles": max(2, updates // TRAINERS)})
    sizes = {"trainers": TRAINERS, "goal": TRAINERS // 10, "concurrency": TRAINERS // 3}
    return condition(loop="async", commit=["agg_goal"], stop={"cycles": max(2, updates // sizes["goal"])}, **sizes)


def _size(pair: RunPair) -> int:
    return max(sum(file.stat().st_size for file in run.path.glob("telemetry/*.jsonl")) for run in (pair.real, pair.sim))


def _mix(run: RunDir) -> str:
    """The share of each kind of record in the bytes of a run, of its first lines."""
    sizes = Counter[str]()
    for file in run.path.glob("telemetry/*.jsonl"):
        with file.open("rb") as stream:
            for line in islice(stream, SAMPLED):
                sizes[line.rpartition(b'"kind":"')[2].partition(b'"')[0].decode()] += len(line)
    return ", ".join(f"{kind} {size / sizes.total():.0%}" for kind, size in sizes.most_common() if size > 0.01 * sizes.total())


def _judged(pair: RunPair) -> int:
    """The exit code of `flame parity`, whose counts and costs are printed."""
    for run in (pair.real, pair.sim):
        if not (run.path / "launcher.json").exists():
            rmtree(run.path / "journal", ignore_errors=True)  # a synthetic run can't be replayed
    started = perf_counter()
    command = [sys.executable, "-m", "flame.launch.cli", "parity", str(pair.real.path), str(pair.sim.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr)
    wall, peak = perf_counter() - started, used.ru_maxrss / 1e6
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"user {used.ru_utime:.1f} s, system {used.ru_stime:.1f} s, wall {wall:.1f} s ({load}), {peak:.2f} GB at most")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
