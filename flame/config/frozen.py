"""What every part of a condition is."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable, and refuses keys that it doesn't know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
