"""Every fault that pydantic can find in what people write is told in plain words."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from flame.analysis.variance import parse
from flame.config import Condition, World
from flame.config.errors import ConfigError, explain
from flame.config.experiments import condition_of
from flame.config.latency import Law
from flame.figures.spec import FAMILIES, Appearance, Arm, Head

BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")
FAULTS_OF: dict[str, tuple[str, ...]] = {
    "int": ("int_type", "int_parsing", "int_parsing_size", "int_from_float", *BOUNDS),
    "float": ("float_type", "float_parsing", "finite_number", *BOUNDS),
    "bool": ("bool_type", "bool_parsing"),
    "str": ("string_type", "string_unicode", "string_pattern_mismatch", "string_too_short", "string_too_long"),
    "none": ("none_required",),
    "literal": ("literal_error",),
    "list": ("list_type", "too_short", "too_long"),
    "tuple": ("tuple_type", "too_short", "too_long"),
    "dict": ("dict_type",),
    "model": ("model_type", "extra_forbidden", "missing"),
    "tagged-union": ("union_tag_invalid", "union_tag_not_found"),
}
"""The faults that a node of a schema can find."""
SILENT_NODES = {
    "any", "default", "definition-ref", "definitions", "function-after", "function-before", "function-wrap", "json-or-python",
    "model-field", "model-fields", "no-info", "nullable", "union", "with-info",
}  # fmt: skip
"""Nodes that find none, or whose functions word their own."""
CONTEXT: dict[str, dict[str, Any]] = {
    "greater_than": {"gt": 0}, "greater_than_equal": {"ge": 0}, "less_than": {"lt": 1}, "less_than_equal": {"le": 1},
    "string_pattern_mismatch": {"pattern": "^#$"}, "string_too_short": {"min_length": 1}, "string_too_long": {"max_length": 1},
    "too_short": {"field_type": "Tuple", "min_length": 2, "actual_length": 1},
    "too_long": {"field_type": "Tuple", "max_length": 2, "actual_length": 3},
    "literal_error": {"expected": "'a' or 'b'"},
    "union_tag_invalid": {"tag": "x", "discriminator": "type", "expected_tags": "'a', 'b'"},
    "union_tag_not_found": {"discriminator": "type"}, "model_type": {"class_name": "Delays"},
}  # fmt: skip
WRITTEN: list[type[BaseModel]] = [Condition, World, Law, Head, Arm, Appearance, *FAMILIES.values()]
"""What people write: conditions, flags, laws, figures."""


def nodes(schema: Any) -> Iterator[str]:
    """The kinds of a schema's nodes."""
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), str):
            yield schema["type"]
        for key, value in schema.items():
            if key not in ("metadata", "serialization", "expected", "default", "config"):
                yield from nodes(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("model", WRITTEN, ids=lambda model: model.__name__)
def test_the_list_of_faults_is_whole(model: type[BaseModel]) -> None:
    assert set(nodes(model.__pydantic_core_schema__)) <= FAULTS_OF.keys() | SILENT_NODES


@pytest.mark.parametrize("kind", sorted({kind for kinds in FAULTS_OF.values() for kind in kinds}))
def test_no_word_of_pydantic_is_left(kind: str) -> None:
    fault = {"type": kind, "loc": ("delays", "factor"), "input": "x", "ctx": CONTEXT.get(kind, {})}
    error = ValidationError.from_exception_data("Condition", [fault])  # type: ignore[list-item]
    told = explain(error, Condition, {"delays": {"factor": "x"}})
    raw = str(error.errors()[0]["msg"])
    assert "delays" in told.what
    assert raw.removeprefix("Input ") not in f"{told.what} {told.hint}"
    assert told.hint != "give a value of another kind", "words of its own"


def test_a_rule_of_a_number_that_is_none() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("cap,max=x")
    assert str(caught.value) == 'config error: `commit.0.max` is `"x"` in `cap,max=x`\nhint: give a whole number'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_no_number(value: float) -> None:
    for plain in ({"stop": {"runtime_s": value}}, {"stop": {"cycles": 1}, "delays": {"values": [value]}}):
        with pytest.raises(ConfigError, match=r"is `-?(NaN|Infinity)`\nhint: give a finite number"):
            condition_of(plain)
        with pytest.raises(ValidationError, match="finite"):
            Condition.model_validate(plain)
    with pytest.raises(ValidationError, match="finite"):
        Condition.model_validate({"stop": {"cycles": 1}, "server_opt": {"type": "sgd", "lr": abs(value)}})


def test_a_change_is_typed_as_strictly_as_a_condition() -> None:
    changed = {"stop": {"cycles": 9}, "changes": [{"cycle": 3, "set": {"server_opt.lr": "0.1"}}]}
    with pytest.raises(ConfigError) as caught:
        condition_of(changed)
    assert 'what changes at cycle 3 can\'t be: `server_opt.lr` is `"0.1"`' in caught.value.what
    assert caught.value.hint == "give a number, without quotes: `lr: 0.1`"


def test_a_change_may_switch_off_what_another_number_was_for() -> None:
    decaying = {"type": "sgd", "lr": 1, "decay": "round", "rounds": 7}
    both = [{"cycle": 3, "set": {"server_opt.decay": "none"}}, {"cycle": 5, "set": {"server_opt.lr": 2}}]
    made = condition_of({"stop": {"cycles": 9}, "server_opt": decaying, "changes": both})
    assert [phase.server_opt.model_dump()["rounds"] for phase in made.phases.values()] == [7, 3000, 3000]
