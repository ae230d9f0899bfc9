"""The shelf and what trainers hold: however far behind one is, what it is sent leads to the weights of this version."""

from typing import Any

import numpy as np
import pytest

from flame.config.condition import Condition
from flame.core.messages import Payload
from flame.core.progress import Progress
from flame.core.tensor import Tensor
from flame.learn.bfloat16 import narrowed
from flame.learn.params import Layout, tensor, total, vector, weighted_mean
from flame.policies.payload import log
from flame.policies.payload.log import DRAWN, Logged, committed, read, written
from flame.policies.payload.rules import KEPT
from flame.policies.perturb import BestOf, Guided, MeanOf, Perturb, Single, Split, rebuilt
from flame.policies.perturb.combined import seed_of
from flame.policies.server_opt import StepView
from flame.roles import shelf
from flame.roles.cycle import Upload
from flame.roles.held import Held, advanced
from flame.roles.roster import Row
from flame.roles.shelf import Shelf

LAYOUT = Layout(("a", "b", "c"), ((300,), (15,), (5,)))
"""Of two shares one has two tensors, the other one."""
INIT = tensor(np.linspace(-1, 1, LAYOUT.size).astype(np.float32))


def condition(**changes: Any) -> Condition:
    plain: dict[str, Any] = {"stop": {"cycles": 1}, "server_opt": {"type": "trust_ratio", "rho": 0.1, "schedule": "inverse"}}
    return Condition.model_validate(plain | changes)


def told(perturb: Perturb, seed: int) -> tuple[int, int]:
    """How many scalars an upload of that seed has, and numbers in its choice."""
    if not isinstance(perturb, Split):
        return perturb.told(LAYOUT)
    share = perturb.share(seed, LAYOUT)
    return perturb.of.told(Layout(LAYOUT.names[share], LAYOUT.shapes[share]))


class Server:
    """Commits two uploads at a time, and puts them on its shelf."""

    def __init__(self, **changes: Any) -> None:
        self.condition = condition(**changes)
        self.at, self.weights, self.ids = Progress(), {"theta": INIT}, 0
        self.shelf = Shelf(self.condition, self.weights, LAYOUT)
        self.holds = {0: Held.of(0, self.shelf.full())}

    def commit(self) -> None:
        of, at = self.condition, self.at
        pool = [self.upload(node) for node in ("t0", "t1")]
        deltas = [upload.delta for upload in pool]
        mean = weighted_mean(deltas, [upload.rate for upload in pool])
        theta, _ = of.server_opt.step(vector(self.weights["theta"]), mean, StepView(at, len(pool), of.perturb.worth), None)
        self.at = Progress(at.round, at.data_id + 1, 0, at.model_version + 1, at.cycle + 1)
        wanted = of.perturb.wants_direction(self.at.model_version, self.at.data_id)
        self.weights = {"theta": tensor(theta)} | ({"u": total(deltas)} if wanted else {})
        self.shelf.put(at, pool, self.weights)
        self.holds[self.shelf.version] = Held.of(self.shelf.version, self.shelf.full())

    def upload(self, node: str) -> Upload:
        """The answer to the next assign: scalars that grow, and candidate 1 for the first tensor, 2 for the next, ..."""
        at, perturb = self.at, self.condition.perturb
        self.ids += 1
        row = Row(self.ids, node, 0, 1, at.model_version, at.data_id, 0, at.cycle, 0, "full")
        seed = seed_of(perturb, (self.condition.seed, node, row.version, row.data_id, row.draw, row.id))
        count, numbers = told(perturb, seed)
        scalars = (np.arange(count) + 0.5 + at.model_version).astype(np.float32)
        choice = tuple(range(1, numbers + 1))
        sent = {"scalars": tensor(scalars)} | ({"choice": tensor(np.array(choice, np.uint8))} if choice else {})
        delta = tensor(rebuilt(perturb, seed, LAYOUT, scalars, choice))
        return Upload(row, 1, delta, 0.5 if node == "t0" else 1.0, 0, Payload("seeds", sent))

    def sent(self, held: int) -> Payload:
        return self.shelf.payload(held)

    def after(self, held: int) -> Held:
        """What a trainer that holds version `held` holds once it was sent what the rule says."""
        payload = self.sent(held)
        if payload.kind == "full":
            return Held.of(self.shelf.version, payload)
        return advanced(self.holds[held], self.shelf.version, self.at.data_id, payload, self.condition, LAYOUT)


RULES: dict[str, dict[str, Any]] = {
    "replay of shares under a cap": {
        "payload": {"down": "replay", "up": "seeds"},
        "perturb": {"type": "split", "shares": 2},
        "server_opt": {"type": "trust_ratio", "rho": 0.5, "cap": 0.1},
    },
    "replay of shares of means": {
        "payload": {"down": "replay", "up": "seeds"},
        "perturb": {"type": "split", "shares": 2, "of": {"type": "mean_of", "probes": 3}},
    },
    "replay of ragged shares": {
        "payload": {"down": "replay", "up": "seeds"},
        "perturb": {"type": "split", "shares": 2, "of": {"type": "guided", "candidates": 3}},
    },
    "delta": {"payload": {"down": "delta"}},
    "delta of halves": {"payload": {"down": "delta", "wire_dtype": "bf16"}},
    "replay": {"payload": {"down": "replay", "up": "seeds"}},
    "replay of guided": {"payload": {"down": "replay", "up": "seeds"}, "perturb": {"type": "guided", "candidates": 4}},
    "replay under decay": {"payload": {"down": "replay", "up": "seeds"}, "server_opt": {"type": "sgd", "lr": 0.1, "decay": "round"}},
}


