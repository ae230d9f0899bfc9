"""Policies from outside the tree: loaded where the condition is made, refused in words, told apart by their source."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from flame.config import Condition, ConfigError
from flame.config.experiments import condition_of
from flame.config.fingerprint import run_fp
from flame.config.outside import changed, digest, policies
from flame.launch.preflight import gate
from flame.policies.policy import Outside

GOOD = """
from pydantic import model_validator
from flame.policies.heard import heard
from flame.policies.policy import Outside
from flame.policies.rate import Weight

class Third(Outside):
    share: float = 0.25
    wants_running: bool = False

    def weigh(self, view):
        return Weight(self.share)

class NoWeigh(Outside):
    wants_running: bool = False

class Narrow(Outside):
    wants_running: bool = False

    def weigh(self):
        return Weight(1.0)

class Choosy(Third):
    HEARD = heard("mode", ["soft"], "edge")
    mode: str = "hard"
    edge: float = 1.0

    @model_validator(mode="after")
    def _even(self):
        if self.share > 1:
            raise ValueError("more than all of it; give at most 1")
        return self

class Stranger:
    pass
"""
Write = Callable[..., None]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes `mine.py` into the current folder, anew each time; it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str = GOOD) -> None:
        sys.modules.pop("mine", None)
        (tmp_path / "mine.py").write_text(text)

    yield write
    sys.modules.pop("mine", None)


def made(**fields: Any) -> Condition:
    """A condition with these."""
    return condition_of({"stop": {"cycles": 1}, **fields})


def test_it_stands_where_a_policy_of_the_tree_would(module: Write) -> None:
    module()
    condition = made(rate={"type": "mine:Third", "share": 0.5})
    rate: Any = condition.rate
    assert isinstance(rate, Outside)
    assert rate.weigh(None).value == 0.5
    assert rate.source == digest(type(rate))
    assert policies(condition) == [rate]
    stored = Condition.model_validate_json(condition.model_dump_json())
    assert stored == condition
    assert stored.model_dump(mode="json")["rate"] == {"type": "mine:Third", "source": rate.source, "share": 0.5, "wants_running": False}


def test_a_bare_name_a_mapping_and_an_object_say_the_same(module: Write) -> None:
    module()
    condition = made(rate="mine:Third")
    assert Condition.model_validate({"stop": {"cycles": 1}, "rate": import_module("mine").Third()}) == condition
    assert run_fp(made(rate={"type": "mine:Third", "share": 0.25})) == run_fp(condition)
    assert run_fp(made(rate={"type": "mine:Third", "share": 0.5})) != run_fp(condition)


def test_another_source_is_another_condition(module: Write) -> None:
    module()
    before = made(rate="mine:Third")
    module(GOOD + "\n# another\n")
    after = made(rate="mine:Third")
    assert run_fp(before) != run_fp(after)
    stored = Condition.model_validate_json(before.model_dump_json())
    assert run_fp(stored) == run_fp(before), "as it was stored"
    ((policy, now),) = changed(stored)
    assert (policy.type, now) == ("mine:Third", policies(after)[0].source)
    (issue,) = gate._outside(stored)
    assert issue.blocking
    assert f"the source of `mine:Third` is {now}, and the condition wants {policy.source}" in issue.what
    assert [*changed(after)] == []


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"rate": "yours:Third"}, "`rate`: `yours:Third`: there is no module `yours`", "install it, or run where it is"),
    ({"rate": "mine:Thrid"}, "`mine` has no `Thrid`", "did you mean `Third`?"),
    ({"rate": "mine:Stranger"}, "`mine:Stranger` is no rate", "derive the class from `flame.policies.policy.Outside`"),
    ({"rate": "mine:NoWeigh"}, "`mine:NoWeigh` has no `weigh(view)`, which every rate has", "add it: The weight of the update"),
    ({"rate": "mine:Narrow"}, "`mine:Narrow.weigh` can't be called as `weigh(view)`", "give it these arguments"),
    ({"select": "mine:Third"}, "`mine:Third` has no `choose(view, want, state)`, which every selector has", "add it: At most"),
    ({"commit": ["mine:Third"]}, "`commit.0`: `mine:Third` has no `reason(view, state)`", "add it"),
    ({"perturb": "mine:Third"}, "`mine:Third` has no `probes`, which every perturbation has", "add it: P: how many directions"),
    ({"server_opt": "mine:Third"}, "`mine:Third` has no `gain`, which every server step has", "add it"),
    ({"sizes": "mine:Third"}, "`mine:Third` has no `sample(view, state)`, which every rule for sizes has", "add it"),
    ({"rate": {"type": "mine:Third", "shrae": 1.0}}, "`mine:Third` knows no `shrae`", "did you mean `share`? Known keys: share"),
    (
        {"rate": {"type": "mine:Choosy", "edge": 2.0}},
        "`rate`: `mine:Choosy`: `edge` says nothing to `mode: hard`",
        "drop it, or use `mode: soft`",
    ),
    ({"rate": {"type": "mine:Choosy", "share": 2.0}}, "`rate`: `mine:Choosy`: more than all of it", "give at most 1"),
    ({"rate": {"type": "mine:Third", "share": "1"}}, "`mine:Third`: `share`: Input should be a valid number", "correct the value"),
]


@pytest.mark.parametrize(("fields", "what", "hint"), WRONG, ids=[what for _, what, _ in WRONG])
def test_what_is_no_policy_is_refused_in_words(module: Write, fields: dict[str, Any], what: str, hint: str) -> None:
    module()
    with pytest.raises(ConfigError) as error:
        made(**fields)
    assert what in error.value.what
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("text", "said"), [("1 +", "SyntaxError"), ("1 / 0", "ZeroDivisionError"), ("import nothing_so_named", "nothing_so")]
)
def test_a_module_that_can_not_be_imported_is_said(module: Write, text: str, said: str) -> None:
    module(text)
    with pytest.raises(ConfigError, match=said):
        made(rate="mine:Third")
