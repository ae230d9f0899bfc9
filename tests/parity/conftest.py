"""Pairs to look at, and a replay that answers from a file instead of from a journal."""

from collections.abc import Callable
from pathlib import Path
from sys import modules
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import Options, Report, check
from parity.rungs import LADDER
from tests.parity.fixtures import condition, write_pair
from tests.parity.spoils import GROUNDS


@pytest.fixture(autouse=True)
def replayed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synthetic runs have no journal that could be replayed: P0 is told what `journal/replayed.json` says."""
    if "real_replay" not in request.fixturenames:
        monkeypatch.setattr(modules["parity.derived.replayed"], "_replay", _answer)


@pytest.fixture
def real_replay() -> None:
    """Asked for by tests whose runs have a journal."""


_IDENTICAL = {"node": "aggregator", "steps": 100, "difference": None, "skipped": None, "step": None, "now": None}


def _answer(path: Path) -> list[SimpleNamespace]:
    file = path / "journal" / "replayed.json"
    said: dict[str, Any] = orjson.loads(file.read_bytes()) if file.is_file() else {}
    return [SimpleNamespace(**(_IDENTICAL | said))]


def say_replayed(run: RunDir, **said: Any) -> None:
    """What P0 is told of that run's replay."""
    (run.path / "journal" / "replayed.json").write_bytes(orjson.dumps(said))


def outcomes(failed: int = 0) -> dict[str, int]:
    """How many rungs end how on a good pair, or on one in which so many fail."""
    diag = sum(rung.tier == "DIAG" for rung in LADDER.rungs)
    passed = len(LADDER.rungs) - diag - len(GROUNDS) - failed
    return {"pass": passed, "fail": failed, "skip": len(GROUNDS), "blocked": 0, "diag": diag, "error": 0}


def tally(failed: int = 0) -> str:
    """`1 failed, 33 passed, 2 skipped, 4 diag`, as the report of such a pair closes."""
    counts = outcomes(failed)
    words = {"fail": "failed", "pass": "passed", "skip": "skipped", "diag": "diag"}
    return ", ".join(f"{counts[name]} {word}" for name, word in words.items() if counts[name])


@pytest.fixture
def good(tmp_path: Path) -> RunPair:
    """A pair of the exact tier that agrees in everything."""
    return write_pair(tmp_path, condition())


@pytest.fixture
def judge() -> Callable[..., Report]:
    """Check a pair as its files are now."""

    def judge(pair: RunPair, **options: Any) -> Report:
        return check(RunPair(RunDir(pair.real.path), RunDir(pair.sim.path)), LADDER, Options(**options))

    return judge
