"""What goes down: weights once per version, u only where guided wants it, and the counters of draws."""

from typing import Any

import numpy as np
import pytest

from flame.config.condition import Condition
from flame.core.effects import Send
from flame.core.events import ComputeDone, Received
from flame.core.messages import Assign, Payload, Update
from flame.core.profile import Profile
from flame.core.tasks import Gradient
from flame.core.time import SECOND
from flame.learn.learner import build
from flame.learn.params import vector
from flame.policies.payload import UP, Terms
from flame.policies.payload.rules import KEPT
from flame.roles.trainer import Trainer
from flame.runtime.transport.session import Dispatches
from flame.telemetry.records import Dispatch
from tests.stage import PLAIN, Heard, Stage, condition, numbers


def one_trainer(**changes: Any) -> Stage:
    """K = C = 1, two bins, a commit at each second close."""
    plain = {"trainers": 1, "goal": 1, "concurrency": 1, "surrogate": {"parameters": 2, "bins": 2}, "commit": [{"type": "cap", "max": 2}]}
    return Stage(condition(**(plain | changes)))


def rounds(stage: Stage, count: int) -> list[Heard]:
    """The dispatches of a run in which update i is (i, 0)."""
    return [stage.start(), *(stage.answer(number, float(number), 0.0) for number in range(1, count))]


def kinds(heard: list[Heard]) -> list[str]:
    return [step.assigns["t0"].payload.kind for step in heard]


def test_once_per_version_sends_each_version_once() -> None:
    heard = rounds(one_trainer(payload={"down": "once_per_version"}), 6)
    assert kinds(heard) == ["full", "none", "full", "none", "full", "none"]
    assert [list(step.assigns["t0"].payload.tensors) for step in heard[:2]] == [["theta"], []]


def test_always_full_is_always_full() -> None:
    assert kinds(rounds(one_trainer(), 4)) == ["full"] * 4


def test_once_per_version_counts_per_trainer() -> None:
    stage = Stage(condition(goal=1, concurrency=2, trainers=2, payload={"down": "once_per_version"}, commit=[{"type": "cap", "max": 2}]))
    assert {assign.payload.kind for assign in stage.start().assigns.values()} == {"full"}
    assert stage.answer(1).assigns["t0"].payload.kind == "none"
    assert stage.answer(3).assigns["t0"].payload.kind == "full"  # committed
    assert stage.answer(2).assigns["t1"].payload.kind == "full"  # holds version 0 only
    assert stage.machine.roster.members["t1"].held == 1


def test_the_record_says_which_kind_was_sent() -> None:
    stage = one_trainer(payload={"down": "once_per_version"})
    recorded = [step.records(Dispatch)[0].payload for step in rounds(stage, 3)]
    assert recorded == ["full", "none", "full"]


@pytest.mark.parametrize("down", ["always_full", "once_per_version", "delta", "replay"])
def test_one_step_may_send_more_versions_than_a_rule_reaches_back_to(down: str) -> None:
    """The least row is late, and 39 updates wait for it: 40 commits in one step, all of whose assigns are sent after it."""
    delays = {"values": [1 + number / 100 for number in range(40)]}
    of = condition(trainers=40, goal=1, concurrency=40, delays=delays, task="toy", payload={"down": down, "up": "seeds"})
    stage = Stage(of, init=np.linspace(-1, 1, 2000).tolist())
    dispatches = Dispatches(SECOND, stage.machine.shelf.weights)
    for node in of.nodes:
        dispatches.present(node, "a", 0)
    for node, assign in stage.start().assigns.items():
        assert dispatches.send(node, assign, 0) == [assign]
    for number in [*range(2, 41), 1]:
        node, assign = stage.sent[number]
        scalars = Payload("seeds", {"scalars": numbers(1e-6)})
        heard = stage.step(Received(node, Update(number, assign.version, 0, 0, assign.due, scalars, 8, 1.0, 2.0, 0.5)), at=3)
        assert dispatches.answered(node, number)
    assert len({assign.version for assign in heard.assigns.values()}) == 40 > KEPT
    for node, assign in heard.assigns.items():
        assert dispatches.send(node, assign, 3) == [assign]
    kinds = {assign.payload.kind for assign in heard.assigns.values()}
    assert kinds == ({"full", down} if down in ("delta", "replay") else {"full"})


def test_u_goes_with_weights_for_odd_bins_from_version_1_on() -> None:
    """Bins 0 0 1 1 0 0: u is the unweighted sum of the last committed bin's uploads."""
    heard = rounds(one_trainer(perturb="guided"), 6)
    assert [sorted(step.assigns["t0"].payload.tensors) for step in heard] == [
        ["theta"], ["theta"], ["theta", "u"], ["theta", "u"], ["theta"], ["theta"],
    ]  # fmt: skip
    assert vector(heard[2].assigns["t0"].payload.tensors["u"]).tolist() == [3.0, 0.0]


def test_u_of_a_later_bin_is_the_one_before_it() -> None:
    heard = rounds(one_trainer(perturb="guided"), 8)
    assert vector(heard[6].assigns["t0"].payload.tensors["u"]).tolist() == [11.0, 0.0]