@pytest.mark.parametrize("name", RULES)
def test_from_wherever_one_starts_one_gets_to_the_weights_of_this_version(name: str) -> None:
    server = Server(**RULES[name])
    kinds = set()
    for version in range(1, 8):
        server.commit()
        for held in range(version):
            kinds.add(server.sent(held).kind)
            assert server.after(held) == server.holds[version]
            assert server.sent(held).kind == "full" or server.sent(held).base == held
        assert server.sent(version).kind == "none"
    assert RULES[name]["payload"]["down"] in kinds


def test_weights_stand_there_as_they_travel() -> None:
    server = Server(payload={"down": "delta", "wire_dtype": "bf16"})
    assert server.shelf.full().tensors == {"theta": narrowed(INIT)}
    server.commit()
    assert server.shelf.full().tensors == {"theta": narrowed(server.weights["theta"])}


@pytest.mark.parametrize("name", ["delta", "replay"])
def test_it_reaches_back_so_far_and_no_farther(name: str) -> None:
    server = Server(**RULES[name])
    for _ in range(KEPT + 3):
        server.commit()
    reach = server.shelf.delta if name == "delta" else server.shelf.log
    oldest = server.shelf.version - KEPT + 1
    assert reach(oldest) is not None
    assert reach(oldest - 1) is None
    assert server.sent(oldest - 1).kind == "full"
    server.shelf.tidy()
    assert server.shelf.weights(oldest).kind == "full"
    with pytest.raises(KeyError):
        server.shelf.weights(oldest - 1)


def test_the_reach_is_the_same_wherever_steps_end() -> None:
    one, each = Server(**RULES["delta"]), Server(**RULES["delta"])
    for _ in range(KEPT + 3):
        one.commit()
        each.commit()
        each.shelf.tidy()
    assert [one.sent(held).kind for held in range(KEPT + 3)] == [each.sent(held).kind for held in range(KEPT + 3)]
    assert one.shelf.weights(0).kind == "full"


def test_the_log_is_sent_while_it_is_shorter() -> None:
    server = Server(**RULES["replay"])
    for _ in range(20):
        server.commit()
    kinds = [server.sent(held).kind for held in range(20)]
    first = kinds.index("replay")
    assert 0 < first < 19
    assert kinds == ["full"] * first + ["replay"] * (20 - first)


@pytest.mark.parametrize(("perturb", "each"), [({"type": "mean_of", "probes": 10}, 3200), ({"type": "best_of", "probes": 10}, 320)])
def test_the_log_is_as_long_as_what_it_takes_to_follow_it_allows(perturb: dict[str, Any], each: int, monkeypatch: Any) -> None:
    """Two uploads a commit."""
    server = Server(payload={"down": "replay", "up": "seeds"}, perturb=perturb)
    monkeypatch.setattr(shelf, "DRAWN", 5 * 2 * each)
    for _ in range(8):
        server.commit()
    assert [held for held in range(8) if server.shelf.log(held) is not None] == [3, 4, 5, 6, 7]


def test_a_worker_of_a_large_model_is_not_sent_what_it_follows_for_longer_than_its_grace() -> None:
    """At p = 450 340 ten uploads of ten probes take 45 million numbers, 1.5 s; two commits of them are too many."""
    large = Layout(("w",), ((450_340,),))
    assert 10 * MeanOf(probes=10).drawn(large) <= DRAWN < 2 * 10 * MeanOf(probes=10).drawn(large)
    assert [rule.drawn(large) for rule in (Single(), BestOf(), Guided())] == [450_340, 450_340, 4_503_400]
    assert Split(shares=2, of=MeanOf(probes=3)).drawn(LAYOUT) == 3 * 315


def test_trainers_of_one_process_share_the_steps_of_a_log(monkeypatch: Any) -> None:
    server = Server(**RULES["replay"])
    for _ in range(20):
        server.commit()
    held = 20 - sum(server.sent(held).kind == "replay" for held in range(20))
    taken: list[int] = []
    monkeypatch.setattr(log, "_TAKEN", log._Taken())
    monkeypatch.setattr(log, "rebuilt", lambda rule, seed, *rest: taken.append(seed) or rebuilt(rule, seed, *rest))
    for _ in range(5):
        server.after(held)
    assert len(taken) == 2 * (20 - held)


def test_others_than_those_two_rules_keep_this_version_only() -> None:
    server = Server()
    server.commit()
    server.shelf.tidy()
    assert server.shelf.weights(1) == server.shelf.full()
    with pytest.raises(KeyError):
        server.shelf.weights(0)


def test_other_mathematics_is_found() -> None:
    server = Server(**RULES["replay"])
    server.commit()
    payload, held = server.sent(0), Held(0, tensor(vector(INIT) + np.float32(1)), None)
    with pytest.raises(ValueError, match=r"replaying 1 commits from version 0 gave weights .* use `payload.down: once_per_version`"):
        advanced(held, 1, 1, payload, server.condition, LAYOUT)


@pytest.mark.parametrize("scalars", [(2, 2, 2), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("choices", [[()] * 3, [(3,)] * 3, [(0, 255)] * 3, [(1, 2, 3), (), (4,)]], ids=str)
def test_a_log_is_read_as_it_was_written(choices: list[tuple[int, ...]], scalars: tuple[int, ...]) -> None:
    def logged(number: int, seed: int, rate: float) -> Logged:
        return Logged(seed, rate, tensor(np.linspace(-rate, rate, scalars[number]).astype(np.float32)), choices[number])

    commits = [
        committed(Progress(1, 2, 3, 4, 5), [logged(0, 2**64 - 1, 1.0), logged(1, 0, 1 / 3)]),
        committed(Progress(1, 3, 0, 5, 6), [logged(2, 2**63, 0.1)]),
    ]
    theta = Tensor("float32", (1,), b"1234")
    assert read(written(commits, theta)) == (commits, theta.digest)
