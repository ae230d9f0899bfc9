"""Derived randomness: every draw has a path, and no machine owns a generator.

A stream that is advanced falls out of step as soon as one iteration more or less happens. A path
can't: `derive(seed, "perturb", trainer, version, data_id, n)` is the same number whatever happened
before, in each world and after a resume.
"""

from hashlib import blake2b


def derive(seed: int, *path: int | str) -> int:
    """A 64-bit unsigned integer that is a function of `seed` and `path` alone.

    Parts are length-framed, so ("a", "bc") and ("ab", "c") differ, and so do 1 and "1".
    """
    text = ";".join([f"i{part}" if isinstance(part, int) else f"s{len(part)}:{part}" for part in path])
    return int.from_bytes(blake2b(f"{seed};{text}".encode(), digest_size=8).digest(), "big")


def perturbation(seed: int, node: str, version: int, data_id: int, draw: int) -> int:
    """The seed of an assign's probes: both ends derive it from what both know, so it never travels."""
    return derive(seed, "perturb", node, version, data_id, draw)
