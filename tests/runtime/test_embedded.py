"""What amqtt does wrong by itself, one test for each override in `flame.runtime.brokers.embedded`, with clients that know nothing of it."""

import asyncio
import queue
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from flame.config.condition import Limits
from flame.runtime.brokers import embedded
from flame.runtime.brokers.broker import PrivateBroker, open_broker

pytestmark = pytest.mark.real
BOUND_S = 10.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateBroker]:
    """An embedded broker."""
    started = open_broker("embedded", tmp_path_factory.mktemp("embedded"), Limits())
    assert isinstance(started, PrivateBroker)
    started.start(BOUND_S)
    yield started
    started.stop()


class Plain:
    """A paho client with a mailbox, which doesn't reconnect."""

    def __init__(self, broker: PrivateBroker, name: str, topics: list[str], *, will: str = "") -> None:
        self.mailbox: queue.Queue[str] = queue.Queue()
        self.client = Client(CallbackAPIVersion.VERSION2, name, clean_session=False, reconnect_on_failure=False)
        self.client.on_connect = lambda client, *rest: client.subscribe([(topic, 1) for topic in topics])
        self.client.on_subscribe = lambda *rest: self.mailbox.put("subscribed")
        self.client.on_message = self._on_message
        if will:
            self.client.will_set(will, b"will", qos=1)
        self.client.connect(broker.host, broker.port)
        self.client.loop_start()
        self.waited = self.until("subscribed")

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        self.mailbox.put(message.payload.decode())

    def until(self, wanted: str) -> list[str]:
        """What comes up to `wanted`, without that."""
        before = []
        while (got := self.mailbox.get(timeout=BOUND_S)) != wanted:
            before.append(got)
        return before

    def publish(self, topic: str, payload: str, *, retain: bool = False) -> None:
        self.client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(BOUND_S)

    def cut(self) -> None:
        """Lose the connection without a goodbye."""
        connection = self.client.socket()
        assert connection is not None
        connection.shutdown(socket.SHUT_RDWR)


def test_a_client_gets_only_what_is_retained_on_its_own_topics(broker: PrivateBroker) -> None:
    first = Plain(broker, "only-1", ["only/a"])
    first.publish("only/a", "for a", retain=True)
    first.until("for a")
    second = Plain(broker, "only-2", ["only/b"])
    second.publish("only/b", "for b")
    assert second.waited + second.until("for b") == []


def test_a_client_that_takes_its_session_over_from_a_stale_connection_is_served(broker: PrivateBroker) -> None:
    other = Plain(broker, "take-2", ["take/will"])
    Plain(broker, "take-1", ["take/a"], will="take/will")
    newer = Plain(broker, "take-1", ["take/a"], will="take/will")
    other.until("will")
    other.publish("take/a", "hello")
    newer.until("hello")


def test_a_persistent_session_is_kept_for_a_client_without_a_name_and_password(broker: PrivateBroker) -> None:
    other = Plain(broker, "keep-2", ["keep/will"])
    Plain(broker, "keep-1", ["keep/a"], will="keep/will").cut()
    other.until("will")
    for number in range(embedded.MAX_KEPT + 10):
        other.publish("keep/a", str(number))
    back = Plain(broker, "keep-1", ["keep/a"])
    back.publish("keep/a", "last")
    got = back.waited + back.until("last")
    assert got[-1] == str(embedded.MAX_KEPT + 9)
    assert [int(number) for number in got] == list(range(int(got[0]), embedded.MAX_KEPT + 10))
    assert len(got) <= embedded.MAX_KEPT + 1


def test_subscriptions_may_change_while_they_are_walked() -> None:
    snapshots = embedded._Snapshots(a=1, b=2)
    for key in snapshots:
        snapshots[key * 2] = 3
    for key, _ in snapshots.items():
        snapshots[key * 2] = 4
    assert sorted(snapshots) == ["a", "aa", "aaaa", "b", "bb", "bbbb"]


def test_clients_may_come_back_while_others_come(broker: PrivateBroker) -> None:
    """Without the snapshots amqtt's tasks die of a dictionary that changes under them; its log tells."""
    first = Plain(broker, "many-0", ["many/0/+"])
    for number in range(20):
        first.publish(f"many/0/{number}", "x", retain=True)
    for number in range(1, 21):
        Plain(broker, f"many-{number}", ["many/0/+"]).client.disconnect()
    threads = [threading.Thread(target=Plain, args=(broker, f"many-{number}", ["many/0/+", f"many/{number}"])) for number in range(1, 41)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND_S)
    assert "Traceback" not in broker.log.read_text()


def test_a_port_that_is_taken_is_an_error(broker: PrivateBroker, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="address already in use"):
        asyncio.run(asyncio.wait_for(embedded.serve(broker.port, 60), BOUND_S))
