"""The page and the schema are functions of the records, and the ones on disk are current."""

from pathlib import Path

import orjson
import pytest
from pydantic import TypeAdapter

from flame.telemetry import docs
from flame.telemetry.columns import KINDS
from flame.telemetry.docs import Line
from tests.parity.fixtures import condition, write_run


def test_the_pages_on_disk_are_current() -> None:
    assert docs.main(["--check"]) == 0


def test_a_page_that_is_not_current_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    (tmp_path / "telemetry.md").write_text(docs.page() + "more")
    assert docs.main(["--check"]) == 1
    error = capsys.readouterr().err
    assert "telemetry.md is not current" in error
    assert "hint: python -m flame.telemetry.docs --schema > docs/telemetry.schema.json" in error


def test_the_page_names_every_record_and_explains_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main([]) == 0
    page = capsys.readouterr().out
    assert all(f"## {kind}\n" in page for kind in KINDS)
    assert "| model | str | Digest of theta after the close. |" in page
    assert "| phases | dict of str to float or null |" in page


def test_the_schema_knows_the_lines_that_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main(["--schema"]) == 0
    schema = orjson.loads(capsys.readouterr().out)
    assert set(schema["properties"]["record"]["discriminator"]["mapping"]) == set(KINDS)
    run = write_run(tmp_path, condition(), "real")
    line = TypeAdapter(Line)
    for file in (run.path / "telemetry").glob("*.jsonl"):
        for text in file.read_bytes().splitlines():
            line.validate_json(text, strict=True)


def test_other_arguments_are_refused() -> None:
    assert docs.main(["--chek"]) == 2
