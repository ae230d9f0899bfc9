"""Scale: one process, 100 000 clients, K = 100, C = 5 000, 200 000 accepts, journal on, no blobs, no checkpoints, telemetry `summary`.

    python bench/surrogate_scale.py [--clients N] [--accepts N]

Prints seconds of the loop and of the joins, and the resident memory at its peak. No torch: the surrogate
learner answers. Bars: 30 s, 2 s, 800 MB on one core.
"""

import argparse
import resource
import tempfile
from time import perf_counter

import flame
from flame.config import Condition, World


def main() -> None:
    """Run once and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--accepts", type=int, default=200_000)
    options = parser.parse_args()
    condition = Condition.model_validate(
        {
            "task": "surrogate", "trainers": options.clients, "goal": 100, "concurrency": min(5_000, options.clients), "loop": "async",
            "select": "random", "commit": ["agg_goal"], "delays": {"lognormal": {}}, "eval": {"every": 0},
            "stop": {"accepts": options.accepts},
        }
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as runs:
        started = perf_counter()
        run = flame.run(condition, World(level="summary", blobs="none", checkpoint=0), runs=runs)
        whole = perf_counter() - started
        timing = run.frame("step_timing")
        joins = timing.filter(timing["function"] == "join")["duration_s"][0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{run.verdict}: {run.accepts} accepts in {run.wall_s:.1f} s ({run.accepts / run.wall_s:.0f}/s), ", end="")
    print(f"{options.clients} joins in {joins:.2f} s, {whole:.1f} s in all, peak {peak:.0f} MB resident")


if __name__ == "__main__":
    main()
