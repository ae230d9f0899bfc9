"""The link's gate: one order of sending, and a bound on what waits, whatever paho's thread does meanwhile."""

import queue
import socket
import threading
from collections.abc import Iterator

import pytest

from flame.config.condition import Limits
from flame.runtime.brokers.broker import PrivateBroker, open_broker
from flame.runtime.transport import link as link_module
from flame.runtime.transport.link import Connected, Disconnected, Mail, MqttLink, Raw, TransportError, Wiring

pytestmark = pytest.mark.real
BOUND_S = 10.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateBroker]:
    """A broker that tests may stop and start."""
    started = open_broker("embedded", tmp_path_factory.mktemp("link"), Limits())
    assert isinstance(started, PrivateBroker)
    started.start(BOUND_S)
    yield started
    started.stop()


class End:
    """A link that listens to a topic of its own."""

    def __init__(self, broker: PrivateBroker, name: str) -> None:
        self.mailbox: queue.Queue[Mail] = queue.Queue()
        self.packets: list[Raw] = []
        self.topic = f"link/{name}"
        self.link = MqttLink(Wiring(name, broker.host, broker.port, [self.topic], f"{self.topic}/echo", None, self.mailbox.put))
        self.link.connect(BOUND_S)
        self.next(Connected)

    def next(self, kind: type[Mail]) -> Mail:
        """The next of `kind`; packets that come before it are kept."""
        while True:
            mail = self.mailbox.get(timeout=BOUND_S)
            if isinstance(mail, Raw):
                self.packets.append(mail)
            if isinstance(mail, kind):
                return mail

    def send(self, number: int, topic: str | None = None) -> None:
        self.link.publish(topic or self.topic, [str(number).encode()])

    def cut(self) -> None:
        """Lose the connection; the broker keeps the session."""
        connection = self.link._client.socket()
        assert connection is not None
        connection.shutdown(socket.SHUT_RDWR)

    def received(self, last: int) -> list[int]:
        """Numbers in the order of their first arrival, up to `last`."""
        while not self.packets or int(self.packets[-1].payload) != last:
            self.next(Raw)
        return list(dict.fromkeys(int(packet.payload) for packet in self.packets))


@pytest.mark.parametrize("lose", ["sender", "receiver", "broker"])
def test_order_holds_through_lost_connections_while_a_thread_goes_on_sending(broker: PrivateBroker, lose: str) -> None:
    """What the broker had and didn't pass on may be lost; nothing overtakes."""
    sender, receiver = End(broker, f"from-{lose}"), End(broker, f"to-{lose}")
    stop = threading.Event()
    sent = 0

    def send_on() -> None:
        nonlocal sent
        while not stop.wait(0.006):
            sender.send(sent, receiver.topic)
            sent += 1

    thread = threading.Thread(target=send_on)
    thread.start()
    for _ in range(2):
        lost = [sender] if lose == "sender" else [receiver] if lose == "receiver" else [sender, receiver]
        broker.restart(BOUND_S) if lose == "broker" else lost[0].cut()
        for end in lost:
            end.next(Disconnected)
            assert end.next(Connected) == Connected(again=True)
    stop.set()
    thread.join(BOUND_S)
    sender.send(sent, receiver.topic)
    numbers = receiver.received(sent)
    assert numbers == sorted(numbers)
    assert lose == "broker" or len(numbers) > 0.8 * sent
    for end in (sender, receiver):
        end.link.close(1.0)


def test_what_waits_is_bounded_in_number_and_the_error_says_what_to_do(broker: PrivateBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    end = End(broker, "number")
    monkeypatch.setattr(link_module, "MAX_QUEUED", 5)
    for number in range(30):
        end.send(number)
        assert end.link.flush(BOUND_S)
    broker.stop()
    end.next(Disconnected)
    for number in range(30, 35):
        end.send(number)
    with pytest.raises(TransportError, match=rf"`number` has 6 packets .* at {broker.host}:{broker.port}.*disconnected\nhint:"):
        end.send(35)
    broker.start(BOUND_S)
    end.next(Connected)
    assert end.link.flush(BOUND_S)
    end.link.close(1.0)


def test_what_waits_is_bounded_in_bytes_and_a_batch_is_sent_whole_or_not(broker: PrivateBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    end = End(broker, "bytes")
    monkeypatch.setattr(link_module, "MAX_QUEUED_BYTES", 1_000)
    with pytest.raises(TransportError, match="1200 bytes waiting"):
        end.link.publish(end.topic, [b"1" * 400] * 3)
    end.link.publish(end.topic, [b"2" * 400] * 2)
    first = end.next(Raw)
    assert isinstance(first, Raw)
    assert first.payload == b"2" * 400
    end.link.close(1.0)


def test_closing_without_a_broker_raises_nothing_and_ends_in_time(broker: PrivateBroker) -> None:
    end = End(broker, "closing")
    broker.stop()
    end.next(Disconnected)
    end.link.close(0.5)
    assert not end.link.flush(0.01)
    assert not end.link.hint(end.topic, b"x")
    broker.start(BOUND_S)
