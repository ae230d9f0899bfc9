"""What goes down, given what a trainer holds and how long the alternatives are."""

from dataclasses import dataclass
from typing import get_args

import pytest

from flame.core.messages import Payload
from flame.core.tensor import Tensor
from flame.policies.payload import DOWN, UP, Payloads
from flame.policies.payload.rules import HEADER, KEPT, nbytes


def of_bytes(kind: str, count: int) -> Payload:
    return Payload(kind, {"x": Tensor("uint8", (count,), bytes(count))})


@dataclass
class Shelf:
    """Version 7; full weights have 100 bytes, versions from `oldest` on are kept."""

    version: int = 7
    difference: int = 50
    oldest: int = 0

    def full(self) -> Payload:
        return of_bytes("full", 100)

    def delta(self, held: int) -> Payload | None:
        return of_bytes("delta", self.difference) if held >= self.oldest else None

    def log(self, held: int) -> Payload | None:
        return of_bytes("replay", self.difference) if held >= self.oldest else None


def kind(rule: str, held: int | None, shelf: Shelf) -> str:
    return DOWN[rule].payload(held, shelf).kind


@pytest.mark.parametrize(("held", "sent"), [(None, "full"), (0, "full"), (6, "full"), (7, "none")])
def test_once_per_version_sends_what_the_trainer_lacks(held: int | None, sent: str) -> None:
    assert kind("once_per_version", held, Shelf()) == sent


@pytest.mark.parametrize("rule", ["once_per_version", "delta", "replay"])
def test_version_0_is_sent_to_who_holds_nothing(rule: str) -> None:
    assert kind(rule, None, Shelf(version=0)) == "full"
    assert kind(rule, 0, Shelf(version=0)) == "none"


@pytest.mark.parametrize("held", [None, 0, 7])
def test_always_full_is_always_full(held: int | None) -> None:
    assert kind("always_full", held, Shelf()) == "full"


@pytest.mark.parametrize("rule", ["delta", "replay"])
@pytest.mark.parametrize(("difference", "shorter"), [(0, True), (99, True), (100, False), (101, False)])
def test_a_difference_is_sent_where_it_is_shorter(rule: str, difference: int, shorter: bool) -> None:
    assert kind(rule, 3, Shelf(difference=difference)) == (rule if shorter else "full")


@pytest.mark.parametrize("rule", ["delta", "replay"])
def test_who_holds_what_is_forgotten_gets_everything(rule: str) -> None:
    shelf = Shelf(oldest=4)
    assert [kind(rule, held, shelf) for held in (3, 4, None)] == ["full", rule, "full"]


def test_each_name_has_its_rule_and_off_is_the_default() -> None:
    fields = Payloads.model_fields
    assert (set(get_args(fields["down"].annotation)), set(get_args(fields["up"].annotation))) == (DOWN.keys(), UP.keys())
    assert Payloads() == Payloads(down="always_full", up="dense", wire_dtype="f32")
    assert {name: rule.keeps for name, rule in DOWN.items()} == {"always_full": 1, "once_per_version": 1, "delta": KEPT, "replay": KEPT}


def test_a_tensor_costs_more_than_its_bytes() -> None:
    assert nbytes(Payload("none")) == 0
    assert nbytes(of_bytes("full", 100)) == 100 + HEADER
