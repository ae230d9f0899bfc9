"""Every transcript is what the aggregator says today. `pytest --update-scenarios` writes it anew: review the diff."""

from difflib import unified_diff
from pathlib import Path

import pytest

from .transcript import play

FILES = sorted(Path(__file__).parent.glob("*.txt"))


def check(file: Path, *, update: bool) -> str:
    """The difference between a transcript and what is said today, empty if there is none. update: write it instead."""
    told = file.read_text()
    said = play(told)
    if update:
        if said != told:
            file.write_text(said)
        return ""
    return "".join(unified_diff(told.splitlines(True), said.splitlines(True), f"{file.name} (told)", f"{file.name} (said)"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_transcript(file: Path, request: pytest.FixtureRequest) -> None:
    difference = check(file, update=request.config.getoption("--update-scenarios"))
    assert difference == "", f"{difference}\nif this is what it shall do: pytest --update-scenarios"


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 8


SMALL = """# one
condition: {trainers: 1, goal: 1, concurrency: 1}
---

# go
start
update 1 (2, 0)
"""


def test_what_is_told_wrongly_is_shown_and_the_flag_repairs_it(tmp_path: Path) -> None:
    file = tmp_path / "small.txt"
    file.write_text(SMALL)
    assert "+  theta (-2, 0)" in check(file, update=False)
    assert file.read_text() == SMALL
    assert check(file, update=True) == check(file, update=False) == ""
    assert [line for line in file.read_text().splitlines() if not line.startswith("  ")] == SMALL.splitlines()
    file.write_text(file.read_text().replace("theta (-2, 0)", "theta (-3, 0)"))
    assert "-  theta (-3, 0)" in check(file, update=False)


@pytest.mark.parametrize(
    ("text", "says"),
    [("condition: {}\nstart\n", "a line `---`"), ("condition: {}\n---\nfly\n", "`fly` is no event; known are up, start, ready, update")],
)
def test_what_is_no_transcript_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        play(text)
