"""How a broker lets one in: a user, a password, and the authority whose certificate it shows.

The password comes from the environment and is written nowhere. A user's topics stand under its own name
(`runtime.transport.topics`), so that a broker can keep the runs of one user from another with one line of its access list.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from flame.config.errors import ConfigError
from flame.config.world import World

PASSWORD = "FLAME_BROKER_PASSWORD"


@dataclass(frozen=True, slots=True)
class Access:
    """user: None where the broker asks for none. ca: a file of certificates in PEM, None where the connection isn't encrypted."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: str | None = None

    @classmethod
    def of(cls, world: World, environment: Mapping[str, str] = os.environ) -> Self:
        """What world and environment say. Raises ConfigError where the password is missing or the file holds no certificate."""
        password = environment.get(PASSWORD) if world.broker_user else None
        if world.broker_user and password is None:
            raise ConfigError(
                f"the password of `{world.broker_user}` at the broker isn't given", f"put it into the environment: {PASSWORD}"
            )
        access = cls(world.broker_user, password, world.broker_ca)
        access.context()
        return access

    def context(self) -> ssl.SSLContext | None:
        """For an encrypted connection; None for a plain one. Raises ConfigError for a file that holds no certificate."""
        if self.ca is None:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"`{self.ca}` can't be used as the broker's authority: {error}", "give its certificate in PEM") from None


ANYBODY = Access()
