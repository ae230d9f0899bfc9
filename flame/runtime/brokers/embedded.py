"""The embedded broker: amqtt in a process of its own, `python -m flame.runtime.brokers.embedded --port P`.

Anybody on the loopback interface may connect. Sessions are persistent and expire; retained messages
live as long as the process. It exits at the end of its stdin.

amqtt 0.12 needs help in a few places, each of which stands below as one override with its reason.
What it doesn't do, and the session layer makes good: it forgets QoS 1 messages that were under way to
a client when that one's connection was lost.
"""

import argparse
import asyncio
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

from amqtt.broker import Broker
from amqtt.contexts import BrokerConfig, ListenerConfig
from amqtt.mqtt.protocol.broker_handler import BrokerProtocolHandler
from amqtt.session import Session

from flame.runtime.brokers.guard import wait_for_end_of_stdin

KEEPALIVE_SLACK_S = 20
MAX_KEPT = 256
"""Messages that are kept for an absent client: older ones give way."""


class _Snapshots(dict[str, Any]):
    """A dict that may be changed while it is walked.

    amqtt walks its subscriptions with awaits in between; a SUBSCRIBE in that moment would raise, and a
    client that just connected would never be served.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(list(super().__iter__()))

    def items(self) -> Any:
        return list(super().items())


class _Content(bytes):
    """What a message carries, without showing it: amqtt writes each message out for a log line that is then not logged."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


class EmbeddedBroker(Broker):  # type: ignore[misc]  # amqtt has no type information
    """amqtt's broker with what it needs for this project."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self._subscriptions = _Snapshots()

    async def _authenticate(self, session: Session, _: ListenerConfig) -> bool:
        """Everybody is welcome. The plugin for that also marks sessions as anonymous, and those aren't persistent."""
        return True

    async def _broadcast_message(self, session: Session | None, topic: str, data: bytes, force_qos: int | None = None) -> None:
        """A third of the work for a message of 1 MB."""
        await super()._broadcast_message(session, topic, _Content(data), force_qos)

    async def _publish_retained_messages_for_subscription(self, subscription: tuple[str, int], session: Session) -> None:
        """Only what the client subscribed to: amqtt gives a new one the retained messages of everybody's subscriptions."""
        if any(known.client_id == session.client_id for known, _ in self._subscriptions.get(subscription[0], ())):
            await super()._publish_retained_messages_for_subscription(subscription, session)

    async def _retain_broadcast_message(self, broadcast: dict[str, Any], qos: int, target_session: Session) -> None:
        """Keep a bounded number: a worker that was respawned never comes back to its old session."""
        while target_session.retained_messages.qsize() >= MAX_KEPT:
            target_session.retained_messages.get_nowait()
        await super()._retain_broadcast_message(broadcast, qos, target_session)

    async def _initialize_client_session(self, *connection: Any) -> tuple[BrokerProtocolHandler, Session]:
        """What was kept for a client that comes back goes out before what is new; amqtt lets the new overtake.

        A lock, since it is fair: while somebody waits for it, nobody passes.
        """
        handler, session = await super()._initialize_client_session(*connection)
        publish, turn = handler.mqtt_publish, asyncio.Lock()
        await turn.acquire()

        async def publish_in_turn(topic: str, data: bytes, qos: int, retain: bool, ack_timeout: int | None = None) -> Any:
            if not retain:
                async with turn:
                    pass
            return await publish(topic, data, qos, retain, ack_timeout)

        handler.mqtt_publish, handler.turn = publish_in_turn, turn
        return handler, session

    async def _publish_session_retained_messages(self, session: Session) -> None:
        """Then the new may follow."""
        await super()._publish_session_retained_messages(session)
        _let_through(self._get_handler(session))

    async def _handle_client_session(self, *connection: Any) -> None:
        """Nobody waits for a client that was lost meanwhile."""
        handler = connection[3]
        try:
            await super()._handle_client_session(*connection)
        finally:
            _let_through(handler)

    async def _handle_disconnect(self, session: Session, handler: BrokerProtocolHandler, waiter: "asyncio.Future[Any]") -> None:
        """After a take-over the session belongs to the newer connection; amqtt would leave it marked as disconnected."""
        await super()._handle_disconnect(session, handler, waiter)
        current = self._sessions.get(session.client_id)
        if current is not None and current[0] is session and current[1] is not handler:
            session.transitions.connect()


def _let_through(handler: Any) -> None:
    if handler is not None and handler.turn.locked():
        handler.turn.release()


async def serve(port: int, expiry_s: int) -> None:
    """Run until the process ends. Raises amqtt's BrokerError where the port can't be had."""
    listener = ListenerConfig(bind=f"127.0.0.1:{port}")
    config = BrokerConfig(
        listeners={"default": listener}, plugins={}, session_expiry_interval=expiry_s, timeout_disconnect_delay=KEEPALIVE_SLACK_S
    )
    await EmbeddedBroker(config).start()
    await asyncio.Event().wait()


def _exit_with_stdin() -> None:
    wait_for_end_of_stdin()
    os._exit(0)


def main() -> None:
    """Parse the arguments and serve."""
    parser = argparse.ArgumentParser(description="the embedded MQTT broker")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--expiry-s", type=int, default=3600)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    threading.Thread(target=_exit_with_stdin, daemon=True).start()
    asyncio.run(serve(arguments.port, arguments.expiry_s))


if __name__ == "__main__":
    main()
