"""The C library's allocator, told to keep what torch frees.

A pass with the tangents of ten probes makes and drops many tensors of some megabytes. glibc gives freed memory of that
size back at once, and the system clears it again page by page: half the time of a step on a small part of a model. Kept,
the next tensor finds it warm. No result depends on it; the process keeps the memory of its largest pass.
"""

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's `mallopt` (malloc.h)."""
LARGEST = 32 << 20
"""Bytes up to which a block comes from the heap: the most that glibc takes."""
KEPT = 1 << 30
"""Bytes of free heap that aren't given back."""


def keep_freed_memory() -> None:
    """For the life of the process. Nothing happens where the C library has no `mallopt`."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, KEPT)
