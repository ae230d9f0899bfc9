"""One condition, run simulated and for real, compared cycle by cycle.

python examples/toy/pair.py
"""

import flame
from flame.config import Condition

CONDITION = Condition.model_validate(
    {
        "baseline": "toy", "task": "toy", "trainers": 10, "goal": 4, "concurrency": 8, "loop": "async", "select": "random",
        "commit": ["agg_goal"], "delays": {"values": [0.3, 0.5, 0.5, 0.7, 0.9]}, "stop": {"cycles": 20},
    }
)  # fmt: skip


def main() -> None:
    """Run both worlds and say where they part, if they do."""
    simulated, real = flame.run(CONDITION, "sim"), flame.run(CONDITION, "real")
    for run in (simulated, real):
        print(f"{run.path.name}: {run.verdict} ({run.reason}), {run.wall_s:.2f} s of wall for {run.virtual_s:.2f} s")
    ours, theirs = (run.frame("agg_round").select("cycle", "cohort", "variance", "model") for run in (simulated, real))
    parted = [cycle for cycle, mine, other in zip(ours["cycle"], ours.rows(), theirs.rows(), strict=True) if mine != other]
    print(f"first divergent cycle: {parted[0]}" if parted else f"all {len(ours)} cycles are equal, bit for bit")


if __name__ == "__main__":
    main()
