"""`flame data prepare`: what it is asked for, and every combination that makes no sense."""

import pytest
from typer.testing import CliRunner

from flame.launch.cli import app


def ask(*args: str, code: int = 0) -> str:
    got = CliRunner().invoke(app, ["data", "prepare", *args])
    assert got.exit_code == code, got.output
    return got.output


def test_a_csv_of_ones_own(tmp_path):
    (tmp_path / "mine.csv").write_text("topic,body\n" + "".join(f"{'ab'[i % 2]},text {i}\n" for i in range(200)))
    said = ask("mine", "--csv", str(tmp_path / "mine.csv"), "--text-col", "body", "--label-col", "topic", "--into", str(tmp_path))
    assert str(tmp_path / "mine" / "mine_data.h5") in said
    assert "180 train and 20 test rows, 2 classes" in said
    assert "left out: partition `uniform_clients=100` can't be made" in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "which data set?"),
        (["r9"], "unknown data set `r9` to prepare"),
        (["agnews"], "`agnews` isn't downloaded"),
        (["x", "--name", "y"], "two data sets are given, `x` and `y`"),
        (["x", "--csv", "f.csv"], "`--csv` needs `--text-col` and `--label-col`"),
        (["x", "--csv", "f.csv", "--text-col", "a"], "`--csv` needs `--label-col`"),
        (["r8", "--text-col", "a"], "`--text-col` says nothing here"),
        (["x", "--csv", "no.csv", "--text-col", "a", "--label-col", "b"], "`no.csv` can't be read"),
    ],
)
def test_what_makes_no_sense_is_refused(args, message, tmp_path):
    said = ask(*args, "--into", str(tmp_path), code=2)
    assert message in said
    assert "hint: " in said
