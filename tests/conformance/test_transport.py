"""What the real driver may rely on, the same for each broker and for the one in memory."""

import random
import socket
import threading
from collections import defaultdict
from time import monotonic

import pytest

from flame.config.condition import Limits
from flame.core.messages import Assign, End, Heartbeat, Message, Payload, Update, Weights
from flame.core.tensor import Tensor
from flame.runtime.transport import chunks, codec, envelope
from flame.runtime.transport.envelope import Envelope
from flame.runtime.transport.link import Connected, Disconnected, MqttLink, TransportError
from flame.runtime.transport.mqtt import Inbound, MqttTransport

from .arms import Arm, Loopback, Peer, connect, retained
from .conftest import Bench


def assign(number: int) -> Assign:
    return Assign(number, 0, 0, 0, 0, 10, 20, 5, Payload("none"))


def update(number: int) -> Update:
    return Update(number, 0, 0, 0, 20, Payload("dense", {"delta": Tensor("uint8", (3,), b"abc")}), 8, float("nan"), 1.5, -0.0)


def weights(nbytes: int) -> Weights:
    return Weights(1, Payload("full", {"theta": Tensor("uint8", (nbytes,), random.Random(nbytes).randbytes(nbytes))}))


def send(peer: Peer, to: str, msg: Message, src: str | None = None) -> None:
    peer.transport.send(to, src or peer.transport.nodes[0], codec.encode(msg))


def packets(run: str, msg: Message, *, to: str = "aggregator", src: str = "t0", piece: int = 1 << 20, sequence: int = 1) -> list[bytes]:
    """Packets of a message as a process that isn't connected would send them."""
    packed = envelope.pack(Envelope(run, src, to, "i9"), [codec.encode(msg)])
    return list(chunks.split(packed, chunks.sender_of(run, src, "i9"), sequence, piece))


# --- messages ---


def test_a_message_arrives_with_all_that_was_said(bench: Bench) -> None:
    aggregator, worker = bench.aggregator(), bench.worker()
    data = codec.encode(update(3))
    worker.transport.send("aggregator", "t1", data, {"compute_s": 0.5, "broken": float("nan")})
    got = aggregator.inbound()
    assert (got.kind, got.src, got.dst, got.incarnation) == ("message", "t1", "aggregator", "i1")
    assert codec.encode(got.message) == data
    assert got.nbytes == codec.size(update(3)) == len(data)
    assert got.measured == {"compute_s": 0.5}
    assert got.at_ns > 0


def test_each_senders_messages_arrive_once_and_in_order(bench: Bench) -> None:
    aggregator = bench.aggregator()
    workers = [bench.worker(f"w{number}", (f"t{number}",)) for number in range(3)]
    for number in range(40):
        for worker in workers:
            send(worker, "aggregator", weights(200_000) if number % 10 == 3 else update(number))
    got = defaultdict(list)
    for _ in range(40 * 3):
        inbound = aggregator.inbound()
        got[inbound.src].append(inbound.message.id if isinstance(inbound.message, Update) else 200_000)
    assert got == {f"t{index}": [200_000 if number % 10 == 3 else number for number in range(40)] for index in range(3)}


def test_one_process_hosts_several_nodes(bench: Bench) -> None:
    aggregator, worker = bench.aggregator(), bench.worker(nodes=("t0", "t1", "t2"))
    for number in range(3):
        send(aggregator, f"t{number}", assign(number))
    assert {worker.inbound().dst for _ in range(3)} == {"t0", "t1", "t2"}


@pytest.mark.parametrize(("nbytes", "chunk"), [(300_000, 1_000), (3_000_000, 1 << 20), (0, 1), (1 << 20, 1 << 20)])
def test_a_long_message_is_cut_and_put_together(bench: Bench, nbytes: int, chunk: int) -> None:
    limits = Limits(chunk_bytes=chunk)
    aggregator, worker = bench.aggregator(limits=limits), bench.worker(limits=limits)
    msg = weights(nbytes)
    send(aggregator, "t0", msg)
    got = worker.inbound()
    assert got.message == msg
    assert got.nbytes == codec.size(msg)