def test_single_never_gets_u() -> None:
    assert all(list(step.assigns["t0"].payload.tensors) == ["theta"] for step in rounds(one_trainer(), 4))


def test_u_waits_for_a_payload_of_weights() -> None:
    heard = rounds(one_trainer(perturb="guided", payload={"down": "once_per_version"}), 4)
    assert [sorted(step.assigns["t0"].payload.tensors) for step in heard] == [["theta"], [], ["theta", "u"], []]


def test_draws_count_the_assigns_of_one_version_and_bin() -> None:
    heard = rounds(one_trainer(commit=[{"type": "cap", "max": 3}]), 7)
    assert [step.assigns["t0"].draw for step in heard] == [0, 1, 2, 0, 1, 2, 0]


def test_an_assign_carries_its_place_and_the_senders_now() -> None:
    stage = one_trainer()
    stage.start()
    assign = stage.answer(1, at=1.75).assigns["t0"]  # late by the wall
    assert (assign.id, assign.version, assign.data_id, assign.iteration) == (2, 0, 0, 1)
    assert (assign.stamp, assign.due, assign.sent_now) == (1_000_000_000, 2_000_000_000, 1_750_000_000)


def test_the_model_moves_by_the_mean_of_the_bins_uploads() -> None:
    stage = one_trainer(server_opt={"type": "sgd", "lr": 0.5})
    rounds(stage, 3)
    assert stage.theta == (-0.5 * (1 + 2) / 2, 0.0)


def test_what_was_sent_is_not_changed_by_the_commit() -> None:
    stage = one_trainer()
    first = stage.start().assigns["t0"].payload.tensors["theta"]
    stage.answer(1, 5.0, 5.0)
    stage.answer(2, 5.0, 5.0)
    assert vector(first).tolist() == [0.0, 0.0]
    assert stage.theta == (-5.0, -5.0)


class TestLegs:
    """The due holds both legs, by the bytes of what goes down and of what will come up."""

    WAN = {"seconds": 0.1, "down_mbit": 0.000128, "up_mbit": 0.000256}
    """A vector of two float64 takes 1 s down and 0.5 s up."""

    @pytest.mark.parametrize(("down", "legs"), [("always_full", [1.7, 1.7]), ("once_per_version", [1.7, 0.7])])
    def test_by_hand(self, down: str, legs: list[float]) -> None:
        heard = rounds(one_trainer(wan=self.WAN, payload={"down": down}, commit=[{"type": "cap", "max": 5}]), 2)
        assigns = [step.assigns["t0"] for step in heard]
        assert [assign.due - assign.stamp for assign in assigns] == [round((1 + leg) * SECOND) for leg in legs]
        delays = [record.delay_ns for step in heard for record in step.records(Dispatch)]
        assert delays == [assign.due - assign.stamp for assign in assigns]

    def test_u_is_sent_too(self) -> None:
        """32 bytes where guided perturbations get their direction: version 1 of an odd bin."""
        heard = rounds(one_trainer(wan=self.WAN, perturb="guided"), 3)
        assigns = [step.assigns["t0"] for step in heard]
        assert [assign.due - assign.stamp for assign in assigns] == [round(legs * SECOND) for legs in (2.7, 2.7, 3.7)]

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"payload": {"wire_dtype": "bf16"}},
            *(
                {"payload": {"up": "seeds"}, "perturb": perturb}
                for perturb in (
                    "single",
                    "guided",
                    {"type": "mean_of", "probes": 3},
                    {"type": "best_of", "probes": 3},
                    {"type": "split", "shares": 2, "of": {"type": "mean_of", "probes": 3}},
                )
            ),
        ],
        ids=str,
    )
    def test_the_leg_weighs_what_the_upload_weighs(self, changes: dict[str, Any]) -> None:
        """The bytes that the due was made with are those of the update that the trainer then sends."""
        condition = Condition.model_validate(PLAIN | {"task": "toy", "surrogate": {}, "wan": self.WAN} | changes)
        learner = build(condition)
        theta, layout = learner.facts.init, learner.facts.layout
        trainer = Trainer(condition, Profile("t0", SECOND), layout=layout)
        trainer.step(0, Received("aggregator", Assign(1, 0, 0, 0, 0, 0, 2 * SECOND, 0, Payload("full", {"theta": theta}))))
        result = learner.run(Gradient("t0", 0, 0, 7, theta))
        (sent,) = [effect.msg for effect in trainer.step(2 * SECOND, ComputeDone(1, result)) if isinstance(effect, Send)]
        assert isinstance(sent, Update)
        terms = Terms(condition.perturb, layout, condition.payload.wire_dtype)
        assert sent.payload.nbytes == UP[condition.payload.up].most(terms) > 0

    def test_off_moves_no_due(self) -> None:
        plain, off = (rounds(one_trainer(**changes), 6) for changes in ({}, {"wan": {"seconds": 0.0}}))
        assert [step.effects for step in plain] == [step.effects for step in off]
