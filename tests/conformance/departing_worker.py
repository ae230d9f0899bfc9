"""A worker in a process of its own: announces its trainers and waits to be killed. RUN NAME HOST PORT NODES..."""

import sys
import threading

from flame.config.condition import Limits
from flame.core.messages import Presence
from flame.core.profile import Profile
from flame.runtime.transport.mqtt import MqttTransport


def main(run: str, name: str, host: str, port: str, *nodes: str) -> None:
    """Announce, then do nothing for a minute at the most."""
    transport = MqttTransport(run, name, "i1", host, int(port), nodes, lambda mail: None, Limits(), listens_presence=False)
    transport.connect(10.0)
    transport.announce([Presence(node, "i1", Profile(node, 1_000), "init", "data", "code") for node in nodes])
    threading.Event().wait(60.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
