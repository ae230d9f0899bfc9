"""Every command that stands in a page is executed, in a folder with some runs; the dear ones as far as they are cheap, or they are named.

What a page leaves open (`<run>`, `RUN`, `DIR`) is filled in. `flame run` and `flame sweep` end after the pre-flight, `flame figs` draws
one figure. A new command is executed as soon as it stands in a page; one that can't be stands in `PARSED_ONLY`, with the reason.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from shutil import copytree, rmtree
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from flame.launch.cli import app
from flame.launch.screen import consoles
from tests.docs.judged import only_late
from tests.docs.test_commands import FOUND, ROOT

PARSED_ONLY = {
    "make ": "sets a machine up, or runs everything",
    "python bench/": "measures for minutes",
    "python -m bench.": "measures for minutes",
    "python examples/toy/pair.py": "makes a pair of its own, as tests/pairs do",
    "flame data prepare": "downloads, or reads files that aren't here; tests/launch/test_origins.py",
    "flame stop": "needs a run that goes on; tests/launch/test_stop.py",
    "flame worker": "needs a broker and a run that invites; tests/pairs/test_hosts.py",
    "flame run quick --mode both --broker": "needs that broker; tests/pairs/test_hosts.py",
    "flame replicate": "makes three real runs; tests/launch/test_calibrate.py",
    "flame parity runs --watch": "watches for minutes; tests/parity/test_watch.py",
    "flame figs figs_phones.yaml": "draws a study of nine runs on AG News",
    "flame figs figs_sweeps.yaml": "draws sweeps of an hour; tests/figures/test_families.py has a small one",
    "flame parity REAL SIM --rung": "needs a rung of somebody's own; the tutorial has one, and tests/parity/test_guests.py",
    "flame --install-completion": "changes the shell of whoever runs the tests",
}
"""How commands begin that are only parsed, by test_commands, and why."""
ELSEWHERE = ("tutorial.md",)
"""Pages that another test does as they are written."""
MORE = {"run": "--dry-run", "sweep": "--dry-run", "figs": "--only accuracy-time", "parity": "--yes"}
"""What makes a command cheap, or answers what it would ask."""
SCRIPTS = {"expt_scripts/run_sequential.sh": "run", "expt_scripts/run_parity.py": "parity", "expt_scripts/make_paper_figs.py": "figs"}
LISTS, JUDGES, DIFFERS = "flame run", ("parity", "check"), ("diff", "conditions")
"""The command that lists, and says so by its exit code; those that may find a real run late; those that find differences."""


class Place(NamedTuple):
    """A folder with an experiments.yaml, a figs.yaml and some runs: a pair, replicates, one that was cut short, and a family of arms."""

    folder: Path
    real: str
    sim: str
    cut: str
    arm: str

    def filled(self, command: str) -> str:
        """The command with this folder's names, ready to be typed."""
        command = re.split(r" {3,}", command)[0]
        for what, name in (
            (r"(runs/<run>|\bRUN\b) \1", f"{self.real} {self.sim}"),
            (r"runs/<\.\.\.>_real|runs/REAL|<real run>|\bREAL\b|runs/NAME\b", self.real),
            (r"runs/NAME_OF_THE_SIM|<sim run>|\bSIM\b", self.sim),
            (r"(?<=flame resume )(runs/<run>|RUN)$", self.cut),
            (r"(?<=fluxtune=)runs/<run>", self.arm),
            (r"runs/<run>|\bRUN\b", self.sim),
            (r"(?<=compare_baselines\.py )runs/\*", "runs/*_family_*_sim"),
            (r" \[[^]]*\]| ?\.\.\.", ""),
            (r"\bRUN_SET\b|(?<=run_sequential\.sh --run-set )quick", "toy"),
            (r"(?<=run quick )--mode both", "--mode sim"),  # a real one may be refused: a busy machine can't keep its delays
            (r"\bDIR\b", "made"),
        ):
            command = re.sub(what, name, command)
        return command

    def cut_short(self) -> None:
        """Have `cut` again: a copy of the simulation that nobody conducts, and that has no end."""
        rmtree(self.cut, ignore_errors=True)
        copytree(self.sim, self.cut)
        for file in ("verdict.json", "launcher.json"):
            Path(self.cut, file).unlink()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Made once. Data are those of the tree."""
    folder = tmp_path_factory.mktemp("typed")
    for name in ("experiments.yaml", "figs.yaml"):
        (folder / name).write_text((ROOT / name).read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("FLAME_DATA", str(ROOT / "data"))
        patch.setenv("FLAME_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("COLUMNS", "140")
        consoles.out.cache_clear()
        consoles.err.cache_clear()
        typed("flame run toy --mode both --only async_goal --no-parity --yes", (0,))
        typed("flame run family --mode sim --seeds 1 --yes", (0,))
        [real], [sim] = (glob(f"runs/*_toy_*_{world}") for world in ("real", "sim"))
        for number in (1, 2):
            copytree(real, f"runs/replicates/2026010{number}T000000Z_{Path(real).name.partition('_')[2]}")
        typed(f"flame calibrate {real} --out calibrated.json", (0,))
        yield Place(folder, real, sim, f"elsewhere/{Path(sim).name}", *glob("runs/*_family_fluxtune_n10_s1_sim"))


def typed(command: str, well: tuple[int, ...], *, judges: bool = False) -> str:
    """What it said; it ends with one of these exit codes, and never with a traceback. judges: it may end with 1 for what is only late."""
    first, *words = [name for word in shlex.split(command) for name in sorted(glob(word)) or [word]]
    if first == "flame":
        done = CliRunner().invoke(app, words)
        code, told = done.exit_code, done.output
        assert isinstance(done.exception, SystemExit | None), done.exception
    else:
        script = [] if first == "python" else [str(ROOT / first)]
        line = [*([] if first.endswith(".sh") else [sys.executable]), *script, *words]
        ended = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
        code, told = ended.returncode, ended.stdout + ended.stderr
    missing = re.search(r"data set `[\w-]+` isn't in", told)
    if missing and code == 2:
        pytest.skip(f"{missing[0]} the data folder")
    assert code in well or (judges and code == 1 and only_late(told)), f"{command}\n{told}"
    assert "Traceback" not in told
    return told


def why_not(command: str) -> str | None:
    return next((why for begins, why in PARSED_ONLY.items() if command.startswith(begins)), None)


def within(command: str) -> str:
    """The name of the subcommand, also of one that is called by a script; nothing for `flame` alone, or another script."""
    first, *words = command.split()
    return SCRIPTS.get(first, "".join(words[:1]) if first == "flame" else "")


EXECUTED = {command: page for page, command in FOUND if page.name not in ELSEWHERE and why_not(command) is None}


@pytest.mark.real
@pytest.mark.parametrize(("command", "page"), EXECUTED.items(), ids=[f"{page.name}: {command}" for command, page in EXECUTED.items()])
def test_a_command_does_what_the_page_says(command: str, page: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = within(command)
    line = place.filled(command)
    if place.cut in line:
        place.cut_short()
    if command != LISTS and (more := MORE.get(kind)) and more.split()[0] not in line:
        line += f" {more}"
    line = re.sub(r"^python (?=expt_scripts/)", f"python {ROOT}/", line)
    if (beside := page.parent / "experiments.yaml").is_file() and page.parent != ROOT:
        folder = place.folder / page.parent.name
        copytree(beside.parent, folder, dirs_exist_ok=True)
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(str(folder))
    assert typed(line, (2,) if command == LISTS else (0, 1) if kind in DIFFERS else (0,), judges=kind in JUDGES)


def test_what_is_only_parsed_stands_in_a_page() -> None:
    assert [begins for begins in PARSED_ONLY if not any(command.startswith(begins) for _, command in FOUND)] == []
    assert len(EXECUTED) > 40
