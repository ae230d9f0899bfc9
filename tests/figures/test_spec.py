"""A figs.yaml that can't be meant is refused: one error, who, what, remedy, before anything is written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flame.analysis.swept import field
from flame.config.errors import ConfigError
from flame.config.experiments import load
from flame.figures.arms import Cast, given
from flame.figures.book import Wanted, make
from flame.figures.families.learning import Learning
from flame.figures.families.sweep import Sweep
from flame.figures.spec import Figs
from flame.launch.cli import app

ROOT = Path(__file__).parents[2]
ONE: dict[str, Any] = {"one": {"family": "learning", "arms": ["fwdllm"]}}


@pytest.mark.parametrize(
    ("figures", "changes", "message"),
    [
        ({"one": {"family": "lerning"}}, {}, "unknown family `lerning` in figures.one\nhint: did you mean `learning`?"),
        ({"one": {"x": "time"}}, {}, "`family` is missing in figures.one"),
        ({"one": {"family": 3}}, {}, "unknown family"),
        ({"one": {"family": "learning", "x": "tmie"}}, {}, '`x` is `"tmie"` in figures.one\nhint: did you mean `time`?'),
        ({"one": {"family": "learning", "smoth": 3}}, {}, "unknown key `smoth` in figures.one"),
        ({"one": {"family": "learning", "arms": ["fwdlm"]}}, {}, "unknown arm `fwdlm` in figures.one\nhint: did you mean `fwdllm`?"),
        ({"one": {"family": "bars"}}, {"target": None}, "figures.one needs a target accuracy"),
        ({"one": {"family": "bars", "target": 84}}, {}, "`target` is `84` in figures.one"),
        ({"a/b": {"family": "learning"}}, {}, "`a/b` can't be the name of a figure"),
        ({"one": {"family": "ablation", "parts": ["a", "b"], "arms": ["fwdllm"]}}, {}, "an ablation has four arms, this one 1"),
        ({"one": {"family": "sweep", "sweep": "steps", "x": "goal", "y": "goal"}}, {}, "`x` and `y` are both `goal`"),
        ({"one": {"family": "sweep", "sweep": "stpes", "x": "goal", "y": "seed"}}, {}, "unknown sweep `stpes`"),
        ({"one": {"family": "sweep", "sweep": "steps", "x": "goal", "y": "trainers"}}, {}, "don't tell the points of sweep `steps` apart"),
        ({}, {}, "`figures` of figs.yaml is empty"),
        (ONE, {"armz": {}}, "unknown key `armz` in figs.yaml\nhint: did you mean `arms`?"),
        (ONE, {"arms": {"fwdllm": {"run_set": "main", "dirs": ["a"]}}}, "an arm is of a `run_set` or of `dirs`"),
        (ONE, {"arms": {"fwdllm": {"run_set": "other"}}}, "unknown run-set `other` in arms.fwdllm"),
        (ONE, {"arms": {"fwdllm": {"run_set": "tinny"}}}, "unknown run-set `tinny` in arms.fwdllm\nhint: did you mean `tiny`?"),
        (ONE, {"arms": {"fwdllm": {"run_set": "tiny"}}}, "unknown baseline `fwdllm` of run-set `tiny` in arms.fwdllm"),
        (ONE, {"arms": {"fwdllm": {"run_set": "main", "seeds": [1, 9]}}}, "arms.fwdllm: no finished sim run of seed 9"),
        (ONE, {"arms": {"fwdllm": {"dirs": ["nowhere"]}}}, "arm `fwdllm`:"),
        (
            ONE,
            {"arms": {"fwdllm": {"run_set": "main", "look": "fwdlm"}}},
            "unknown look `fwdlm` in arms.fwdllm\nhint: did you mean `fwdllm`?",
        ),
        (ONE, {"runs": "nowhere", "arms": {"fwdllm": {"run_set": "tiny", "look": "blu"}}}, "unknown look `blu` in arms.fwdllm"),
        (ONE, {"arms": {"fwdllm": {"run_set": "main", "seeds": []}}}, "`seeds` is empty"),
        (
            ONE | {"two": {"family": "sweep", "sweep": "stpes", "x": "a", "y": "b"}},
            {"runs": "nowhere"},
            "unknown sweep `stpes` in figures.two\nhint: did you mean `steps`?",
        ),
        (
            {"two": {"family": "sweep", "sweep": "steps", "x": "a", "y": "b"}},
            {"experiments": "none.yaml"},
            "none.yaml`, of which a sweep is drawn\nhint: give `experiments: FILE` in figs.yaml",
        ),
        ({"one": {"family": "ablation", "parts": ["a"]}}, {}, '`parts` is `["a"]` in figures.one\nhint: list 1 more'),
        ({"one": {"family": "ablation", "parts": []}}, {}, "`parts` is `[]` in figures.one\nhint: list 2 more"),
        ({"one": {"family": "ablation", "parts": ["a", "b", "c"]}}, {}, "in figures.one\nhint: give at most 2 entries"),
        (ONE, {"target": "high"}, '`target` is `"high"` in figs.yaml\nhint: give a number'),
        (ONE, {"target": "0.8"}, "hint: give a number, without quotes: `target: 0.8`"),
        (ONE, {"looks": {"fwdllm": {"colour": "blue"}}}, "`colour`: `blue` is no colour in looks.fwdllm\nhint: write it in hex"),
        (ONE, {"looks": {"fwdllm": {"marker": "Q"}}}, "`marker`: `Q` is no marker in looks.fwdllm\nhint: give one of"),
        (ONE, {"looks": {"fwdllm": {"marker": "oo"}}}, "`marker`: `oo` is no marker in looks.fwdllm"),
        (ONE, {"looks": {"fwdllm": {"marker": " "}}}, "`marker`: ` ` is no marker in looks.fwdllm"),
        (ONE, {"looks": {"new": {"name": "New"}}}, "looks.new has no `colour`"),
    ],
)
def test_it_is_refused_and_nothing_is_written(
    figs: Callable[..., Path], tmp_path: Path, figures: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        make(figs(figures, **changes), tmp_path / "out", Wanted(), print)
    assert message in str(refused.value)
    assert "\nhint: " in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_mixed_conditions_are_refused_unless_they_are_meant(figs: Callable[..., Path], home: Path, tmp_path: Path) -> None:
    arms = {"fwdllm": {"run_set": "main"}, "one": {"dirs": [str(next((home / "runs").glob("*_tiny_*")))]}}
    with pytest.raises(ConfigError) as refused:
        make(figs({"mix": {"family": "learning"}}, arms=arms), tmp_path / "out", Wanted(), print)
    assert "figures.mix: `" in str(refused.value)
    assert "don't share their condition" in str(refused.value)
    assert "say `mixed: true`" in str(refused.value)
    assert make(figs({"mix": {"family": "learning", "mixed": True}}, arms=arms), tmp_path / "out", Wanted(), lambda _: None).is_dir()


def test_a_seed_twice_is_refused(figs: Callable[..., Path], home: Path, tmp_path: Path) -> None:
    (one, *_) = sorted((home / "runs").glob("*_main_fwdllm_*"))
    with pytest.raises(ConfigError, match=r"`arms\.fwdllm` has seed 1 twice"):
        make(figs(ONE), tmp_path / "out", Wanted(instead={"fwdllm": [one, one]}), print)


def test_looks_change_what_is_given_and_keep_the_rest(figs: Callable[..., Path]) -> None:
    looks = Figs(figs(ONE, looks={"fwdllm": {"name": "Theirs"}, "new": {"colour": "#123456", "line": "-", "marker": "o"}})).looks
    assert (looks["fwdllm"].name, looks["fwdllm"].marker) == ("Theirs", "D")
    assert (looks["new"].name, looks["new"].colour) == ("new", "#123456")


def test_arms_of_one_baseline_look_different_unless_they_ask_to_look_alike(figs: Callable[..., Path], home: Path) -> None:
    def cast(**arms: dict[str, Any]) -> Cast:
        held = Figs(figs({"one": {"family": "learning"}}, arms=arms))
        return Cast(held, home / "runs", {}, blind=False)

    both = cast(fwdllm={"run_set": "main"}, again={"run_set": "main", "baseline": "fwdllm"}).all
    assert [arm.name for arm in both] == ["FwdLLM", "again"]
    assert both[0].look.marker != both[1].look.marker
    assert [arm.name for arm in cast(mine={"run_set": "main", "baseline": "fwdllm"}).all] == ["FwdLLM"]
    alike = cast(fwdllm={"run_set": "main"}, again={"run_set": "main", "baseline": "fwdllm", "look": "fwdllm"})
    with pytest.raises(ConfigError, match="arms `fwdllm` and `again` have one look"):
        alike.of("one", Learning())


def test_runs_on_the_command_line(figs: Callable[..., Path], tmp_path: Path) -> None:
    assert given(["a=x", "b=y=z", "a=w"]) == {"a": [Path("x"), Path("w")], "b": [Path("y=z")]}
    for wrong in ("a", "=x", "a="):
        with pytest.raises(ConfigError, match="not of the form `label=DIR`"):
            given([wrong])
    done = CliRunner().invoke(app, ["figs", str(tmp_path / "none.yaml")])
    assert done.exit_code == 2
    done = CliRunner().invoke(app, ["figs", str(figs(ONE)), "--only", "two", "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "unknown figure `two` (--only)" in done.output


@pytest.mark.parametrize("name", ["figs.yaml", "figs_ablation.yaml", "figs_sweeps.yaml"])
def test_the_shipped_files_name_what_there_is(name: str) -> None:
    figs, registry = Figs(ROOT / name), load(ROOT / "experiments.yaml")
    for key, arm in figs.arms.items():
        assert registry.resolve(arm.run_set or "", only=[arm.baseline or key])
    for figure in figs.figures.values():
        if isinstance(figure, Sweep):
            for _, resolved in registry.swept(figure.sweep):
                assert field(resolved.condition, figure.x) is not None
                assert field(resolved.condition, figure.y) is not None


def test_an_arm_is_what_its_run_set_would_run_whatever_a_sweep_has_run_since(figs: Callable[..., Path], home: Path, tmp_path: Path) -> None:
    def cast(experiments: Path) -> Cast:
        held = Figs(figs(ONE, arms={"fwdllm": {"run_set": "tiny", "baseline": "one"}}, experiments=str(experiments)))
        return Cast(held, home / "runs", {}, blind=False)

    (arm,) = cast(home / "experiments.yaml").all
    of_it = [each.run.condition for each in arm.runs]
    assert [(each.seed, each.goal, each.server_opt.lr) for each in of_it] == [(1, 2, 0.1), (2, 2, 0.1)]  # type: ignore[union-attr]
    (tmp_path / "edited.yaml").write_text((home / "experiments.yaml").read_text().replace("lr: 0.1}", "lr: 0.2}"))
    with pytest.raises(ConfigError) as refused:
        cast(tmp_path / "edited.yaml")
    assert "arms.fwdllm: no finished sim run of `tiny`, baseline `one`, is in" in str(refused.value)
    assert "is another condition: `server_opt.lr` is `0.2` and `1.0`" in str(refused.value)


def test_an_arm_of_two_conditions_is_refused(figs: Callable[..., Path], home: Path, tmp_path: Path) -> None:
    (one, *_), (_, two, *_) = (sorted((home / "runs").glob(f"*_{name}_*")) for name in ("main_fwdllm", "main_fluxtune_stable"))
    with pytest.raises(ConfigError) as refused:
        make(figs(ONE, arms={"fwdllm": {"dirs": [str(one), str(two)]}}), tmp_path / "out", Wanted(), print)
    assert f"`arms.fwdllm`: `{one.name}` and `{two.name}` are no seeds of one condition: `baseline` is" in str(refused.value)
    assert "`dirs`" in str(refused.value)


def test_a_run_is_given_for_an_arm_that_there_is(figs: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        make(figs(ONE), tmp_path / "out", Wanted(instead={"fwdlm": [tmp_path]}), print)
    assert "unknown arm `fwdlm` of figs.yaml (--run)\nhint: did you mean `fwdllm`?" in str(refused.value)


@pytest.mark.parametrize("kind", [Figs, load])
def test_a_file_that_is_no_text_is_refused(kind: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "it.yaml").write_bytes("arms: {é: 1}".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"`it\.yaml` can't be read: byte 7 is no UTF-8"):
        kind(tmp_path / "it.yaml")


def test_pictures_go_into_a_folder(figs: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    for out in (tmp_path / "taken", tmp_path / "taken" / "deeper"):
        done = CliRunner().invoke(app, ["figs", str(figs(ONE)), "--out", str(out)])
        assert done.exit_code == 2
        assert "`taken` is no folder" in done.output


def test_a_run_without_telemetry_is_named(figs: Callable[..., Path], home: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for path in (home / "runs").iterdir():
        (runs / path.name).mkdir(parents=True)
        for name in ("condition.json", "verdict.json"):
            (runs / path.name / name).write_bytes((path / name).read_bytes())
    sweep = {"two": {"family": "sweep", "sweep": "steps", "x": "goal", "y": "server_opt.lr"}}
    for figures, arms in ((ONE, {"fwdllm": {"run_set": "main"}}), (sweep, {})):
        with pytest.raises(ConfigError, match=r"_sim`: no telemetry: .*\nhint: take that run away"):
            make(figs(figures, arms=arms, runs=str(runs)), tmp_path / "out", Wanted(), print)
