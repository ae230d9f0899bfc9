"""Fingerprints: which runs may be compared, and which are the same.

`run_fp` covers the whole condition: a real and a sim run with the same one are a pair.
`condition_fp` covers the axes that compared baselines must share.
`seedless_fp` covers what the seeds of one arm share: all but the seed.

Files of devices (delays, scores, traces) count with their contents: two of them under one path are two conditions.
A file that isn't there counts by its path alone; no run gets far without it.
"""

from functools import lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

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
    return _digest(_deciding(condition) | _files(condition))


def seedless_fp(condition: Condition) -> str:
    """Twelve hex digits over what `run_fp` covers, but for the seed and for what files hold, which `condition_fp` covers."""
    return _digest(_deciding(condition) | {"seed": None})


def _deciding(condition: Condition) -> dict[str, Any]:
    """All but the bounds of waiting; of these only the one that ends a run."""
    return condition.model_dump(mode="json", exclude={"limits"}) | {"max_rejects": condition.max_rejects(condition.concurrency)}


def condition_fp(condition: Condition) -> str:
    """Twelve hex digits over the axes that compared baselines share."""
    return _digest(condition.model_dump(mode="json", include=set(SHARED)) | _files(condition))


def _files(condition: Condition) -> dict[str, dict[str, str]]:
    """Fields that name a file, with the digest of what it holds; nothing where none is named."""
    delays = condition.delays
    scores = delays.ai_benchmark.path if delays.ai_benchmark is not None else None
    named = {"delays.registry": delays.registry, "delays.ai_benchmark.path": scores, "availability.path": condition.availability.path}
    found = {field: contents(Path(path)) for field, path in named.items() if path is not None and Path(path).is_file()}
    return {"files": found} if found else {}


def contents(path: Path) -> str:
    """Hex sha256 of a file; it is read again when it has changed."""
    now = path.stat()
    return _contents(path, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=64)
def _contents(path: Path, changed_ns: int, size: int) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _digest(plain: object) -> str:
    return blake2b(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS), digest_size=6).hexdigest()
