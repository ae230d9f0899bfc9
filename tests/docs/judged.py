"""What commands of the pages found wrong, and what of it is no fault of the code's: how long things took is this machine's matter."""

import re

from parity.rungs import LADDER

PHYSICAL = {rung.id for rung in LADDER.rungs if rung.domain == "PHYSICAL"} | {"punctual"}
"""Rungs, and the invariant, that look at how long things took."""
FAILED = (r"^FAIL +(\w+)", r'"id": ?"(\w+)"[^{}]*?"verdict": ?"FAIL"')
"""As a report says it, and as its JSON does."""


def only_late(told: str) -> bool:
    """Whether something failed, and nothing but rungs that look at how long things took."""
    found = {name for form in FAILED for name in re.findall(form, told, re.MULTILINE)}
    return bool(found) and found <= PHYSICAL
