"""One share of warming the prefix cache, as a process: `python -m flame.learn.warm SHARE SHARES < condition.json`.

A process of its own, and no thread, because each computes with one torch thread: bits depend on it.
"""

import sys

from flame.config.condition import Condition
from flame.learn.text import TextLearner


def main(share: int, shares: int, condition: str) -> None:
    """Fill every `shares`-th batch from `share` on, for the condition given as JSON."""
    TextLearner(Condition.model_validate_json(condition)).fill(share, shares)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.stdin.read())
