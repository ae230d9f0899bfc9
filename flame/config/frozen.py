"""What every part of a condition is."""

from pydantic import ConfigDict

from flame.policies.heard import Hearing


class Frozen(Hearing):
    """Immutable, and refuses keys that it doesn't know, and those that nobody hears."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
