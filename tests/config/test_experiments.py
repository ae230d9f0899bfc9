"""experiments.yaml: layers in one order, and every fault named with what to type instead."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from flame.config.errors import ConfigError
from flame.config.experiments import BASELINE, OTHER_TOKEN, RUN_SET, Experiments, load, parse_seeds
from flame.config.fingerprint import condition_fp
from flame.config.layers import Patch, read_yaml

SHARED: dict[str, Any] = {"task": "surrogate", "trainers": 4, "goal": 2, "concurrency": 3, "stop": {"cycles": 5}}

GATE = [{"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 9}]


def registry(**sections: Any) -> Experiments:
    """A small registry; sections replace its own."""
    plain: dict[str, Any] = {
        "defaults": {"batch_size": 4, "tokens": 16},
        "baselines": {
            "gated": {"select": {"type": "random", "every": "round"}, "commit": GATE},
            "plain": {"select": "all", "commit": ["agg_goal"], "loop": "async"},
        },
        "run_sets": {"small": {**SHARED, "baselines": ["gated", "plain"], "seeds": [1, 2]}},
    }  # fmt: skip
    return Experiments(Path("experiments.yaml"), plain | sections)


def with_set(**fields: Any) -> Experiments:
    """The registry whose run-set `small` has these fields too."""
    return registry(run_sets={"small": {**SHARED, "baselines": ["gated", "plain"], "seeds": [1, 2], **fields}})


def refusal(make: Any) -> str:
    """The whole message of the ConfigError that `make` raises."""
    with pytest.raises(ConfigError) as caught:
        make()
    return str(caught.value)


# ---- the words of YAML


def test_on_and_off_are_words_and_only_true_and_false_are_not() -> None:
    said = read_yaml("{on: acc, a: [off, yes, No, y], b: [true, False, TRUE]}", "it")
    assert said == {"on": "acc", "a": ["off", "yes", "No", "y"], "b": [True, False, True]}


def test_a_stall_guard_looks_at_what_its_file_says(tmp_path: Path) -> None:
    file = tmp_path / "experiments.yaml"
    block = "{task: toy, stop: {cycles: 5, stall: {on: acc}}, baselines: [one], seeds: [1]}"
    file.write_text(f"baselines: {{one: {{loop: sync}}}}\nrun_sets: {{small: {block}}}\n")
    stall = load(file).resolve("small")[0].condition.stop.stall
    assert stall is not None
    assert stall.on == "acc"


@pytest.mark.parametrize(("key", "written"), [("true", "true"), ("3", "3"), ("null", "null"), ("2026-01-01", "2026-01-01")])
def test_a_key_that_is_no_name_is_to_be_written_in_quotes(key: str, written: str) -> None:
    assert refusal(lambda: read_yaml(f"{{{key}: 1}}", "it")).endswith(f'hint: write it in quotes if it is meant: "{written}"')


# ---- resolution


def test_a_run_set_is_its_baselines_times_its_seeds() -> None:
    resolved = registry().resolve("small")
    assert [(each.condition.baseline, each.condition.seed) for each in resolved] == [("gated", 1), ("gated", 2), ("plain", 1), ("plain", 2)]
    assert {condition_fp(each.condition) for each in resolved} == {condition_fp(resolved[0].condition)}


def test_only_and_seeds_narrow_it_in_the_order_of_the_run_set() -> None:
    resolved = registry().resolve("small", only=["plain", "gated"], seeds=[7])
    assert [(each.condition.baseline, each.condition.seed) for each in resolved] == [("gated", 7), ("plain", 7)]


def test_each_layer_overrides_the_one_below() -> None:
    def tokens(**at: Any) -> int:
        return with_set(**at).resolve("small", only=["plain"])[0].condition.batch_size

    assert tokens() == 4
    assert tokens(batch_size=5) == 5
    assert tokens(batch_size=5, override={"plain": {"batch_size": 6}}) == 6
    top = with_set(batch_size=5, override={"plain": {"batch_size": 6}})
    assert top.resolve("small", patches=[Patch.parse("batch_size=7")])[0].condition.batch_size == 7
    assert top.resolve("small", only=["gated"])[0].condition.batch_size == 5


def test_a_run_set_overrides_a_baseline() -> None:
    resolved = with_set(loop="sync").resolve("small", only=["plain"])
    assert resolved[0].condition.loop == "sync"


def test_mappings_merge_and_another_type_replaces() -> None:
    kept = with_set(override={"gated": {"select": {"every": "cycle"}}}).resolve("small")[0].condition
    assert kept.select.model_dump() == {"type": "random", "every": "cycle"}
    replaced = with_set(override={"gated": {"select": "all"}}).resolve("small")[0].condition
    assert replaced.select.model_dump() == {"type": "all"}


def test_the_upper_source_of_delays_stands() -> None:
    listed = registry(defaults={"delays": {"values": [1, 2], "factor": 2}})
    found = listed.resolve("small", patches=[Patch.parse("delays.lognormal.mean=2")])[0].condition.delays
    assert (found.values, found.lognormal and found.lognormal.mean, found.factor) == (None, 2.0, 2.0)


def test_a_list_is_entered_by_index_or_by_type() -> None:
    for key in ("commit.0.threshold", "commit.variance.threshold"):
        rules = registry().resolve("small", only=["gated"], patches=[Patch.parse(f"{key}=1e-3")])[0].condition.commit
        assert [rule.model_dump() for rule in rules] == [{"type": "variance", "threshold": 0.001}, {"type": "cap", "max": 9}]


def test_the_last_patch_wins_and_a_type_drops_what_was_its_predecessors() -> None:
    patches = [Patch.parse("select.every=cycle"), Patch.parse("select.type=all"), Patch.parse("goal=1"), Patch.parse("goal=3")]
    condition = registry().resolve("small", only=["gated"], patches=patches)[0].condition
    assert (condition.select.type, condition.goal) == ("all", 3)


def test_numbers_alone_are_of_the_policy_that_a_field_has_where_nobody_sets_it() -> None:
    def one(patches: list[Patch], **fields: Any) -> Any:
        return with_set(**fields).resolve("small", only=["plain"], patches=patches)[0].condition

    assert one([Patch.parse("server_opt.lr=0.3")]).server_opt.model_dump()["lr"] == 0.3
    assert one([], server_opt={"lr": 0.3}).server_opt.model_dump()["type"] == "sgd"
    assert one([Patch.parse("delays.factor=2")]).delays.model_dump(exclude_defaults=True) == {"values": (1.0,), "factor": 2.0}


STEP: dict[str, Any] = {"type": "sgd", "lr": 0.3}
LACKING = [
    (
        {"server_opt": {"type": "sgd"}}, "",
        "`server_opt.lr` is missing in run_sets.small\nhint: write `{type: sgd, lr: ...}`",
    ),
    (
        {"server_opt": STEP, "override": {"plain": {"server_opt": "adam"}}}, "",
        "`server_opt.lr` is missing in run_sets.small.override.plain\nhint: write `{type: adam, lr: ...}`",
    ),
    (
        {"override": {"plain": {"server_opt": STEP}}}, "server_opt.type=adam",
        "`server_opt.lr` is missing in `--set server_opt.type=adam`\n"
        "hint: give `--set 'server_opt={type: adam, lr: ...}'`, or give `--set server_opt.lr=...` behind it",
    ),
    (
        {}, "commit=[variance]",
        "`commit.0.threshold` is missing in `--set commit=[variance]`\n"
        "hint: write `{type: variance, threshold: ...}`, or give `--set commit.0.threshold=...` behind it",
    ),
    (
        {"commit": ["agg_goal", "n_eff"]}, "",
        "`commit.1.n` is missing in run_sets.small\nhint: write `{type: n_eff, n: ...}`",
    ),
    (
        {"stop": {"cycles": 5, "target": {"window": 2}}}, "",
        "`stop.target.accuracy` is missing in run_sets.small\nhint: add `accuracy: ...`",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "typed", "said"), LACKING, ids=[said.partition(" is")[0] for _, _, said in LACKING])
def test_what_is_missing_is_told_of_whoever_chose_the_type_that_wants_it(fields: dict[str, Any], typed: str, said: str) -> None:
    patches = [Patch.parse(typed)] if typed else []
    assert refusal(lambda: with_set(**fields).resolve("small", only=["plain"], patches=patches)) == f"config error: {said}"


@pytest.mark.parametrize("typed", ["server_opt={type: adam, lr: 0.1}", "server_opt.type=adam server_opt.lr=0.1"])
def test_either_remedy_for_a_number_that_went_with_its_type_helps(typed: str) -> None:
    patches = [Patch.parse(text) for text in ([typed] if "{" in typed else typed.split())]
    step = with_set(server_opt=STEP).resolve("small", only=["plain"], patches=patches)[0].condition.server_opt
    assert (step.type, step.model_dump()["lr"]) == ("adam", 0.1)


def test_what_an_override_or_a_flag_changed_is_known() -> None:
    resolved = with_set(override={"plain": {"concurrency": 4}}).resolve("small", patches=[Patch.parse("stop.cycles=2")])
    assert {each.condition.baseline: dict(each.changed) for each in resolved} == {
        "gated": {"stop": "--set stop.cycles=2"},
        "plain": {"concurrency": "override", "stop": "--set stop.cycles=2"},
    }


# ---- the shipped file


def test_every_shipped_run_set_resolves() -> None:
    shipped = load(Path(__file__).parents[2] / "experiments.yaml")
    assert {"quick", "learn", "toy", "smoke"} <= shipped.run_sets.keys()
    for name in shipped.run_sets:
        assert shipped.resolve(name)


def test_quick_is_what_the_demo_promises() -> None:
    condition = load(Path(__file__).parents[2] / "experiments.yaml").resolve("quick")[0].condition
    assert (condition.trainers, condition.goal, condition.concurrency, condition.stop.cycles, condition.eval.rows) == (10, 10, 10, 12, 256)
    assert condition.delays.values is not None
    assert (len(condition.delays.values), max(condition.delays.values), condition.delays.factor) == (10, 24.0, 3.0)
    assert (condition.partition.name, condition.trainable.part, condition.trainable.last_layers) == ("niid_label_alpha=1.0", "bitfit", 2)


# ---- faults

FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"run_set": {}}, ["unknown key `run_set` in experiments.yaml", "did you mean `run_sets`?"]),
    ({"defaults": {"tokenz": 3}}, ["unknown key `tokenz` in defaults", "did you mean `tokens`?"]),
    ({"defaults": {"seed": 3}}, ["unknown key `seed` in defaults"]),
    ({"defaults": 3}, ["`defaults` is `3`", "key: value"]),
    ({"baselines": {"gated": {"staleness_polcy": "exact"}, "plain": {}}}, ["`staleness_polcy` in baselines.gated", "mean `staleness`?"]),
    ({"baselines": {"gated": {"trainers": 3}, "plain": {}}}, ["unknown key `trainers` in baselines.gated"]),
    ({"baselines": {"gated": {}, "plain": {}, "Big": {}}}, ["`Big` can't be the name of a baseline", "small letters"]),
    ({"baselines": {"gated": {}, "plain": {}, "fast_n10": {}}}, ["`fast_n10` holds `n10`", "without words like `n10`"]),
    ({"baselines": {"gated": {}, "plain": {}, "a_real_b": {}}}, ["`a_real_b` holds `real`"]),
    ({"run_sets": {"a_b": {"baselines": ["plain"], "seeds": [1]}}}, ["`a_b` can't be the name of a run-set", "no underscore"]),
    ({"run_sets": {"a": {"baselines": ["plane"], "seeds": [1]}}}, ["unknown baseline `plane` in run_sets.a", "did you mean `plain`?"]),
    ({"run_sets": {"a": {"seeds": [1]}}}, ["`run_sets.a.baselines` is `null`", "[fwdllm]"]),
    ({"run_sets": {"a": {"baselines": ["plain"], "seeds": []}}}, ["`run_sets.a.seeds` is `[]`"]),
    ({"run_sets": {"a": {"baselines": ["plain"], "seeds": [1, 1]}}}, ["`run_sets.a.seeds` names `1` twice"]),
    ({"run_sets": {"a": {"baselines": ["plain"], "seeds": [1], "override": {"gated": {}}}}}, ["`gated` in run_sets.a.override"]),
    ({"run_sets": {"a": {"baselines": ["plain"], "seeds": [1], "override": {"plain": {"gaol": 1}}}}}, ["in run_sets.a.override.plain"]),
    ({"run_sets": {"a": {"baselines": ["plain"], "seeds": [1], "world": "sim"}}}, ["unknown key `world` in run_sets.a"]),
    ({"run_sets": {"a": {"baselines": ["plain"], "seeds": [1], "trainrs": 3}}}, ["`trainrs` in run_sets.a", "did you mean `trainers`?"]),
]  # fmt: skip


@pytest.mark.parametrize(("sections", "said"), FAULTS, ids=[said[0] for _, said in FAULTS])
def test_a_fault_of_the_file_names_field_place_and_remedy(sections: dict[str, Any], said: list[str]) -> None:
    message = refusal(lambda: registry(**sections))
    assert all(part in message for part in said), message


PATCHES: list[tuple[str, list[str]]] = [
    ("goal=9", ["`goal` K = 9 is over `concurrency` C = 3", "`--agg-goal 3`", "run_sets.small"]),
    ("concurrency=9", []),
    ("trainers=1", ["`goal` K = 2 is over `trainers` N = 1", "`--trainers 2`"]),
    ("trainers='4'", ['`trainers` is `"4"` in `--set', "without quotes: `trainers: 4`"]),
    ("trainers=true", ["`trainers` is `true`", "a whole number"]),
    ("trainers=2.5", ["`trainers` is `2.5`", "a whole number"]),
    ("trainers.x=1", ["`trainers` is `4`, which has no `x`", "set `trainers` itself"]),
    ("trainerz=3", ["unknown key `trainerz` in `--set trainerz=3`", "did you mean `trainers`?"]),
    ("stop.cycels=3", ["unknown key `stop.cycels`", "did you mean `cycles`?"]),
    ("stop.cycles=null", ["nothing ends the run"]),
    ("stop.runtime_s=.inf", ["holds inf", "finite"]),
    ("delays.values=[1, 0]", ["`delays.values.1` is `0`", "over 0"]),
    ("delays.values=[]", ["`values` is empty"]),
    ("delays.factor=-1", ["`delays.factor` is `-1`", "over 0"]),
    ("delays.ai_benchmark=3", ["`delays.ai_benchmark` is `3`", "{key: value}"]),
    ("delays={values: [1], reuse: true}", ["`reuse: true` is for a `registry`", "`reuse: false`"]),
    ("availability.trace=phone_2ts", ["`availability.trace` is `\"phone_2ts\"`", "did you mean `phone_2st`?", "`syn_10`", "`file`"]),
    ("availability.trace=file", ["`trace: file` needs `path`", "path: traces.json"]),
    ("availability.key=2st", ["`availability.key` says nothing to `trace: syn_0`", "use `trace: file`"]),
    ("availability.time_scale=0", ["`availability.time_scale` is `0`", "over 0"]),
    ("availability.abandn_s=90", ["unknown key `availability.abandn_s`", "did you mean `abandon_s`?"]),
    ("awareness=oracle", ["`awareness` is `\"oracle\"`", "did you mean `oracular`?"]),
    ("commit_order=arrival", ["`commit_order: arrival` doesn't go with `pacing: absolute`", "`arrival` with `relative`"]),
    ("pacing=relative", ["doesn't go with"]),
    ("select=rando", ["unknown select policy `rando`", "did you mean `random`?"]),
    ("rate=fedbuf", ["unknown rate policy `fedbuf`", "Known rate policies: constant"]),
    ("server_opt.type=adamm", ["unknown server_opt policy `adamm`"]),
    ("commit=[capp]", ["unknown commit policy `capp`", "did you mean `cap`?"]),
    ("commit=[{type: capp}]", ["unknown commit policy `capp`", "did you mean `cap`?"]),
    ("commit=[]", ["`commit` is an empty list", "commit: [agg_goal]"]),
    ("commit.plateau.eps=1", ["`commit` has no entry `plateau`", "0 (variance), 1 (cap)"]),
    ("commit.cap.max=x", ["`commit.1.max` is `\"x\"`", "whole number"]),
    ("estimator.h=big", ["`estimator.h` is `\"big\"`", "a number, or give `auto`"]),
    ("loop=snyc", ["`loop` is `\"snyc\"`", "did you mean `sync`?"]),
    ("task=text", ["`task: text` needs `data`", "`data: r8`"]),
    ("population.joins.t9=3", ["`population` names `t9`", "t0 .. t3"]),
    ("seed=3", ["`--seeds 1,2,3`"]),
    ("baseline=x", ["`--only NAME`"]),
    ("goal", ["not of the form `a.b.c=value`"]),
    ("=3", ["not of the form"]),
    ("goal=[1", ["can't be read"]),
    ("data=2020-01-01", ["read as a date", "in quotes"]),
    ("data=3", ["`data` is `3`", 'data: "3"']),
    ("stop=3", ["`stop` is `3`", "{key: value}"]),
]  # fmt: skip


@pytest.mark.parametrize(("patch", "said"), PATCHES, ids=[patch for patch, _ in PATCHES])
def test_a_wrong_patch_names_field_value_and_remedy(patch: str, said: list[str]) -> None:
    def resolve() -> None:
        registry().resolve("small", only=["gated"], patches=[Patch.parse(patch)])

    if not said:
        resolve()
        return
    message = refusal(resolve)
    assert message.startswith("config error: ")
    assert "\nhint: " in message
    assert all(part in message for part in said), message


def test_an_unknown_run_set_or_baseline_is_told_the_nearest() -> None:
    assert "did you mean `small`? Known run-sets: small" in refusal(lambda: registry().resolve("smal"))
    assert "did you mean `gated`?" in refusal(lambda: registry().resolve("small", only=["gatd"]))


def test_the_layer_that_wrote_a_wrong_value_is_named() -> None:
    wrong = {"tokens": "16"}
    assert "in defaults" in refusal(lambda: registry(defaults=wrong).resolve("small"))
    assert "in run_sets.small\n" in refusal(lambda: with_set(**wrong).resolve("small"))
    assert "in run_sets.small.override.gated" in refusal(lambda: with_set(override={"gated": wrong}).resolve("small"))
    assert "in baselines.plain" in refusal(
        lambda: registry(baselines={"gated": {}, "plain": {"loop": "ring", "select": "all"}}).resolve("small")
    )


# ---- YAML


def test_a_key_written_twice_is_refused() -> None:
    assert "`goal` is written a second time in line 2" in refusal(lambda: read_yaml("goal: 1\ngoal: 2\n", "x.yaml"))


@pytest.mark.parametrize(
    ("text", "value"), [("1e-3", 0.001), ("1E5", 1e5), ("-2e3", -2000.0), ("1.5e-3", 0.0015), ("1e", "1e"), ("e3", "e3")]
)
def test_scientific_notation_is_a_number(text: str, value: object) -> None:
    assert read_yaml(text, "x") == value


def test_a_broken_file_says_where(tmp_path: Path) -> None:
    path = tmp_path / "experiments.yaml"
    path.write_text("defaults: [1\n")
    assert "experiments.yaml can't be read" in refusal(lambda: load(path))
    path.write_text("- 1\n")
    assert "`experiments.yaml` is `[1]`" in refusal(lambda: load(path))
    assert "there is no" in refusal(lambda: load(tmp_path / "none.yaml"))


def test_the_file_of_the_current_folder_comes_before_the_source_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "toy" in load().run_sets
    (tmp_path / "experiments.yaml").write_text(yaml.safe_dump({"run_sets": {}}))
    assert load().run_sets == {}


# ---- seeds and names


def test_seeds() -> None:
    assert parse_seeds("1, 2,30") == [1, 2, 30]
    for text, said in (("1,x", "`x` is no whole number"), ("", "is no whole number"), ("1,-2", "`-2`"), ("1,1", "twice"), ("1.5", "`1.5`")):
        assert said in refusal(lambda text=text: parse_seeds(text))


def test_names_of_the_shipped_file_are_whole_tokens() -> None:
    shipped = load(Path(__file__).parents[2] / "experiments.yaml")
    assert all(RUN_SET.fullmatch(name) for name in shipped.run_sets)
    assert all(BASELINE.fullmatch(name) for name in shipped.baselines)
    assert not any(OTHER_TOKEN.fullmatch(token) for name in shipped.baselines for token in name.split("_"))


def test_smoke_is_every_baseline_and_every_run_set_resolves() -> None:
    shipped = load(Path(__file__).parents[2] / "experiments.yaml")
    assert sorted(shipped.run_sets["smoke"].baselines) == sorted(shipped.baselines)
    for name, run_set in shipped.run_sets.items():
        assert len(shipped.resolve(name)) == len(run_set.baselines) * len(run_set.seeds)


def test_smoke_keeps_as_many_slots_as_its_loops_can_use() -> None:
    shipped = load(Path(__file__).parents[2] / "experiments.yaml")
    conditions = [each.condition for each in shipped.resolve("smoke")]
    assert {(each.trainers, each.goal, each.loop, each.concurrency) for each in conditions} == {(10, 5, "sync", 5), (10, 5, "async", 10)}


def ceiling(*sets: str, **stop: Any) -> float | None:
    """The ceiling of wall time where `defaults` has an hour."""
    shared = {**SHARED, "stop": {"cycles": 5, **stop}, "baselines": ["gated"], "seeds": [1]}
    listed = registry(defaults={"stop": {"wall_s": 3600}}, run_sets={"small": shared})
    return listed.resolve("small", patches=[Patch.parse(text) for text in sets])[0].condition.stop.wall_s


def test_a_target_brings_the_long_ceiling_unless_somebody_sets_one_for_it() -> None:
    target = {"accuracy": 0.8}
    assert ceiling() == 3600
    assert ceiling(target=target) == ceiling("stop.target.accuracy=0.8") == 48 * 3600
    assert ceiling(target=target, wall_s=60) == ceiling("stop.wall_s=60", target=target) == 60
    assert ceiling(target=target, wall_s=None) is None
    assert ceiling(target=None) == 3600


def test_a_run_set_is_found_with_underscores_for_hyphens() -> None:
    shipped = load(Path(__file__).parents[2] / "experiments.yaml")
    assert [each.run_set for each in shipped.resolve("demo_all")] == ["demo-all"] * 3
