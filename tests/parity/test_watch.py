"""The watch: it looks once, again when a run has ended, and it has an end."""

from collections.abc import Callable
from os import utime
from pathlib import Path

import pytest

from parity import cli
from parity.cli import main
from parity.watch import watch
from tests.parity.fixtures import condition, write_pair

Capture = pytest.CaptureFixture[str]


class Pauses:
    """What happens in each pause; after the last one somebody presses Ctrl-C."""

    def __init__(self, *happens: Callable[[], object]) -> None:
        self.happens = list(happens)

    def __call__(self, seconds: float) -> None:
        if not self.happens:
            raise KeyboardInterrupt
        self.happens.pop(0)()


class Looks:
    """Answers with the next code, and counts."""

    def __init__(self, *codes: int) -> None:
        self.codes, self.n = list(codes), 0

    def __call__(self) -> int:
        self.n += 1
        return self.codes.pop(0)


def _end(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "verdict.json").write_text("{}")


def test_it_looks_once_and_not_again_while_nothing_has_ended(tmp_path: Path) -> None:
    looks = Looks(1)
    assert watch(looks, [tmp_path], 60, Pauses(lambda: None, (tmp_path / "going").mkdir)) == 1
    assert looks.n == 1


def test_it_looks_again_for_each_run_that_ends_and_answers_as_the_last_look(tmp_path: Path) -> None:
    looks = Looks(2, 1, 0)
    assert watch(looks, [tmp_path], 60, Pauses(lambda: _end(tmp_path / "one"), lambda: None, lambda: _end(tmp_path / "two"))) == 0
    assert looks.n == 3


def test_a_run_that_ended_anew_is_newer(tmp_path: Path) -> None:
    _end(tmp_path / "one")
    looks = Looks(0, 1)
    again = Pauses(lambda: utime(tmp_path / "one" / "verdict.json", ns=(0, 7)))
    assert watch(looks, [tmp_path], 60, again) == 1


def test_it_ends_by_itself(tmp_path: Path) -> None:
    looks = Looks(0)
    assert watch(looks, [tmp_path], 0.0, Pauses()) == 0
    assert looks.n == 1


def test_ctrl_c_in_the_first_look_is_no_traceback(tmp_path: Path) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert watch(interrupted, [tmp_path], 60, Pauses()) == 2


def test_the_command_waits_for_a_pair_and_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    pauses = Pauses(lambda: write_pair(tmp_path, condition()))
    monkeypatch.setattr(cli, "watch", lambda check, folders, seconds: watch(check, folders, seconds, pauses))
    assert main([str(tmp_path), "--watch", "--for", "60"]) == 0
    out, err = capsys.readouterr()
    assert "no complete pair" in err
    assert " passed, " in out
