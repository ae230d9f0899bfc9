"""What nobody hears is refused where somebody wrote it, and goes where it came from below its switch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from flame.config import Condition, World
from flame.config.availability import traces
from flame.config.errors import ConfigError
from flame.config.experiments import Experiments
from flame.config.fingerprint import run_fp
from flame.config.layers import Patch, without
from flame.policies.heard import Heard, Hearing, inner, is_set

BARE: dict[str, Any] = {"trainers": 4, "goal": 2, "concurrency": 3, "stop": {"cycles": 5}}


def resolved(defaults: dict[str, Any], shared: dict[str, Any], *sets: str, **baseline: Any) -> Condition:
    """The condition of three layers and what was typed."""
    sections = {
        "defaults": defaults,
        "baselines": {"one": baseline},
        "run_sets": {"small": {**BARE, **shared, "baselines": ["one"], "seeds": [1]}},
    }
    registry = Experiments(Path("experiments.yaml"), sections)
    return registry.resolve("small", patches=[Patch.parse(text) for text in sets])[0].condition


def refusal(*arguments: Any, **baseline: Any) -> str:
    """Why it isn't one."""
    with pytest.raises(ConfigError) as caught:
        resolved(*arguments, **baseline)
    return str(caught.value)


# ---- each rule


def rules(kind: type[BaseModel] = Hearing) -> Iterator[tuple[type[Hearing], Heard]]:
    """All that are written down."""
    for model in kind.__subclasses__():
        if issubclass(model, Hearing) and model.__module__.startswith("flame."):
            yield from ((model, rule) for rule in vars(model).get("HEARD", ()))
        yield from rules(model)


RULES = list(rules())


def test_every_rule_is_about_fields_of_its_model_and_values_that_they_have() -> None:
    assert {model.__name__ for model, _ in RULES} >= {"Condition", "Partition", "Estimator", "Sgd", "TrustRatio", "Scored", "World"}
    for model, rule in RULES:
        *outer, last = rule.by.split(".")
        kind: Any = model
        for name in outer:
            kind = type(kind.model_fields[name].default)
        assert rule.key in model.model_fields, (model, rule)
        allowed = getattr(kind.model_fields[last].annotation, "__args__", None)
        assert last == "type" or not rule.under or set(rule.under) < set(allowed or ()), (model, rule)


def test_no_default_is_unheard_so_that_a_stored_condition_can_be_read() -> None:
    for task in ("toy", "text", "surrogate"):
        made = Condition.model_validate({"task": task, "data": "r8" if task == "text" else None, "stop": {"cycles": 1}})
        assert Condition.model_validate_json(made.model_dump_json()) == made


SILENT: list[dict[str, Any]] = [
    {"data": "r8"}, {"model": "gpt5"}, {"tokens": 5}, {"trainable": {"part": "lora"}}, {"surrogate": {"bins": 5}},
    {"task": "surrogate", "toy": {"samples": 3}}, {"task": "surrogate", "partition": {"type": "niid_label"}},
    {"task": "text", "data": "r8", "trainable": {"last_layers": 2}},
    {"partition": {"alpha": 0.1}}, {"estimator": {"h": 0.5}}, {"estimator": {"type": "central_difference", "chunk": 2}},
    {"estimator": {"checkpointed": True}}, {"estimator": {"type": "backprop"}, "perturb": "guided"},
    {"perturb": {"type": "best_of", "probes": 1, "coin": True}},
    {"perturb": {"type": "split", "shares": 2, "of": {"type": "best_of", "probes": 1, "coin": True}}},
    {"server_opt": {"type": "sgd", "lr": 1, "rounds": 7}}, {"server_opt": {"type": "trust_ratio", "over": 7}},
    {"server_opt": {"type": "clip", "norm": 1, "before": {"type": "sgd", "lr": 1, "rounds": 7}}},
    {"select": {"type": "oort", "blacklist_share": 0.1}}, {"select": {"type": "async_oort", "penalty": 0, "percentile": 50}},
    {"availability": {"time_scale": 2}}, {"availability": {"trace": "syn_10", "skip_s": 3}},
    {"eval": {"every": 0, "rows": 3}}, {"eval": {"blocks": True}},
    {"stop": {"cycles": 1, "stall": {"on": "acc", "loss_min_rel_delta": 0.1}}},
    {"stop": {"cycles": 1, "stall": {"on": "loss", "min_delta": 0.1}}},
]  # fmt: skip


@pytest.mark.parametrize("fields", SILENT, ids=str)
def test_a_condition_made_in_python_refuses_what_nobody_hears(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="says nothing to"):
        Condition.model_validate({"stop": {"cycles": 1}} | fields)


def test_a_slot_is_given_up_after_a_while_whether_somebody_is_away_or_only_slow() -> None:
    given = Condition.model_validate({"stop": {"cycles": 1}, "availability": {"abandon_s": 90, "time_scale": 2}})
    assert given.availability.abandon_ns == 45 * 10**9


def test_draws_without_a_law_are_refused() -> None:
    with pytest.raises(ValueError, match="`draw` says nothing to `latency: null`"):
        World(draw=2)
    assert World(latency="law.json", draw=2).draw == 2