def test_duplicates_and_any_order_of_chunks_give_one_message(bench: Bench) -> None:
    aggregator = bench.aggregator()
    several = packets(bench.run, weights(5_000), piece=1_000) * 2
    random.Random(1).shuffle(several)
    for packet in several:
        bench.arm.publish(f"flame/{bench.run}/to/aggregator", packet)
    bench.arm.publish(f"flame/{bench.run}/to/aggregator", packets(bench.run, update(1), sequence=2)[0])
    assert aggregator.inbound().message == weights(5_000)
    assert isinstance(aggregator.inbound().message, Update)
    assert len([seen for seen in aggregator.seen if isinstance(seen, Inbound)]) == 2


# --- what is refused ---


@pytest.mark.parametrize("topic", ["to/aggregator", "presence/w7", "beat/w7"])
@pytest.mark.parametrize("payload", [b"x", b"\x80\x05garbage" * 30, b"{}" * 1000, chunks.MAGIC + b"\0" * 100])
def test_garbage_is_refused_and_what_follows_is_not(bench: Bench, topic: str, payload: bytes) -> None:
    aggregator, worker = bench.aggregator(), bench.worker()
    bench.arm.publish(f"flame/{bench.run}/{topic}", payload)
    assert aggregator.refused().topic.endswith(topic)
    send(worker, "aggregator", update(1))
    assert isinstance(aggregator.inbound().message, Update)


def test_garbage_where_the_end_is_awaited_is_refused(bench: Bench) -> None:
    worker = bench.worker()
    bench.arm.publish(f"flame/{bench.run}/end", b"garbage")
    assert "too few for a chunk" in worker.refused().why


def test_a_truncated_chunk_is_refused_and_its_message_survives_when_it_comes_again(bench: Bench) -> None:
    aggregator = bench.aggregator()
    first, *rest = packets(bench.run, weights(5_000), piece=1_000)
    for packet in (first[:-10], first[:-1] + b"!", *rest, first):
        bench.arm.publish(f"flame/{bench.run}/to/aggregator", packet)
    assert "truncated chunk 1 of" in aggregator.refused().why
    assert "checksum" in aggregator.refused().why
    assert aggregator.inbound().message == weights(5_000)


def test_a_message_of_another_run_is_refused(bench: Bench) -> None:
    aggregator = bench.aggregator()
    bench.arm.publish(f"flame/{bench.run}/to/aggregator", packets("yesterday", update(1))[0])
    assert "another run, `yesterday`, from `t0`" in aggregator.refused().why


def test_two_runs_on_one_broker_do_not_hear_each_other(bench: Bench) -> None:
    other = Bench(bench.arm, f"{bench.run}-b")
    ends = [(made.aggregator(), made.worker()) for made in (bench, other)]
    for number, (aggregator, worker) in enumerate(ends):
        worker.transport.announce(worker.presences())
        send(worker, "aggregator", update(number))
        send(aggregator, "t0", assign(number))
    for number, (aggregator, worker) in enumerate(ends):
        assert codec.encode(aggregator.inbound().message) == codec.encode(update(number))
        assert worker.inbound().message == assign(number)
    for peer in other.peers:
        peer.transport.close()
    for aggregator, worker in ends:
        assert [seen for seen in aggregator.seen + worker.seen if not isinstance(seen, Connected | Inbound)] == []
        assert len([seen for seen in aggregator.seen if isinstance(seen, Inbound)]) == 2


@pytest.mark.parametrize(
    ("place", "outside", "messages", "says"),
    [
        ("to/aggregator", Envelope("RUN", "t0", "t9", "i9"), [update(1)], "to `t9`"),
        ("to/aggregator", Envelope("RUN", "t0", "aggregator", "i9"), [End("x")], "end from `t0` on a topic for to"),
        ("to/aggregator", Envelope("RUN", "t0", "aggregator", "i9"), [], "0 messages"),
        ("to/aggregator", Envelope("RUN", "t0", "aggregator", "i9"), [update(1), update(2)], "2 messages"),
        ("presence/w7", Envelope("RUN", "w8", "", "i9", ["t0"]), [], "a presence of `w8`"),
        ("beat/w7", Envelope("RUN", "w7", "", "i9"), [Heartbeat("w7", "i8", [], 0)], "another incarnation"),
    ],
)
def test_a_message_that_has_no_business_on_its_topic_is_refused(
    bench: Bench, place: str, outside: Envelope, messages: list[Message], says: str
) -> None:
    aggregator = bench.aggregator()
    outside = Envelope(bench.run, outside.src, outside.dst, outside.incarnation, outside.nodes)
    packed = envelope.pack(outside, [codec.encode(message) for message in messages])
    bench.arm.publish(f"flame/{bench.run}/{place}", next(chunks.split(packed, b"8 bytes.", 1, 1 << 20)))
    assert says in aggregator.refused().why


