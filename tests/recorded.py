"""Recorded data that no package carries and this repository doesn't hold."""

import os
from pathlib import Path

import pytest

HOME = Path(os.environ.get("FLAME_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


def shared(name: str) -> Path:
    """The path of a shared file; the test is skipped where it is missing."""
    if not (HOME / name).is_file():
        pytest.skip(f"there is no {name} in ../shared/data or in $FLAME_SHARED_DATA")
    return HOME / name
