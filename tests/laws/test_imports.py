"""The directions of imports, as `.importlinter` has them, hold; and a contract can fail."""

import configparser
import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_ERROR, EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[2]

BAD = """
[importlinter]
root_packages = flame

[importlinter:contract:upside-down]
name = the core is above the roles
type = layers
layers =
    flame.core
    flame.roles
"""


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def lint(file: Path) -> tuple[int, str]:
    said = io.StringIO()
    with redirect_stdout(said):
        status = lint_imports(config_filename=str(file), no_cache=True)
    return status, said.getvalue()


def test_the_contracts_are_kept() -> None:
    status, said = lint(ROOT / ".importlinter")
    assert status == EXIT_STATUS_SUCCESS, said


def test_a_contract_can_be_broken(tmp_path: Path) -> None:
    file = tmp_path / ".importlinter"
    file.write_text(BAD)
    assert lint(file)[0] == EXIT_STATUS_ERROR


def test_each_package_is_spoken_of() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    text = "\n".join(contracts[section].get("source_modules", "") + contracts[section].get("layers", "") for section in contracts)
    packages = [path.parent for path in sorted((ROOT / "flame").glob("*/__init__.py"))]
    assert packages
    assert [package.name for package in packages if f"flame.{package.name}" not in text] == []
