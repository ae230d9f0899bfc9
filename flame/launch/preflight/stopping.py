"""`--var-stopping-policy`: what ends a bin beside the gate of variances.

    off          the gate alone: a bin that never agrees goes on for ever (unwise, so it needs `--force`)
    fixed_cap    the gate, then a cap of cycles
    plateau      the gate, then a plateau of V, then the cap

Numbers that the baseline has stay; the others are those of the published study. `--var-threshold` and
`--max-iter-per-data-id` come after it, and change them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from flame.config.errors import ConfigError, unknown

RULES = {"off": ("variance",), "fixed_cap": ("variance", "cap"), "plateau": ("variance", "plateau", "cap")}
PUBLISHED = {"plateau": {"type": "plateau", "patience": 3, "eps": 0.15}, "cap": {"type": "cap", "max": 20}}


def stopping(policy: str, flag: str) -> Callable[[Any], list[Any]]:
    """From the commit rules of a baseline to those of a policy. Raises ConfigError, also later, for a baseline without a gate."""
    if policy not in RULES:
        raise unknown("policy", policy, list(RULES), " (`--var-stopping-policy`)")

    def rules(written: Any) -> list[Any]:
        entries = written if isinstance(written, list) else []
        known = {_type(entry): entry for entry in entries}
        if "variance" not in known:
            raise ConfigError(
                f"`{flag}`: `commit` has no gate of variances, it is {', '.join(known) or 'empty'}",
                "leave such baselines out with `--only`",
            )
        return [known.get(name) or PUBLISHED[name] for name in RULES[policy]]

    return rules


def _type(entry: Any) -> str:
    return str(entry.get("type", "?")) if isinstance(entry, Mapping) else str(entry)
