"""Fingerprints: which runs may be compared, and which are the same.

`run_fp` covers the whole condition: a real and a sim run with the same one are a pair.
`condition_fp` covers the axes that compared baselines must share.
"""

from hashlib import blake2b

import orjson

from flame.config.condition import Condition

SHARED = (
    "task", "toy", "surrogate", "data", "model", "partition", "trainable", "tokens", "batch_size", "max_bins",
    "trainers", "goal", "delays", "wan", "population", "availability", "commit_order", "pacing", "eval",
    "stop",
)  # fmt: skip
"""The axes of `condition_fp`: not baseline, seed, policies or bounds of waiting."""


def run_fp(condition: Condition) -> str:
    """Twelve hex digits over the whole condition but the bounds of waiting, which can't change a decision."""
    plain = condition.model_dump(mode="json", exclude={"limits"})
    return _digest(plain | {"max_rejects": condition.max_rejects})


def condition_fp(condition: Condition) -> str:
    """Twelve hex digits over the axes that compared baselines share."""
    return _digest(condition.model_dump(mode="json", include=set(SHARED)))


def _digest(plain: object) -> str:
    return blake2b(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS), digest_size=6).hexdigest()
