"""Rungs from outside the tree: tried after the ladder, and refused with a reason."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flame.telemetry.rundir import RunPair
from parity.cli import main
from tests.parity.edits import Edit, cycle_is

Capture = pytest.CaptureFixture[str]

GUESTS = '''
from parity.rung import EXACT, LOGICAL, failed, passed, rung


def declared(id, upstream):
    @rung(id=id, name=id.lower(), stage=7, tier=EXACT, domain=LOGICAL, needs=["agg_round.grad_norm"], upstream=upstream, over="cycles")
    def guest(pair, window):
        """The longest G is as long in both."""
        real, sim = (window.in_cycles(run.rounds)["grad_norm"].max() for run in pair.runs)
        return passed(f"longest G {real}") if real == sim else failed(f"longest G {real} and {sim}")

    return guest


longest, after = declared("Q1", ["L1"]), declared("Q2", ["Q1"])
again, lost = declared("L1", []), declared("Q3", ["Q9"])
number = 7
'''


@pytest.fixture
def pair(good: RunPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A folder with `guests.py` in it, and the two runs of a good pair."""
    (tmp_path / "guests.py").write_text(GUESTS)
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    importlib.invalidate_caches()
    yield [str(good.real.path), str(good.sim.path)]
    sys.modules.pop("guests", None)


def passed(report: str) -> int:
    """How many rungs."""
    (count,) = re.findall(r"^(\d+) passed", report, re.MULTILINE)
    return int(count)


def test_guests_are_tried_after_the_ladder(pair: list[str], capsys: Capture) -> None:
    assert main(pair) == 0
    alone = passed(capsys.readouterr().out)
    assert main([*pair, "--rung", "guests:longest", "--rung", "guests:after"]) == 0
    assert passed(capsys.readouterr().out) == alone + 2


def test_a_guest_can_fail_and_be_blamed_like_any_other(good: RunPair, pair: list[str], capsys: Capture) -> None:
    Edit(good.sim).set("agg_round", cycle_is(3), grad_norm=1e9)
    assert main([*pair, "--rung", "guests:longest", "--rung", "guests:after"]) == 1
    out = capsys.readouterr().out
    assert "FAIL    Q1" in out
    assert "and 1000000000.0" in out
    assert any("Q2" in line and "DOWNSTREAM" in line for line in out.splitlines())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("longest", "`longest` names no rung"),
        ("guests:", "names no rung"),
        ("guest:longest", "there is no module `guest`"),
        ("broken:x", "`broken` can't be imported: ZeroDivisionError"),
        ("guests:longst", "isn't there\nhint: did you mean `longest`?"),
        ("guests:number", "is no rung\nhint: "),
        ("guests:again", "two rungs have the same id"),
        ("guests:lost", "upstream `Q9` is no rung"),
    ],
)
def test_what_is_no_rung_is_refused(name: str, why: str, pair: list[str], capsys: Capture) -> None:
    assert main([*pair, "--rung", name]) == 2
    out, err = capsys.readouterr()
    assert why in err
    assert out == ""
