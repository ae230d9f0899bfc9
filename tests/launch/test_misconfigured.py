"""Misconfigurations, one a row: each is refused before anything starts, by who, what and a remedy.

Refused means: exit code 2, no process was started, no run directory was made. `--force` is given where a fault
can't work, so that it is seen to lift nothing.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from flame.launch.folder.clean import Trace
from flame.launch.preflight import findings, gate, measure

Refused = Callable[[Sequence[str]], str]
Machine = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Wrong:
    """One misconfiguration. typed: after `flame run small`. written: places of experiments.yaml, and what stands there instead.

    files: their names and contents, beside it. machine: what is wrong with the machine.
    """

    typed: str
    who: str
    what: str
    remedy: str
    written: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    machine: Machine | None = None

    def __str__(self) -> str:
        places = [f"{place}={value}" for place, value in self.written.items()]
        return " ".join([self.typed, *places, *(f"{name}:{text!r}" for name, text in self.files.items())]) or self.what


def wrong(typed: str, who: str, what: str, remedy: str, **rest: Any) -> Wrong:
    """A row."""
    return Wrong(typed, who, what, remedy, **rest)


def written(place: str, value: Any, who: str, what: str, remedy: str, typed: str = "") -> Wrong:
    """A row about experiments.yaml."""
    return Wrong(typed, who, what, remedy, written={place: value})


SET = "run_sets.small"

NAMES = [
    wrong("--run-set large", "run-set", "two run-sets are given, `small` and `large`", "give one"),
    wrong("--only gatd", "run-set `small` (--only)", "unknown baseline `gatd`", "did you mean `gated`?"),
    wrong("--only gated,", "`--only gated,`", "holds an empty name", "write it like `--only fwdllm,backprop`"),
    wrong("--seeds 1;2", "`--seeds 1;2`", "`1;2` is no whole number", "write it like `--seeds 1,2,3`"),
    wrong("--seeds 3,3", "`--seeds 3,3`", "names `3` twice", "name each once"),
    wrong("--seeds=-1", "`--seeds -1`", "`-1` is no whole number", "--seeds 1,2,3"),
    wrong("--experiments none.yaml", "`none.yaml`", "there is no", "give `--experiments FILE`"),
    wrong("--experiments e.yaml", "`e.yaml`", "is `null`", "write it as `key: value` lines", files={"e.yaml": ""}),
    wrong("--experiments e.yaml", "e.yaml", "can't be read", "correct the YAML there", files={"e.yaml": "a: ["}),
    wrong("--experiments e.yaml", "`e.yaml`", "can't be read", "YAML in UTF-8", files={"e.yaml": b"a: \xff\xfe"}),
    wrong("--experiments e.yaml", "`a`", "written a second time in line 2", "keep one of the two", files={"e.yaml": "a: 1\na: 2\n"}),
    written(f"{SET}.baselines", ["gated", "palin"], f"{SET}.baselines", "unknown baseline `palin`", "did you mean `plain`?"),
    written(f"{SET}.seeds", [], f"`{SET}.seeds`", "is `[]`", "list at least one"),
    written(f"{SET}.seeds", [1, 1], f"`{SET}.seeds`", "names `1` twice", "name each once"),
    written("run_sets.Big_one", {}, "`Big_one`", "can't be the name of a run-set", "small letters, digits and hyphens"),
    written("baselines.real", {}, "the baseline `real`", "reads as another part of a run directory's name", "choose a name without"),
]  # fmt: skip

FLAGS = [
    wrong("--wokers 2", "--wokers", "No such option", "--workers"),
    wrong("--mode twice", "--mode", "'twice' is not one of", "'both'"),
    wrong("--trainers many", "'--trainers'", "Invalid value", "should be a valid integer"),
    wrong("--delays slow", "--delays", "'slow' is not one of", "'off'"),
    wrong("--set stop.cycles", "`--set stop.cycles`", "is not of the form `a.b.c=value`", "write it like"),
    wrong("--set seed=3", "`--set seed=3`", "has its own `seed`s", "give `--seeds 1,2,3`"),
    wrong("--set trainers.x=3", "`--set trainers.x=3`", "`trainers` is `4`, which has no `x`", "set `trainers` itself"),
    wrong("--set select.type=ort", "`--set select.type=ort`", "unknown select policy `ort`", "all, async_oort, fedbuff, oort, random"),
    wrong("--set sizes.type=vartracking", "`--set sizes.type=vartracking`", "unknown sizes policy `vartracking`", "static, var_tracking"),
    wrong("--partition iid", "`--partition iid`", "unknown partition type `iid`", "niid_label, uniform"),
    wrong("--avail-trace syn_30", "`--avail-trace syn_30`", '`availability.trace` is `"syn_30"`', "`syn_20`"),
    wrong("--trace-time-scale 0", "`--trace-time-scale 0.0`", "`availability.time_scale` is `0.0`", "give a number over 0"),
    wrong("--agg-rate-type felx", "`--agg-rate-type felx`", "unknown rate policy `felx`", "did you mean `felix`?"),
    wrong("--delay-factor 0", "`--delay-factor 0.0`", "`delays.factor` is `0.0`", "give a number over 0"),
    wrong("--max-runtime -1", "`--max-runtime -1.0`", "`stop.runtime_s` is `-1.0`", "give a number over 0"),
    wrong("--max-runtime nan", "`--max-runtime nan`", "`stop.runtime_s` is `NaN`", "give a finite number"),
    wrong("--max-runtime inf", "`--max-runtime inf`", "`stop.runtime_s` is `Infinity`", "give a finite number"),
    wrong("--delay-factor inf", "`--delay-factor inf`", "`delays.factor` is `Infinity`", "give a finite number"),
    wrong("--stall-window-h nan", "`--stall-window-h nan`", "`stop.stall.window_s` is `NaN`", "give a finite number"),
    wrong("--set stop.runtime_s=.nan", "`--set stop.runtime_s=.nan`", "holds nan", "give a finite number"),
    wrong("--set delays.values=[.inf]", "`--set delays.values=[.inf]`", "holds inf", "give a finite number"),
    written(f"{SET}.delays", {"values": [float("inf")]}, f"{SET}.delays.values", "holds inf", "give a finite number"),
    wrong("--only gated --set server_opt.lrr=0.3", "in `--set serv", "unknown key `server_opt.lrr`", "did you mean `lr`?"),
    wrong("--max-data-id 0", "`--max-data-id 0`", "`stop.commits` is `0`", "give a number over 0"),
    wrong("--target-acc 84", "`--target-acc 84.0`", "`stop.target.accuracy` is `84.0`", "give a number of at most 1"),
    wrong("--target-acc 0.5 --converge-window 0", "`--converge-window 0`", "`stop.target.window` is `0`", "give a number over 0"),
    wrong("--converge-window 3", "`stop.target.accuracy`", "is missing", "add `accuracy: ...`"),
    wrong("--stall-window-s 0", "`--stall-window-s 0.0`", "`stop.stall.window_s` is `0.0`", "give a number over 0"),
    wrong("--stall-window-h 0", "`--stall-window-h 0.0`", "`stop.stall.window_s` is `0.0`", "give a number over 0"),
    wrong("--stall-window-s 9 --stall-window-h 9", "`--stall-window-s`", "say the same in two ways", "give one of them"),
    wrong("--stall-on accuracy", "`--stall-on accuracy`", '`stop.stall.on` is `"accuracy"`', "did you mean `acc`?"),
    wrong("--stall-min-delta 0", "`--stall-min-delta 0.0`", "`stop.stall.min_delta` is `0.0`", "give a number over 0"),
    wrong("--loss-min-rel-delta 0", "`--loss-min-rel-delta 0.0`", "`stop.stall.loss_min_rel_delta` is `0.0`", "give a number over 0"),
    wrong("--var-threshold 0 --only gated", "`--var-threshold 0.0`", "`commit.0.threshold` is `0.0`", "give a number over 0"),
    wrong("--var-threshold 1 --only plain", "`--var-threshold 1.0`", "`commit` has no entry `variance`", "it has 0 (agg_goal)"),
    wrong("--max-iter-per-data-id 0 --only gated", "`--max-iter-per-data-id 0`", "`commit.1.max` is `0`", "give a number over 0"),
    wrong("--var-stopping-policy plato", "(`--var-stopping-policy`)", "unknown policy `plato`", "did you mean `plateau`?"),
    wrong("--var-stopping-policy plateau", "`--var-stopping-policy plateau`", "`commit` has no gate of variances", "with `--only`"),
    wrong("--after santy", "`--after santy`", "unknown hook `santy`", "did you mean `sanity`?"),
    wrong("--after parity", "`--after parity`", "`--mode sim` makes none", "give `--mode both`"),
    wrong("--mode real --workers 0", "config error", "no worker hosts the trainers", "give `--workers 1`, or `--remote 1`"),
    wrong("--mode real --workers -1", "(`--workers`)", "`workers` is `-1`", "give a number of at least 0"),
    wrong("--mode real --remote 1", "config error", "workers from elsewhere need a broker that others reach", "give `--broker HOST:PORT`"),
    wrong("--mode real --broker-user alice", "config error", "need a broker that others reach", "give `--broker HOST:PORT`"),
    wrong("--mode real --broker host:1 --broker-user a/b", "(`--broker-user`)", "which `a/b` can't be part of", "without / + #"),
    wrong("--remote 1", "`--remote 1`", "says nothing to `--mode sim`", "give `--mode real`"),
    wrong("--pool -1", "(`--pool`)", "`pool` is `-1`", "give a number of at least 0"),
    wrong("--device gpu", "(`--device`)", "there is no device `gpu`", "give `cpu`"),
    wrong("--device cuda:0", "gated", "`device: cuda:0` says nothing to `task: toy`", "give `device: cpu`"),
    wrong("--mode real --broker mosquito", "(`--broker`)", "there is no broker `mosquito`", "did you mean `mosquitto`?"),
    wrong("--mode real --broker host:99999", "(`--broker`)", "there is no broker `host:99999`", "the HOST:PORT of a running one"),
]  # fmt: skip

DEAD = [
    written("baselines.gated.stalenessPolicy", "exact", "in baselines.gated", "unknown key `stalenessPolicy`", "did you mean `staleness`?"),
    written("baselines.gated.staleness_policy", "exact", "baselines.gated", "unknown key `staleness_policy`", "did you mean `staleness`?"),
    written(f"{SET}.tariners", 4, f"in {SET}", "unknown key `tariners`", "did you mean `trainers`?"),
    written("baselines.gated.trainers", 4, "in baselines.gated", "unknown key `trainers`", "Known keys: awareness, commit"),
    written("baseline", {}, "in experiments.yaml", "unknown key `baseline`", "did you mean `baselines`?"),
    wrong("--set stop.cylces=3", "`--set stop.cylces=3`", "unknown key `stop.cylces`", "did you mean `cycles`?"),
    written(f"{SET}.trainers", "10", f"in {SET}", '`trainers` is `"10"`', "without quotes: `trainers: 10`"),
    written(f"{SET}.stop", {"cycles": "5"}, f"in {SET}", '`stop.cycles` is `"5"`', "without quotes: `cycles: 5`"),
    written(f"{SET}.eval", {"blocks": "True"}, f"in {SET}", '`eval.blocks` is `"True"`', "without quotes: `blocks: True`"),
    written(f"{SET}.override", {"gated": {"goal": "2"}}, f"{SET}.override.gated", '`goal` is `"2"`', "without quotes: `goal: 2`"),
    written(f"{SET}.override", {"plain": {"delays": {"values": [9]}}}, "`delays`", "differs between baselines", "set `delays` for all"),
    wrong("--trace-time-scale 9", "--trace-time-scale 9", "`availability.time_scale` says nothing to `trace: syn_0`", "give a trace"),
    wrong("--broker mosquitto", "`--broker mosquitto`", "says nothing to `--mode sim`", "give `--mode real`"),
    wrong("--workers 3", "`--workers 3`", "says nothing to `--mode sim`", "give `--mode real`"),
    wrong("--mode real --pool 2", "`--pool 2`", "says nothing to `--mode real`", "give `--mode sim`"),
    wrong("--set estimator={type:.backprop,.chunk:.2}", "`--set est", "`estimator.chunk` says nothing to `type: backprop`", "drop it"),
    wrong("--set data=r8", "`--set data=r8`", "`data` says nothing to `task: toy`", "drop it, or use `task: text`"),
    wrong("--set model=gpt5", "`--set model=gpt5`", "`model` says nothing to `task: toy`", "drop it, or use `task: text`"),
    wrong("--set tokens=5", "`--set tokens=5`", "`tokens` says nothing to `task: toy`", "drop it, or use `task: text`"),
    wrong("--set trainable.part=lora", "`--set trainable.part=lora`", "`trainable` says nothing to `task: toy`", "use `task: text`"),
    wrong("--set surrogate.bins=5", "`--set surrogate.bins=5`", "`surrogate` says nothing to `task: toy`", "use `task: surrogate`"),
    wrong("--set partition.alpha=0.1", "`--set partition", "`partition.alpha` says nothing to `type: uniform`", "`type: niid_label`"),
    wrong("--only gated --set estimator.h=0.5", "`--set estimator.h=0.5`", "`estimator.h` says nothing to `type: forward_ad`", "drop it"),
    wrong("--only plain --set server_opt.rounds=7", "`--set serv", "`server_opt.rounds` says nothing to `decay: none`", "`decay: round`"),
    wrong("--only plain --set perturb=mean_of", "`--set p", "`perturb` says nothing to `estimator.type: backprop`", "give another"),
    wrong("--stall-on acc --loss-min-rel-delta 0.1", "`--loss-m", "`stop.stall.loss_min_rel_delta` says nothing to `on: acc`", "drop it"),
    wrong("--draw 3", "(`--draw`)", "`draw` says nothing to `latency: null`", "give another `latency`"),
    written(f"{SET}.eval", {"rows": 64, "every": 0}, f"in {SET}", "`eval.rows` says nothing to `every: 0`", "drop it"),
    written("baselines.gated.commit", ["agg_goal", {"type": "cap", "max": 3}], "gated", "`cap` behind `agg_goal`", "drop one"),
]  # fmt: skip

IMPOSSIBLE = [
    wrong("--agg-goal 4", "gated", "`goal` K = 4 is over `concurrency` C = 3", "raise C (`concurrency: 4`, `--concurrency 4`)"),
    wrong("--trainers 1", "gated", "`goal` K = 2 is over `trainers` N = 1", "lower K (`goal: 1`, `--agg-goal 1`)"),
    wrong("--set delays.values=[0.0]", "`--set delays.values=[0.0]`", "`delays.values.0` is `0.0`", "give a number over 0"),
    written(f"{SET}.delays", {"values": [1, -1]}, f"in {SET}", "`delays.values.1` is `-1`", "give a number over 0"),
    wrong("--set commit_order=arrival", "gated", "`commit_order: arrival` doesn't go with `pacing: absolute`", "`arrival` with `relative`"),
    wrong("--set pacing=relative", "gated", "`commit_order: stamp` doesn't go with `pacing: relative`", "`stamp` with `absolute`"),
    wrong("--set sizes.type=var_tracking", "gated", "`goal` K = 2 is outside `sizes.goal_min` = 5", "give a `goal` within"),
    written(f"{SET}.stop", {}, f"in {SET}", "nothing ends the run", "give one of `cycles`"),
    written(f"{SET}.population", {"joins": {"t9": 1}}, "gated", "`population` names `t9`", "give one of t0 .. t3"),
    written(f"{SET}.payload", {"up": "seeds"}, "plain", "`estimator: backprop` makes none", "use `payload.up: dense`"),
    written(f"{SET}.limits", {"max_rejects": 1}, "gated", "a cycle takes K = 2 releases to close", "give at least 2"),
    wrong(
        "--force --only gated --agg-goal 4 --concurrency 4 --avail-trace syn_20", "gated",
        "`goal` K = 4 is all `trainers`, and under `availability.trace: syn_20` some are away", "lower `goal` to 3 or less",
    ),
    written(f"{SET}.override", {"plain": {"goal": 1}}, "gated 2, plain 1", "`goal` K differs between baselines", "one goal", "--force"),
    wrong("--force --set eval.every=0 --target-acc 0.5", "gated", "`stop.target` looks at evaluations", "give `eval.every: 1`"),
    wrong("--force --set eval.every=0 --stall-window-h 1", "gated", "`stop.stall` looks at evaluations", "give `eval.every: 1`"),
    wrong("--var-stopping-policy off --only gated", "gated", "`commit` has a variance gate and no cap", "add `{type: cap, max: 60}`"),
]  # fmt: skip


def _little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_available", lambda: 1 << 20)


def _little_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "ROOM", 1 << 62)


def _strays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "traces", lambda runs: [Trace(Path("runs/old"), None, (123456,))])


def _no_mosquitto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flame.runtime.brokers.broker.find_mosquitto", lambda: None)


def _no_amqtt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "find_spec", lambda name: None)


TEXT = {f"{SET}.task": "text", f"{SET}.data": "r8", f"{SET}.toy": {}}
ZERO = '{"1": 0, "2": 1, "3": 1, "4": 1}'
FILES_AND_MACHINE = [
    wrong("--force", "gated", "data set `r8` isn't in", "run `flame data prepare r8`", written=TEXT),
    wrong("", "gated", "`task: text` needs `data`", "such as `data: r8`", written={f"{SET}.task": "text", f"{SET}.toy": {}}),
    wrong("--set delays.registry=d.json", "`delays.registry`", "there is no file `d.json`", "give a path that exists"),
    wrong("--set delays.registry=d.json", "`delays.registry`", "can't be read as JSON", "give a JSON file", files={"d.json": "{"}),
    wrong("--set delays.registry=d.json", "`delays.registry`", "holds no clients", 'give `{"clients"', files={"d.json": "[]"}),
    wrong("--set delays.registry=d.json", "`delays.registry`", "the delay `0`", "a finite number over 0", files={"d.json": ZERO}),
    wrong("--set delays.ai_benchmark.path=p.json", "`delays.ai_benchmark.path`", "is no list", "give a file", files={"p.json": "[]"}),
    wrong("--avail-trace file", "`--avail-trace file`", "`trace: file` needs `path`", "give the file"),
    wrong("--set availability={trace:.file,.path:.t.json}", "gated", "there is no file `t.json`", "give a path that exists"),
    wrong(
        "--set availability={trace:.file,.path:.t.json}", "gated", "has 1 clients, fewer than `trainers` N = 4", "availability.reuse: true",
        files={"t.json": '{"clients": {"1": {}}}'},
    ),
    wrong("--latency l.json", "`latency`", "there is no file `l.json`", "give a path that exists"),
    wrong("--latency l.json", "`latency`", "holds no latency law", "`flame calibrate RUN`", files={"l.json": "[]"}),
    wrong("--runs f", "`--runs f`", "`f` is no folder", "give a folder", files={"f": "taken"}),
    wrong("--force --mode real --delay-factor 1e5 --only plain", "plain", "compute doesn't fit the delays", "lower `--delay-factor`"),
    wrong("--force", "`--runs runs`", "MiB of disk are free", "use another disk", machine=_little_disk),
    wrong("--force --mode real", "MiB are needed", "1 MiB are free", "lower `--workers`", machine=_little_memory),
    wrong("--force", "old", "left processes behind: 123456", "add `--clean`", machine=_strays),
    wrong("--mode real --broker mosquitto", "`--broker mosquitto`", "isn't installed", "use `--broker embedded`", machine=_no_mosquitto),
    wrong("--mode real", "`--broker embedded`", "needs the package amqtt", "run `pip install amqtt`", machine=_no_amqtt),
]  # fmt: skip
"""A dot stands for a space inside a value of `--set`."""

LISTED = [*NAMES, *FLAGS, *DEAD, *IMPOSSIBLE, *FILES_AND_MACHINE]


@pytest.mark.parametrize("row", LISTED, ids=str)
def test_it_is_refused_by_who_what_and_remedy(
    refused: Refused, sections: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Wrong
) -> None:
    for place, value in row.written.items():
        put(sections, place, value)
    for name, text in row.files.items():
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    if row.machine is not None:
        row.machine(monkeypatch)
    message = refused(["run", "small", *spelled(row.typed)])
    assert row.who in message, message
    assert row.what in message, message
    assert row.remedy in message.partition(row.what)[2] or row.remedy in message.partition(row.who)[2], message


def put(sections: dict[str, Any], place: str, value: Any) -> None:
    """Write one place of experiments.yaml."""
    *parents, key = place.split(".")
    block = sections
    for parent in parents:
        block = block[parent]
    block[key] = value


def spelled(typed: str) -> Iterator[str]:
    """The arguments; in a value that is a mapping, `:.` and `,.` are `: ` and `, `."""
    for part in typed.split():
        yield part.replace(":.", ": ").replace(",.", ", ")


def test_a_broker_that_nobody_runs_is_refused(refused: Refused) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{unused.getsockname()[1]}"
        message = refused(["run", "small", "--mode", "real", "--force", "--broker", place])
    assert f"no broker answers at `{place}`" in message
    assert "start it, correct HOST:PORT, or use `--broker embedded`" in message


TABLES = [
    ("", "`rows.csv` is empty", "give a file with a header and rows"),
    ("text,label\n", "`rows.csv` has no row with a text", "give a file with rows"),
    ("txt,label\na,b\n", "`rows.csv` has no column `text`", "did you mean `txt`?"),
    ("text,label\na,\n", "`rows.csv` has a text without a label at line 2", "label it or take it out"),
    (None, "`rows.csv` can't be read", "give the path of a CSV file"),
]


@pytest.mark.parametrize(("rows", "what", "remedy"), TABLES)
def test_a_table_without_rows_is_refused(refused: Refused, tmp_path: Path, rows: str | None, what: str, remedy: str) -> None:
    if rows is not None:
        (tmp_path / "rows.csv").write_text(rows)
    message = refused(["data", "prepare", "mine", "--csv", "rows.csv", "--text-col", "text", "--label-col", "label"])
    assert what in message
    assert remedy in message
    assert not (tmp_path / "data" / "mine").exists()


COMMANDS = [
    ("sweep nothing", "unknown sweep `nothing` in experiments.yaml", "there are no sweeps"),
    ("resume nowhere", "`nowhere` can't be resumed", "give a run directory"),
    ("replay nowhere", "`nowhere` is no run directory", "give one of `flame runs`"),
    ("replicate nowhere", "`nowhere` is no run directory", "give one of `flame runs`"),
    ("calibrate nowhere", "`nowhere` is no run directory", "give one of `flame runs`"),
    ("data partition r8 --type uniform --clients 4", "data set `r8` isn't in", "run `flame data prepare r8`"),
    ("data partition r8 --type niid_label --clients 4 --alpha nan", "Invalid value for '--alpha'", "no finite number over 0"),
    ("probe host:1 --for inf", "Invalid value for '--for'", "no finite number over 0"),
    ("worker --join host:1 --run x --wait nan", "Invalid value for '--wait'", "no finite number over 0"),
    ("data prepare r9", "unknown data set `r9` to prepare", "r8"),
]


@pytest.mark.parametrize(("typed", "what", "remedy"), COMMANDS)
def test_other_commands_refuse_what_is_not_there(refused: Refused, typed: str, what: str, remedy: str) -> None:
    message = refused(typed.split())
    assert what in message
    assert remedy in message


def test_the_list_is_long_and_names_nothing_twice() -> None:
    assert len({(str(row), row.what) for row in LISTED}) == len(LISTED)
    assert len(LISTED) >= 36
