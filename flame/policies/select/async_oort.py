"""Oort where slots are refilled as they come free (the `flame` fork's asynchronous selector).

The rule is Oort's (`oort.py`). A node with an open row isn't free, so it is never chosen; its utility and its
duration still count where the rule looks at all nodes: T, the pacer, the blacklist, whether anybody is
unexplored. One thing differs. A refill wants as many nodes as slots came free, often a single one, of which
Oort's rounding down would give exploitation none while epsilon lasts; so the share is rounded fairly.
"""

from typing import Literal

from flame.policies.select.oort import Scored


class AsyncOort(Scored):
    """Oort for an asynchronous loop."""

    type: Literal["async_oort"] = "async_oort"
    rounding: Literal["down", "fair"] = "fair"
