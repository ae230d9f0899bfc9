"""Chunks: any order, any number of copies, every damage named, nothing unbounded."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.runtime.transport import chunks
from flame.runtime.transport.chunks import HEADER, ChunkError, Reassembly, parse, sender_of, split

SENDER = sender_of("run", "t0", "a")


def frames(data: bytes, sequence: int = 0, piece_bytes: int = 4) -> list[bytes]:
    return list(split(data, SENDER, sequence, piece_bytes))


def feed(reassembly: Reassembly, packets: list[bytes], now: float = 0.0) -> list[bytes]:
    """Everything that came out, in order."""
    return [data for packet in packets if (data := reassembly.take(parse(packet), now)) is not None]


@given(st.lists(st.binary(max_size=40), max_size=5), st.integers(1, 9), st.randoms(use_true_random=False))
def test_any_order_and_any_number_of_copies_give_each_message_once(messages: list[bytes], piece: int, rng: random.Random) -> None:
    packets = [frame for number, data in enumerate(messages) for frame in frames(data, number, piece)]
    packets += rng.choices(packets, k=len(packets)) if packets else []
    rng.shuffle(packets)
    reassembly = Reassembly()
    assert sorted(feed(reassembly, packets)) == sorted(messages)
    assert reassembly.unfinished == (0, 0)


def test_empty_data_is_one_chunk() -> None:
    assert [len(frame) for frame in frames(b"")] == [HEADER]
    assert feed(Reassembly(), frames(b"")) == [b""]


@given(st.binary(min_size=1, max_size=30), st.data())
def test_a_damaged_chunk_is_refused(data: bytes, draw: st.DataObject) -> None:
    frame = frames(data, piece_bytes=100)[0]
    place = draw.draw(st.integers(0, len(frame) - 1))
    flipped = frame[:place] + bytes([frame[place] ^ draw.draw(st.integers(1, 255))]) + frame[place + 1 :]
    with pytest.raises(ChunkError):
        parse(flipped)
    with pytest.raises(ChunkError):
        parse(frame[:place])


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"", "too few"),
        (b"{}" * 40, "starts with"),
        (frames(b"abc")[0][:-1], "truncated chunk 1 of 1: 2 of 3 bytes"),
        (frames(b"abc")[0] + b"d", "truncated chunk 1 of 1: 4 of 3 bytes"),
        (frames(b"abc")[0][:-1] + b"d", "wrong checksum in chunk 1 of 1"),
        (chunks.MAGIC + b"\x09" + frames(b"abc")[0][5:], "chunk format 9"),
    ],
)
def test_each_damage_is_named(frame: bytes, says: str) -> None:
    with pytest.raises(ChunkError, match=says):
        parse(frame)


def test_a_truncated_chunk_does_not_spoil_its_message() -> None:
    first, second = frames(b"abcdefgh")
    reassembly = Reassembly()
    assert feed(reassembly, [first]) == []
    with pytest.raises(ChunkError):
        parse(second[:-2])
    assert feed(reassembly, [second]) == [b"abcdefgh"]


def test_chunks_that_contradict_each_other_are_refused() -> None:
    reassembly = Reassembly()
    feed(reassembly, frames(b"abcdefgh")[:1])
    with pytest.raises(ChunkError, match="a message of 2 chunks got one of 3"):
        feed(reassembly, frames(b"abcdefghijkl")[1:2])


def test_an_index_beyond_the_count_is_refused() -> None:
    head = chunks._FIELDS.pack(chunks.MAGIC, chunks.VERSION, SENDER, 0, 3, 3, 0)
    with pytest.raises(ChunkError, match="chunk 4 of 3"):
        parse(head + chunks._CHECKSUM.pack(chunks.crc32(head)))


def test_equal_sequences_of_two_senders_are_two_messages() -> None:
    other = list(split(b"ABCDEFGH", sender_of("run", "t0", "b"), 0, 4))
    mixed = [packet for pair in zip(frames(b"abcdefgh"), other, strict=True) for packet in pair]
    assert feed(Reassembly(), mixed) == [b"abcdefgh", b"ABCDEFGH"]


def test_what_is_unfinished_is_bounded_in_number() -> None:
    reassembly = Reassembly(messages=3)
    for number in range(3):
        assert feed(reassembly, frames(b"abcdefgh", number)[:1]) == []
    with pytest.raises(ChunkError, match=r"gave up 1 unfinished: 1 of 2 chunks after 0\.0 s"):
        feed(reassembly, frames(b"abcdefgh", 3)[:1])
    assert reassembly.unfinished[0] == 3
    assert feed(reassembly, frames(b"abcdefgh", 3)[1:]) == [b"abcdefgh"]


@pytest.mark.parametrize("piece", [b"", b"x" * 100])
def test_what_is_unfinished_is_bounded_in_bytes_even_without_any(piece: bytes) -> None:
    """A message of four thousand million empty chunks costs memory per chunk that came, up to the bound."""
    bound = 10 * (len(piece) + chunks.CHUNK_COST)
    reassembly = Reassembly(nbytes=bound)
    heads = [chunks._FIELDS.pack(chunks.MAGIC, chunks.VERSION, SENDER, 0, index, 2**32 - 1, len(piece)) for index in range(11)]
    packets = [head + chunks._CHECKSUM.pack(chunks.crc32(piece, chunks.crc32(head))) + piece for head in heads]
    assert feed(reassembly, packets[:10]) == []
    assert reassembly.unfinished == (1, bound)
    with pytest.raises(ChunkError, match="11 of 4294967295 chunks"):
        feed(reassembly, packets[10:])
    assert reassembly.unfinished == (0, 0)


def test_what_is_unfinished_is_bounded_in_age() -> None:
    reassembly = Reassembly(seconds=5.0)
    assert feed(reassembly, frames(b"abcdefgh", 0)[:1], now=0.0) == []
    assert feed(reassembly, frames(b"abcdefgh", 1)[:1], now=5.0) == []
    with pytest.raises(ChunkError, match=r"1 of 2 chunks after 5\.1 s"):
        feed(reassembly, frames(b"abcdefgh", 2)[:1], now=5.1)
    assert reassembly.unfinished[0] == 2


def test_what_is_finished_is_remembered_up_to_a_bound() -> None:
    reassembly = Reassembly(remembered=2)
    packets = [frames(b"abc", number)[0] for number in range(3)]
    assert len(feed(reassembly, packets)) == 3
    assert feed(reassembly, packets[1:]) == []
    assert feed(reassembly, packets[:1]) == [b"abc"]
