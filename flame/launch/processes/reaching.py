"""A broker that others run, as `flame worker` and `flame probe` are given it: where it is, and whom to be there."""

from typing import NamedTuple

from flame.config.errors import ConfigError
from flame.config.world import OWN_BROKERS
from flame.launch.preflight.flags import worlds
from flame.runtime.brokers.broker import BrokerError, address
from flame.runtime.transport.access import Access
from flame.runtime.transport.link import MqttLink, TransportError


class Reached(NamedTuple):
    """Where a broker is, and how one gets in."""

    host: str
    port: int
    access: Access


def reached(broker: str, user: str | None, ca: str | None) -> Reached:
    """What was given, in parts. Raises ConfigError, in words that fit a command without `--broker`."""
    try:
        host, port = address(broker)
    except BrokerError:
        what = (
            f"the broker `{broker}` is inside a run, and not to be reached" if broker in OWN_BROKERS else f"there is no broker `{broker}`"
        )
        raise ConfigError(what, "give the HOST:PORT of a running one, such as `localhost:1883`") from None
    [given] = worlds("real", {"broker": broker, "broker_user": user, "broker_ca": ca})
    return Reached(host, port, Access.of(given))


def connect(link: MqttLink, wait_s: float) -> None:
    """Connect it. Raises ConfigError where that can't be done."""
    try:
        link.connect(wait_s)
    except TransportError as error:
        raise ConfigError(*str(error).split("\nhint: ")) from None
