"""The allocator keeps freed blocks: the second tensor of a size is made without new pages."""

import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from flame.learn.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def touched():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        [np.ones(1 << 20) for _ in range(8)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
touched()
print(touched())
"""


def faults(how: str) -> int:
    """Page faults of eight arrays of 8 MiB, made and dropped four times, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", FAULTS, how], check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator is Linux's")
def test_freed_blocks_are_used_again() -> None:
    """8 MiB are 2048 pages; kept, no array is mapped a second time."""
    assert faults("kept") < 2048 < faults("plain")