# --- presence, heartbeats, the end ---


def test_a_late_aggregator_sees_who_was_there_before(bench: Bench) -> None:
    for number in range(2):
        worker = bench.worker(f"w{number}", (f"t{number}a", f"t{number}b"))
        worker.transport.announce(worker.presences())
        assert worker.transport._link.flush(5.0)
    aggregator = bench.aggregator()
    got = {inbound.src: inbound for inbound in (aggregator.inbound("presence") for _ in range(2))}
    assert {name: inbound.nodes for name, inbound in got.items()} == {"w0": ["t0a", "t0b"], "w1": ["t1a", "t1b"]}
    assert [message.profile.delay_ns for message in got["w0"].messages] == [1_000, 1_000]  # type: ignore[union-attr]


def test_a_worker_does_not_hear_the_presence_of_others(bench: Bench) -> None:
    first = bench.worker()
    first.transport.announce(first.presences())
    assert first.transport._link.flush(5.0)
    second = bench.worker("w1", ("t9",))
    send(bench.aggregator(), "t9", assign(1))
    second.inbound()
    assert [seen for seen in second.seen if isinstance(seen, Inbound) and seen.kind != "message"] == []


def test_the_last_will_of_a_killed_worker_clears_its_presence(bench: Bench) -> None:
    aggregator = bench.aggregator()
    bench.arm.kill_a_worker(bench.run, "w0", ["t0", "t1"], lambda: aggregator.inbound("presence") and None)
    gone = aggregator.inbound("gone")
    assert (gone.src, gone.nodes, gone.incarnation, gone.messages) == ("w0", ["t0", "t1"], "i1", [])
    assert bench.aggregator(incarnation="i2").inbound("gone").nodes == ["t0", "t1"]


def test_a_worker_that_says_goodbye_leaves_no_will(bench: Bench) -> None:
    aggregator, worker = bench.aggregator(), bench.worker()
    worker.transport.announce(worker.presences())
    aggregator.inbound("presence")
    worker.transport.close()
    send(bench.worker("w1", ("t9",)), "aggregator", update(1))
    aggregator.inbound()
    assert [seen for seen in aggregator.seen if isinstance(seen, Inbound) and seen.kind == "gone"] == []


def test_a_heartbeat_arrives(bench: Bench) -> None:
    aggregator, worker = bench.aggregator(), bench.worker()
    assert worker.transport.beat(Heartbeat("w0", "i1", [7], 0))
    assert aggregator.inbound("beat").message == Heartbeat("w0", "i1", [7], 0)


def test_the_end_reaches_who_is_there_and_who_comes_late(bench: Bench) -> None:
    aggregator, worker = bench.aggregator(), bench.worker()
    aggregator.transport.end(End("COMPLETED"))
    assert worker.inbound("end").message == End("COMPLETED")
    assert bench.worker("w1", ("t2",)).inbound("end").message == End("COMPLETED")


def test_clear_leaves_nothing_retained(bench: Bench) -> None:
    aggregator = bench.aggregator()
    for number in range(3):
        worker = bench.worker(f"w{number}", (f"t{number}",))
        worker.transport.announce(worker.presences())
        aggregator.inbound("presence")
    aggregator.transport.end(End("COMPLETED"))
    assert aggregator.transport._link.flush(5.0)
    assert len(retained(bench.arm, bench.run)) == 4
    assert aggregator.transport.clear()
    assert retained(bench.arm, bench.run) == set()


