"""What each kind of payload saves: bytes down and up of whole simulated runs on text, as a Markdown table.

    python bench/payloads.py [--baselines fwdllm,fluxtune,fluxtune_stable] [--commits 60] [--seeds 1,2,3]

The baselines are those of experiments.yaml, their payload replaced. Bytes are those of all assigns and updates, as
the codec counts them for both worlds; the factor is to `always_full` and `dense` of the same baseline. `same bits`
holds the digests of every model of every run against that row's. Figures are sums over the seeds.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

import flame
from flame.config import Condition, World
from flame.config.experiments import condition_of, load, parse_seeds

ROWS: dict[str, dict[str, str]] = {
    "always_full, dense": {"down": "always_full", "up": "dense"},
    "once_per_version, dense": {"down": "once_per_version", "up": "dense"},
    "delta, dense": {"down": "delta", "up": "dense"},
    "once_per_version, seeds": {"down": "once_per_version", "up": "seeds"},
    "replay, seeds": {"down": "replay", "up": "seeds"},
    "once_per_version, dense, bf16": {"down": "once_per_version", "up": "dense", "wire_dtype": "bf16"},
    "delta, dense, bf16": {"down": "delta", "up": "dense", "wire_dtype": "bf16"},
    "delta, seeds, bf16": {"down": "delta", "up": "seeds", "wire_dtype": "bf16"},
}


@dataclass
class Sums:
    """Of the runs of one row. models: digests after each close, seed after seed."""

    down: int = 0
    up: int = 0
    accuracy: float = 0.0
    models: tuple[str, ...] = ()

    def add(self, run: Any) -> None:
        """One run more."""
        comm = run.frame("comm").group_by("direction").agg(pl.sum("message_bytes"))
        sizes = dict(comm.iter_rows())
        self.down, self.up = self.down + sizes["down"], self.up + sizes["up"]
        self.accuracy += run.frame("agg_eval")["accuracy"][-1]
        self.models += tuple(run.frame("agg_round")["model"])


def main() -> None:
    """Print the table."""
    asked = flags()
    baselines, seeds = asked.baselines.split(","), parse_seeds(asked.seeds)
    told = f"{asked.part}, {asked.data}, {asked.trainers} trainers, K {asked.goal}, {asked.commits} commits, seeds {asked.seeds}"
    print(f"{told}\n")
    print("| baseline | payload | MB down | MB up | MB | factor | same bits | accuracy |")
    print("|---|---|---:|---:|---:|---:|---|---:|")
    for baseline in baselines:
        report(baseline, {row: measured(condition_of_row(asked, baseline, payload), seeds) for row, payload in ROWS.items()}, len(seeds))


def flags() -> argparse.Namespace:
    """The run-set, as flags."""
    parser = argparse.ArgumentParser(description="bytes of each kind of payload")
    parser.add_argument("--baselines", default="fwdllm,fluxtune,fluxtune_stable")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--data", default="r8")
    parser.add_argument("--part", default="head", choices=["head", "bitfit", "lora", "adapter"])
    parser.add_argument("--last-layers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=10)
    parser.add_argument("--goal", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=10, help="of asynchronous baselines; a synchronous one has C = K")
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--max-bins", type=int, default=16)
    return parser.parse_args()


def condition_of_row(asked: argparse.Namespace, baseline: str, payload: dict[str, str]) -> Condition:
    """The baseline of the registry under the run-set of the flags."""
    known = load()
    own = dict(known.baselines[baseline])
    plain = {
        **known.defaults, **own, "baseline": baseline, "task": "text", "data": asked.data, "payload": payload,
        "partition": {"type": "niid_label", "alpha": 1.0}, "max_bins": asked.max_bins, "trainers": asked.trainers, "goal": asked.goal,
        "trainable": {"part": asked.part} | ({} if asked.part == "head" else {"last_layers": asked.last_layers}),
        "concurrency": asked.concurrency if own["loop"] == "async" else asked.goal, "delays": {"lognormal": {}, "factor": 10},
        "eval": {"rows": 256, "every": asked.commits}, "stop": {"commits": asked.commits},
    }  # fmt: skip
    return condition_of(plain)


def measured(condition: Condition, seeds: Sequence[int]) -> Sums:
    """Run it, seed by seed."""
    sums = Sums()
    for seed in seeds:
        with TemporaryDirectory() as folder:
            of = condition.model_copy(update={"seed": seed})
            sums.add(flame.run(of, World(journal=False, blobs="none"), runs=Path(folder)))
    return sums


def report(baseline: str, rows: dict[str, Sums], seeds: int) -> None:
    """The lines of one baseline; the first row is the one the others are held against."""
    plain = next(iter(rows.values()))
    for name, sums in rows.items():
        total, whole = sums.down + sums.up, plain.down + plain.up
        same = "yes" if sums.models == plain.models else "no"
        print(
            f"| {baseline} | {name} | {sums.down / 1e6:.2f} | {sums.up / 1e6:.2f} | {total / 1e6:.2f} "
            f"| {whole / total:.1f} | {same} | {sums.accuracy / seeds:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
