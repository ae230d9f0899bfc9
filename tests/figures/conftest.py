"""Simulated runs of two baselines and three seeds, a sweep, and figs.yaml files about them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import yaml

from flame.config import Condition
from flame.config.experiments import load
from flame.launch.run import run

SHARED: dict[str, Any] = {
    "trainers": 6, "goal": 2, "concurrency": 4, "loop": "async", "select": "random", "max_bins": 4, "toy": {"samples": 32},
    "commit": [{"type": "variance", "threshold": 2.0}, {"type": "cap", "max": 3}], "perturb": {"type": "mean_of", "probes": 3},
    "delays": {"values": [1, 2, 3.5]}, "stop": {"cycles": 24}, "availability": {"trace": "phone_2st", "time_scale": 3000},
    "eval": {"rows": 128},
}  # fmt: skip
BASELINES: dict[str, dict[str, Any]] = {
    "fwdllm": {"server_opt": {"type": "sgd", "lr": 0.1}}, "fluxtune_stable": {"server_opt": {"type": "sgd", "lr": 0.5}},
}  # fmt: skip
EXPERIMENTS = """
baselines:
  one: {loop: async, select: random, perturb: single, commit: [agg_goal], rate: constant, server_opt: {type: sgd, lr: 0.1}}
run_sets:
  tiny: {task: toy, trainers: 4, goal: 2, concurrency: 3, delays: {values: [0.2]}, stop: {cycles: 6}, baselines: [one], seeds: [1, 2]}
sweeps:
  steps: {run_set: tiny, grid: {server_opt.lr: [0.1, 1.0], goal: [1, 2]}}
"""
FIGURES: dict[str, dict[str, Any]] = {
    "accuracy-time": {"family": "learning"},
    "loss-commits": {"family": "learning", "x": "commits", "y": "loss"},
    "accuracy-bytes": {"family": "learning", "x": "bytes"},
    "cost": {"family": "bars", "cost": "passes"},
    "yield": {"family": "productivity", "per": "compute_h", "window": 3},
    "time": {"family": "utilisation"},
    "trainers": {"family": "utilisation", "arms": ["fwdllm"]},
    "traffic": {"family": "bytes"},
    "stays": {"family": "sessions"},
    "decay": {"family": "variance", "least": 1},
    "parts": {"family": "ablation", "parts": ["gate", "rate"], "arms": ["fwdllm", "fluxtune_stable", "again", "twice"]},
    "map": {"family": "sweep", "sweep": "steps", "x": "server_opt.lr", "y": "goal", "z": "peak"},
    "lines": {"family": "sweep", "sweep": "steps", "x": "server_opt.lr", "y": "goal", "z": "loss_drop", "kind": "lines"},
}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of both baselines (seeds 1 to 3), of the sweep, and its experiments.yaml."""
    folder = tmp_path_factory.mktemp("paper")
    for baseline, fields in BASELINES.items():
        for seed in (1, 2, 3):
            run(Condition.model_validate(SHARED | fields | {"baseline": baseline, "seed": seed}), runs=folder / "runs", run_set="main")
    (folder / "experiments.yaml").write_text(EXPERIMENTS)
    for _, each in load(folder / "experiments.yaml").swept("steps"):
        run(each.condition, runs=folder / "runs", run_set="tiny")
    return folder


def arms(home: Path) -> dict[str, Any]:
    """Both baselines, and each once more under another name, for figures with four arms."""
    again = [str(path) for path in sorted((home / "runs").glob("*_main_fwdllm_*"))]
    twice = [str(path) for path in sorted((home / "runs").glob("*_main_fluxtune_stable_*"))]
    return {"fwdllm": {"run_set": "main"}, "fluxtune_stable": {"run_set": "main"}, "again": {"dirs": again}, "twice": {"dirs": twice}}


@pytest.fixture
def figs(home: Path, tmp_path: Path) -> Callable[..., Path]:
    """Write a figs.yaml with these figures (all of `FIGURES`), and these sections changed."""

    def write(figures: dict[str, Any] | None = None, **changes: Any) -> Path:
        both = {key: fields | {"arms": fields.get("arms", ["fwdllm", "fluxtune_stable"])} for key, fields in FIGURES.items()}
        for key in ("map", "lines"):
            del both[key]["arms"]
        plain = {
            "runs": str(home / "runs"), "experiments": str(home / "experiments.yaml"), "target": 0.45, "arms": arms(home),
            "figures": both if figures is None else figures,
        } | changes  # fmt: skip
        file = tmp_path / "figs.yaml"
        file.write_text(yaml.safe_dump(plain, sort_keys=False))
        return file

    return write


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No figure outlives its test."""
    yield
    plt.close("all")
