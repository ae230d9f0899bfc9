"""`docs/rungs.md` is a function of the rungs, and current."""

from dataclasses import replace
from pathlib import Path

import pytest

from parity.reports import docs
from parity.rungs import LADDER


def test_the_page_on_disk_is_current() -> None:
    assert docs.main(["--check"]) == 0


def test_a_page_that_is_not_current_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    assert docs.main(["--check"]) == 1
    told = capsys.readouterr().err
    assert "hint: python -m parity.reports.docs > docs/rungs.md" in told
    assert "hint: python -m parity.reports.docs --schema > docs/parity.schema.json" in told


def test_the_page_has_every_rung(capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main([]) == 0
    page = capsys.readouterr().out
    assert all(f"## {rung.id} {rung.name}\n" in page for rung in LADDER.rungs)
    assert page.count("- **Known limits**: ") == len(LADDER.rungs)


def test_a_rung_without_a_section_is_an_error() -> None:
    rung = LADDER.rungs[0]
    with pytest.raises(ValueError, match="P0: its docstring lacks Tolerance"):
        docs.sections(replace(rung, doc=rung.doc.replace("Tolerance:", "Slack:")))


def test_other_arguments_are_refused() -> None:
    assert docs.main(["--write"]) == 2