def test_the_value_of_a_field_and_whether_it_is_the_default() -> None:
    made = Condition.model_validate({"stop": {"cycles": 1}, "partition": {"type": "niid_label"}})
    assert inner(made, "partition.type") == "niid_label"
    assert (is_set(made, "partition"), is_set(made.partition, "alpha")) == (True, False)


# ---- layers


def test_a_shared_default_that_a_task_does_not_hear_goes() -> None:
    with_it = resolved({"tokens": 128, "trainable": {"part": "lora", "r": 4}, "eval": {"rows": 64}}, {"task": "toy"})
    assert (with_it.tokens, with_it.trainable.part, with_it.eval.rows) == (64, "head", 64)
    assert run_fp(with_it) == run_fp(resolved({"eval": {"rows": 64}}, {}))
    assert resolved({"tokens": 128}, {"task": "text", "data": "r8"}).tokens == 128


def test_what_an_upper_layer_switches_off_goes_with_it() -> None:
    assert resolved({}, {"eval": {"rows": 64}}, "eval.every=0").eval.rows is None
    assert resolved({}, {"partition": {"type": "niid_label", "alpha": 0.1}}, "partition.type=uniform").partition.alpha == 1
    assert resolved({}, {"estimator": {"type": "backprop"}}, perturb={"type": "mean_of"}).perturb.type == "single"
    assert resolved({}, {"availability": {"trace": "syn_10", "time_scale": 9}}, "availability.trace=syn_0").availability.time_scale == 1


def test_beside_its_switch_or_above_it_is_refused_by_who_wrote_it() -> None:
    said = "`eval.rows` says nothing to `every: 0`"
    assert f"{said} in run_sets.small" in refusal({}, {"eval": {"rows": 64, "every": 0}})
    assert f"{said} in `--set eval.rows=3`" in refusal({}, {"eval": {"every": 0}}, "eval.rows=3")
    assert f"{said} in `--set eval.rows=3`" in refusal({}, {}, "eval.rows=3", "eval.every=0")
    assert "`estimator.h` says nothing to `type: forward_ad` in run_sets.small" in refusal({}, {"estimator": {"h": 0.5}})
    assert "`tokens` says nothing to `task: toy` in run_sets.small" in refusal({"task": "toy"}, {"tokens": 128})
    both = {"estimator": {"type": "backprop"}, "perturb": "guided"}
    assert "`perturb` says nothing to `estimator.type: backprop` in baselines.one" in refusal({}, {}, **both)


SPELLINGS = ("estimator=backprop", "estimator.type=backprop", "estimator={type: backprop}")


def test_a_switch_is_a_switch_in_all_three_spellings() -> None:
    gated = {"estimator": "central_difference", "perturb": {"type": "guided"}}
    made = [resolved({}, {}, spelling, **gated) for spelling in SPELLINGS]
    assert {run_fp(each) for each in made} == {run_fp(resolved({}, {}, estimator="backprop"))}


def test_a_switch_of_a_sweep_is_one_too() -> None:
    sections = {
        "baselines": {"one": {"perturb": {"type": "guided"}}},
        "run_sets": {"small": BARE | {"baselines": ["one"], "seeds": [1]}},
        "sweeps": {"estimators": {"run_set": "small", "grid": {"estimator": ["forward_ad", "backprop"]}}},
    }
    made = [each.condition for _, each in Experiments(Path("experiments.yaml"), sections).swept("estimators")]
    assert [(each.estimator.type, each.perturb.type) for each in made] == [("forward_ad", "guided"), ("backprop", "single")]


def test_what_goes_goes_alone_from_an_entry_of_a_list_too() -> None:
    values = {"loop": "sync", "commit": [{"type": "cap", "max": 3}, "agg_goal"], "stop": {"cycles": 3, "wall_s": 9}}
    assert without(values, ("commit", "0", "max")) == values | {"commit": [{"type": "cap"}, "agg_goal"]}
    assert without(values, ("commit", "0")) == values | {"commit": ["agg_goal"]}
    assert without(values, ("stop", "wall_s")) == values | {"stop": {"cycles": 3}}
    for nowhere in (("commit", "2", "max"), ("commit", "1", "max"), ("stop", "target", "accuracy")):
        assert without(values, nowhere) == values


def test_a_wrong_value_of_a_shared_default_is_wrong_for_every_task() -> None:
    assert '`tokens` is `"16"` in defaults' in refusal({"tokens": "16"}, {"task": "toy"})


def test_numbers_alone_are_of_the_policy_below_also_where_that_is_a_bare_name() -> None:
    assert resolved({}, {"estimator": {"h": 0.5}}, estimator="central_difference").estimator.h == 0.5


def test_a_state_of_phones_says_nothing_to_intervals(tmp_path: Path) -> None:
    file = tmp_path / "intervals.json"
    file.write_text('{"1": {"active": [0], "inactive": [5], "finish_time": 9}}')
    shared = {"availability": {"trace": "file", "path": str(file), "key": "2st", "reuse": True}}
    with pytest.raises(ConfigError, match=r"`availability.key` says nothing to the intervals of .*\nhint: drop it"):
        traces(resolved({}, shared))
