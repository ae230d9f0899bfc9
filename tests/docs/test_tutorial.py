"""The tutorial, done as it is written: its files are made, its commands typed, and its figure is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.judged import only_late

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
BOUND_S = 300


def steps() -> list[tuple[str, str, str]]:
    """Kind, file name and content of each block, in order."""
    return BLOCK.findall(PAGE.read_text())


@pytest.mark.real
def test_a_newcomer_gets_from_the_page_to_a_figure(tmp_path: Path) -> None:
    told = ""
    for kind, name, content in steps():
        if kind == "sh":
            for command in content.splitlines():
                told += typed(command, tmp_path)
        else:
            (tmp_path / name).write_text(content)
    assert re.search(r"L1 +40 cycles equal, model digests included", told)
    assert re.search(r"PASS +Q1 +0 of 10 never heard", told)
    assert re.search(r"quick +1 +sim +COMPLETED +12 ", told)
    pictures = sorted(path.name for path in (tmp_path / "figures" / "latest").glob("*.p*"))
    assert {"accuracy-time.pdf", "accuracy-time.png", "time-to-target.pdf", "utilisation.pdf"} <= set(pictures)


def typed(command: str, folder: Path) -> str:
    """What it said; it has to end well. How late things are is this machine's matter, and its load's."""
    words = command.split()
    assert words[0] == "flame"
    code = "from flame.launch.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=BOUND_S, check=False
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0 or only_late(told), f"{command}\n{told}"
    return told


def test_the_page_has_files_and_commands() -> None:
    kinds = [kind for kind, _, _ in steps()]
    assert kinds.count("python") == 2
    assert kinds.count("yaml") == 3
    assert kinds.count("sh") >= 4
