"""Every command that stands in a page can be typed: it exists, its options do, and so does what it names. test_executed types them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
import yaml

from flame.launch.cli import app, reference
from parity import cli as parity_cli
from parity.reports import diff as parity_diff

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*/*.md"))]
OWN = {"docs/commands.md", "CHANGELOG.md"}
PARSERS = {"parity": parity_cli.parser, "check": parity_cli.parser, "diff": parity_diff.parser}
CODE = re.compile(r"^(?: {4,}|\t)(.*)$|^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
START = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:\$ )?(flame|python|expt_scripts/\S+|make)(?= |$)")
PLACEHOLDER = re.compile(r"[A-Z_]+|\.\.\.|<.*>")


def commands(page: Path) -> Iterator[str]:
    """The commands in a page's blocks of code: comments cut off, chains taken apart."""
    for block in CODE.finditer(page.read_text()):
        for line in (block[1] or block[2] or "").splitlines():
            for part in re.split(r"\s*(?:;|&&)\s*|\s+[|>]\s+", re.sub(r"(^|\s)#.*", "", line)):
                if START.match(part.strip()):
                    yield part.strip().removeprefix("$ ")


FOUND = [(page, command) for page in PAGES if str(page.relative_to(ROOT)) not in OWN for command in commands(page)]


def named(kind: str) -> list[tuple[Path, str]]:
    return [(page, command) for page, command in FOUND if START.match(command)[1].split("/")[0] == kind]  # type: ignore[index]


def ids(found: list[tuple[Path, str]]) -> list[str]:
    return [f"{page.name}: {command}" for page, command in found]


@pytest.mark.parametrize(("page", "command"), named("flame"), ids=ids(named("flame")))
def test_a_flame_command_can_be_typed(page: Path, command: str) -> None:
    words = shlex.split(re.sub(r"^(?:[A-Z_]+=\S+ )*", "", command))[1:]
    if words and words[0] in PARSERS:
        PARSERS[words[0]]().parse_args([word.rstrip(".") or "RUN" for word in words[1:]])
        return
    chosen = typer.main.get_command(app)
    while hasattr(chosen, "commands") and words and words[0] in chosen.commands:
        chosen = chosen.commands[words.pop(0)]
    if hasattr(chosen, "commands"):
        assert not words or words[0].startswith("-"), f"`flame` has no command `{words[0]}`"
        return
    context = chosen.make_context(command, [word for word in words if word != "..."])
    run_set = context.params.get("run_set") or context.params.get("named")
    for name in str(run_set).split("|") if run_set else []:
        assert PLACEHOLDER.fullmatch(name) or name in run_sets() or made_in(page, name), f"there is no run-set `{name}`"


def made_in(page: Path, name: str) -> bool:
    """Whether the page shows that run-set itself, or an experiments.yaml beside it does."""
    beside = page.parent / "experiments.yaml"
    return f"\n  {name}:\n" in page.read_text() + (beside.read_text() if beside.is_file() else "")


def run_sets() -> set[str]:
    """Those of the registry."""
    return set(yaml.safe_load((ROOT / "experiments.yaml").read_text())["run_sets"])


@pytest.mark.parametrize(("page", "command"), named("python"), ids=ids(named("python")))
def test_a_script_or_module_is_there(page: Path, command: str) -> None:
    words = shlex.split(command)[1:]
    if words[0] == "-m":
        module = ROOT / words[1].replace(".", "/")
        assert module.with_suffix(".py").is_file() or module.is_dir() or words[1] in ("pytest", "venv"), words[1]
    elif not words[0].startswith("-"):
        assert (page.parent / words[0]).is_file() or (ROOT / words[0]).is_file(), words[0]


@pytest.mark.parametrize(("page", "command"), named("expt_scripts"), ids=ids(named("expt_scripts")))
def test_an_experiment_script_is_there(page: Path, command: str) -> None:
    assert (ROOT / shlex.split(command)[0]).is_file()


def test_the_pages_have_commands() -> None:
    assert len(named("flame")) > 30
    assert len(named("python")) > 5


def test_the_reference_is_current() -> None:
    assert reference.main(["--check"]) == 0
