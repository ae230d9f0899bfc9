"""Random conditions of the surrogate task: small, quick to run, and reaching what the rules speak of.

Delays tie often. Thresholds lie where the surrogate's V lies (around 2 for four uploads at p = 4, and
falling as 1/n and as the model learns), targets where its accuracy passes (0.68 at the start, 1 at
the optimum). Some conditions are doomed: more trainers leave for good than K can spare, or a bound on
releases without a close is meant to be hit; the machine has to find that out by itself, in both
worlds at the same stamp.
"""

from __future__ import annotations

import random
from typing import Any

from flame.config.condition import Condition

LIMITS = {"heartbeat_s": 2.0, "grace_s": 7.0, "resend_s": 3.0}
"""Bounds of waiting, short, so that faults are found while a run lasts. They can't change a decision."""


def random_condition(seed: int) -> Condition:
    """The condition of that number."""
    rng = random.Random(f"condition {seed}")
    trainers = rng.randint(4, 11)
    goal = rng.randint(1, min(5, trainers))
    concurrency = goal + rng.choice([0, 1, 2, 4])
    sync, gated = rng.random() < 0.5, rng.random() < 0.5
    plain = {
            "baseline": "random", "seed": seed, "task": "surrogate",
            "surrogate": {"parameters": rng.choice([2, 4]), "bins": rng.choice([2, 3, 5])},
            "trainers": trainers, "goal": goal, "concurrency": concurrency,
            "delays": {"values": [rng.choice([0.2, 0.5, 0.5, 1.0, 2.5]) for _ in range(trainers)]},
            "population": _population(rng, trainers, goal),
            "loop": "sync" if sync else "async",
            "select": _select(rng),
            "staleness": rng.choice(["exact", "same_bin", "accept"]),
            "commit": _gate(rng) if gated else ["agg_goal"],
            "payload": {"down": rng.choice(["always_full", "once_per_version", "once_per_version"])},
            "perturb": rng.choice(["single", "guided"]),
            "server_opt": {"type": "sgd", "lr": rng.choice([0.05, 0.2]), "decay": rng.choice(["none", "round"])},
            "eval": _evaluation(rng.choice([0, 1, 1, 2]), rng.choice([0.0, 0.7, 2.5]), blocks=rng.random() < 0.5),
            "stop": _stop(rng, goal),
            **_availability(seed),
            "wan": _wan(seed),
            "limits": LIMITS | ({"max_rejects": goal + rng.randint(0, 2)} if rng.random() < 0.04 else {}),
    }  # fmt: skip
    plain |= _family(seed)
    return Condition.model_validate(plain | _sizes(seed, plain) | _changes(seed))


def _evaluation(every: int, seconds: float, *, blocks: bool) -> dict[str, Any]:
    return {"every": 0} if every == 0 else {"rows": 8, "every": every, "seconds": seconds, "blocks": blocks and seconds > 0}


def _availability(seed: int) -> dict[str, Any]:
    """Half of the conditions: trainers go away and come back every few seconds of stamp, slots may be given up."""
    rng = random.Random(f"availability {seed}")
    if rng.random() < 0.5:
        return {}
    scale = rng.choice([150.0, 300.0, 600.0])
    abandon = None if rng.random() < 0.3 else scale * rng.choice([0.6, 1.5, 3.0])
    trace = rng.choice(["syn_10", "syn_20", "syn_50"])
    return {
        "availability": {"trace": trace, "time_scale": scale, "abandon_s": abandon},
        "awareness": rng.choice(["none", "oracular", "notified"]),
    }


def _family(seed: int) -> dict[str, Any]:
    """A third of the conditions: the rules of the asynchronous family, under either loop."""
    rng = random.Random(f"family {seed}")
    if rng.random() < 0.67:
        return {}
    plateau = {"type": "plateau", "patience": rng.choice([1, 2]), "eps": rng.choice([0.15, 0.5])}
    pool, cap = {"type": "pool_size", "n": rng.randint(2, 12)}, {"type": "cap", "max": rng.choice([3, 6])}
    gate = {"type": "variance", "threshold": rng.choice([0.2, 0.6])}
    return {
        "commit": rng.choice([[gate, plateau, cap], [pool, cap], [pool], [{"type": "n_eff", "n": 6}, cap], [plateau, cap], ["agg_goal"]]),
        "rate": rng.choice(["fedbuff", "felix", "grad_aware", {"type": "grad_aware", "base": "fedbuff"}]),
        "staleness_unit": rng.choice(["version", "cycle", "stamp"]),
        "perturb": rng.choice(["single", "guided"]),
        "server_opt": rng.choice([{"type": "sgd", "lr": 0.2}, {"type": "momentum", "lr": 0.05}, {"type": "trust_ratio", "rho": 0.05}]),
    }


