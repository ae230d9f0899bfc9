"""What a run is: one frozen, typed condition, resolved once and given to both worlds."""

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.config.world import World

__all__ = ["Condition", "ConfigError", "World"]