# --- losses ---


def lost_and_found(peer: Peer) -> None:
    peer.until(lambda seen: isinstance(seen, Disconnected))
    peer.until(lambda seen: seen == Connected(again=True))


def test_after_a_crash_of_the_broker_everybody_is_back_and_renews_what_was_retained(bench: Bench) -> None:
    aggregator, worker = bench.aggregator(), bench.worker()
    worker.transport.announce(worker.presences())
    aggregator.inbound("presence")
    bench.arm.crash()
    worker.until(lambda seen: isinstance(seen, Disconnected))
    assert not worker.transport.beat(Heartbeat("w0", "i1", [], 0))
    for number in range(20):
        send(worker, "t0", assign(number), "t1")
    bench.arm.restart()
    worker.until(lambda seen: seen == Connected(again=True))
    assert [worker.inbound().message for _ in range(20)] == [assign(number) for number in range(20)]
    lost_and_found(aggregator)
    worker.transport.renew()
    assert aggregator.inbound("presence").nodes == ["t0", "t1"]
    send(worker, "aggregator", update(99))
    assert isinstance(aggregator.inbound().message, Update)
    assert bench.aggregator(incarnation="i2").inbound("presence").nodes == ["t0", "t1"]


def test_a_cut_connection_comes_back_and_messages_go_on(bench: Bench) -> None:
    aggregator, worker = bench.aggregator(), bench.worker()
    bench.arm.cut(worker)
    lost_and_found(worker)
    for number in range(10):
        send(aggregator, "t0", assign(number))
        send(worker, "aggregator", update(number))
    assert [worker.inbound().message for _ in range(10)] == [assign(number) for number in range(10)]
    assert [aggregator.inbound().message.id for _ in range(10)] == list(range(10))  # type: ignore[union-attr]


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def test_without_a_broker_connecting_fails_in_time_and_says_where(arm: Arm, run: str) -> None:
    nowhere = Loopback() if isinstance(arm, Loopback) else None
    if nowhere:
        nowhere.crash()
    port = nowhere.port if nowhere else free_port()
    host = nowhere.host if nowhere else arm.host
    link_of = nowhere.link_of if nowhere else arm.link_of
    transport = MqttTransport(run, "w0", "i1", host, port, ["t0"], lambda mail: None, Limits(), False, link_of)
    start = monotonic()
    with pytest.raises(TransportError, match=rf"`flame-{run}-w0-i1` can't reach a broker at {host}:{port}(.|\n)*hint:"):
        transport.connect(1.0)
    assert monotonic() - start < 3.0


@pytest.mark.real
def test_something_that_is_no_broker_is_given_up_in_time(run: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        transport = MqttTransport(run, "w0", "i1", "127.0.0.1", port, ["t0"], lambda mail: None, Limits(), False)
        start = monotonic()
        with pytest.raises(TransportError, match=f"at 127.0.0.1:{port}: it accepted the connection, but sent no CONNACK"):
            transport.connect(0.5)
        assert monotonic() - start < 4.0


@pytest.mark.real
def test_thirty_workers_at_once(bench: Bench) -> None:
    """All come at the same moment, while presence is retained, and each gets and sends 110 kB."""
    aggregator = bench.aggregator()
    workers: list[Peer] = []

    def come(number: int) -> None:
        worker = connect(bench.arm, bench.run, f"w{number}", [f"t{number}"])
        worker.transport.announce(worker.presences())
        workers.append(worker)

    threads = [threading.Thread(target=come, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    bench.peers += workers
    assert len(workers) == 30
    assert {aggregator.inbound("presence").src for _ in range(30)} == {f"w{number}" for number in range(30)}
    for worker in workers:
        send(aggregator, worker.transport.nodes[0], weights(110_000))
    for worker in workers:
        assert worker.inbound().message == weights(110_000)
        send(worker, "aggregator", weights(110_000))
    assert {aggregator.inbound().src for _ in range(30)} == {f"t{number}" for number in range(30)}


def test_the_link_of_the_mqtt_arms_is_the_real_one(arm: Arm) -> None:
    assert isinstance(arm, Loopback) or arm.link_of is MqttLink