def _sizes(seed: int, plain: dict[str, Any]) -> dict[str, Any]:
    """Half of the conditions: K and C that change every few cycles, in the middle of bins too.

    K seldom grows over the trainers that stay, where the run would starve. Often C is some times K, so that it
    falls below what is in flight.
    """
    rng = random.Random(f"sizes {seed}")
    if rng.random() < 0.5:
        return {}
    goal, trainers = plain["goal"], plain["trainers"]
    staying = trainers - len(plain["population"]["leaves"])
    most = trainers if rng.random() < 0.1 else max(goal, min(staying, plain["limits"].get("max_rejects", trainers)))
    high = rng.randint(goal, min(most, plain["limits"].get("max_rejects", most)))
    concurrency = max(plain["concurrency"], rng.choice([1, 2, 3]) * goal)
    bounded = rng.random() < 0.3 and max(high, concurrency) <= trainers
    tracking = {
        "type": "var_tracking", "target": rng.choice([1, 2, 2, 3]), "step": rng.choice([1, 1, 2, 3]), "window": rng.choice([1, 1, 2, 3]),
        "goal_min": rng.randint(1, goal), "goal_max": high,
        "concurrency_min": rng.choice([None, None, concurrency]),
        "concurrency_max": rng.randint(max(high, concurrency), trainers) if bounded else None,
    }  # fmt: skip
    long_bins = [{"type": "variance", "threshold": rng.choice([0.2, 0.6, 2.0])}, {"type": "cap", "max": rng.choice([3, 8])}]
    kept = plain["commit"] if rng.random() < 0.3 else long_bins
    return {"sizes": tracking, "concurrency": concurrency, "commit": kept}


def _changes(seed: int) -> dict[str, Any]:
    """A quarter of the conditions: policies that change as some cycle opens, in mid-bin too."""
    rng = random.Random(f"changes {seed}")
    if rng.random() < 0.75:
        return {}
    later: list[dict[str, Any]] = [
        {"server_opt": {"type": "momentum", "lr": 0.05}},
        {"server_opt.lr": 0.4, "rate": "felix"} if not _family(seed) else {"rate": "felix"},
        {"commit": ["agg_goal"]},
        {"commit": [{"type": "pool_size", "n": 5}, {"type": "cap", "max": 3}]},
        {"select": rng.choice(["fedbuff", "async_oort", "random"])},
        {"staleness": rng.choice(["exact", "same_bin", "accept"])},
    ]
    cycles = sorted(rng.sample(range(1, 9), rng.randint(1, 2)))
    return {"changes": [{"cycle": cycle, "set": rng.choice(later)} for cycle in cycles]}


def _wan(seed: int) -> dict[str, Any]:
    """Half of the conditions: legs of a few tenths of a second, of which bytes are a part."""
    rng = random.Random(f"wan {seed}")
    if rng.random() < 0.5:
        return {}
    return {"seconds": rng.choice([0.0, 0.1, 0.5]), "down_mbit": rng.choice([None, 0.0005]), "up_mbit": rng.choice([None, 0.0005])}


def _population(rng: random.Random, trainers: int, goal: int) -> dict[str, Any]:
    """Up to two join late; up to two leave, seldom so many that K can't be reached any more."""
    nodes = [f"t{number:0{len(str(trainers - 1))}}" for number in range(trainers)]
    late = rng.sample(nodes, rng.randint(0, min(2, trainers - goal)))
    spare = max(0, trainers - goal)
    leavers = rng.sample(nodes, spare + 1 if rng.random() < 0.1 else rng.randint(0, min(2, spare)))
    return {
        "joins": {node: rng.randint(1, 12) / 2 for node in late},
        "leaves": {node: rng.randint(14, 30) / 2 if node in late else rng.randint(1, 20) / 2 for node in leavers},
    }


def _select(rng: random.Random) -> Any:
    """Oort's pacer in windows short enough to close twice in a run."""
    oort = [{"type": name, "pacer_step": 3, "pacer_delta": 20} for name in ("oort", "async_oort")]
    return rng.choice(["all", "random", {"type": "random", "every": "round"}, "fedbuff", *oort])


def _gate(rng: random.Random) -> list[dict[str, Any]]:
    return [{"type": "variance", "threshold": rng.choice([0.2, 0.6, 2.0])}, {"type": "cap", "max": rng.choice([2, 4])}]


def _stop(rng: random.Random, goal: int) -> dict[str, Any]:
    """One rule or two; each run ends within some thirty cycles."""
    rules: dict[str, Any] = rng.choice(
        [{"cycles": rng.randint(5, 25)}, {"commits": rng.randint(3, 10)}, {"accepts": goal * rng.randint(5, 20) + rng.randint(0, 2)}]
    )
    if rng.random() < 0.4:
        rules["runtime_s"] = rng.randint(4, 30) / 2
    if rng.random() < 0.3:
        rules["target"] = {"accuracy": rng.choice([0.75, 0.8]), "window": rng.choice([1, 2, 3])}
    if rng.random() < 0.3:
        rules["stall"] = {"window_s": rng.choice([0.5, 1, 3]), "on": rng.choice(["acc", "loss", "either"])}
        rules["stall"] |= {"min_delta": 0.05} if rules["stall"]["on"] != "loss" else {}
    return rules
