"""What two hosts have is compared by digests; a broker that can't be reached is told in words that fit the command."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from flame.launch.processes import probing
from flame.launch.processes.probing import Answer, compared, data_digests
from flame.learn.data import data_folder, prepare
from flame.learn.data.tables import corpus


def test_what_both_have_is_told_by_name() -> None:
    here, there = {"r8": "a" * 32, "mine": "b" * 32, "20news": "c" * 32}, {"r8": "a" * 32, "theirs": "d" * 32, "20news": "e" * 32}
    assert list(compared(here, there)) == [
        f"another 20news ({'e' * 12} there, {'c' * 12} here)", "mine only here", "the same r8", "theirs only there",
    ]  # fmt: skip


def test_digests_are_of_rows_and_not_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for folder, texts in (("one", 40), ("two", 40), ("three", 41)):
        monkeypatch.setenv("FLAME_DATA", str(tmp_path / folder))
        rows = [(str(number % 2), f"text {number}") for number in range(texts)]
        prepare("own", data_folder(), source=lambda say, rows=rows: corpus(rows, rows[:4]))  # type: ignore[misc]
        found.append(data_digests())
    assert found[0] == found[1] != found[2]
    assert list(found[0]) == ["own"]
    (tmp_path / "three" / "own" / "own_data.h5").write_bytes(b"no h5")
    assert data_digests() == {"own": "can't be read (ConfigError)"}


def test_another_version_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    old: dict[str, Any] = {"asked": 1, "host": "b", "code": "0.0.1", "libraries": {}, "devices": ["cpu"], "clock": 5}
    assert Answer.read(orjson.dumps(old | {"weather": "fair"})) == Answer(**old)


@pytest.mark.parametrize("broker", ["embedded", "mosquitto", "nowhere", "host:99999"])
@pytest.mark.parametrize("command", [["probe"], ["worker", "--run", "some", "--join"]], ids=["probe", "worker"])
def test_what_is_no_broker_elsewhere_is_refused_in_fitting_words(flame: Any, command: list[str], broker: str) -> None:
    result = flame(*command, broker)
    assert result.exit_code == 2
    assert f"broker `{broker}`" in result.stderr
    assert "hint: give the HOST:PORT of a running one" in result.stderr
    assert "--broker " not in result.stderr


@pytest.mark.parametrize("command", [["probe"], ["worker", "--run", "some", "--wait", "0.1", "--join"]], ids=["probe", "worker"])
def test_a_broker_that_isnt_there_is_refused_in_fitting_words(flame: Any, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setattr(probing, "WAIT_S", 0.1)
    result = flame(*command, "127.0.0.1:9")
    assert result.exit_code == 2
    assert "hint: start the broker, or correct its HOST:PORT" in result.stderr
