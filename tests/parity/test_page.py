"""The HTML page: every rung has its row and its picture, differences are marked, and nothing is asked of the network."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from flame.telemetry.rundir import RunPair
from parity.cli import main
from parity.engine import Report
from parity.reports.document import document
from parity.reports.page import render, write
from parity.rungs import LADDER
from tests.parity.browser import Element, needs_browser, opened, parsed
from tests.parity.edits import Edit, Line, cycle_is
from tests.parity.fixtures import asynchronous, condition, fidelity, write_pair, write_run

Judge = Callable[..., Report]
CSS = Path(__file__).parents[2] / "parity" / "reports" / "page" / "page.css"
UNDRAWN = {"K7", "K3a", "K9", "F", "Aa", "Ovr"}
"""Rungs that tell a number alone: there is nothing to hold it against."""


def shown(*reports: Report) -> Element:
    return parsed(render(reports))


def rows(page: Element) -> dict[str, Element]:
    """Id of a rung -> its row."""
    return {row.attributes["data-rung"]: row for row in page.all("details", "rung")}


def swap(record: Line) -> None:
    cohort = record["cohort"]
    cohort[0], cohort[1] = cohort[1], cohort[0]


def test_every_rung_has_a_row_in_the_order_of_the_ladder(good: RunPair, judge: Judge) -> None:
    report = judge(good)
    found = rows(shown(report))
    by_stage = sorted(LADDER.rungs, key=lambda rung: rung.stage)
    assert list(found) == [rung.id for rung in by_stage]
    for result in report.results:
        row = found[result.rung.id]
        assert result.verdict.lower() in row.attributes["class"].split()
        assert " ".join(result.reason.split()) in row.text
        assert "What it checks" in row.text


def test_every_rung_that_looked_at_something_has_a_picture(good: RunPair, judge: Judge) -> None:
    report = judge(good)
    found = rows(shown(report))
    drawn = {key for key, row in found.items() if row.all("svg")}
    silent = {result.rung.id for result in report.results if result.verdict in ("SKIP", "BLOCKED", "ERROR")}
    assert set(found) - drawn - silent <= UNDRAWN
    assert all(found[key].one("svg").attributes["aria-label"] for key in drawn)


def test_a_failure_is_open_and_its_picture_marks_the_place(good: RunPair, judge: Judge) -> None:
    before = rows(shown(judge(good)))
    assert not any("open" in row.attributes for row in before.values())
    Edit(good.sim).each("agg_round", swap, cycle_is(5))
    found = rows(shown(judge(good)))
    assert "open" in found["L1"].attributes
    assert "root cause" in found["U5"].text
    assert len(found["L1"].all("rect", "parted-band")) == 1
    assert not before["L1"].all("rect", "parted-band")
    at_five = [rect.text for rect in found["L1"].all("rect") if rect.text.startswith("cycle 5:")]
    assert len(set(at_five)) == 2


def test_an_overlap_is_marked_in_the_lane_of_its_trainer(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).repeat("dispatch", lambda record: record["id"] == 9, id=900)
    page = shown(judge(good))
    marked = page.one("section", "timeline").all("rect", "parted-bar")
    assert len(marked) == 2
    assert all("overlaps the one before" in bar.text and bar.text.startswith("sim") for bar in marked)
    assert rows(page)["R1"].all("rect", "parted-bar")


def test_bars_of_both_runs_lie_below_each_other(good: RunPair, judge: Judge) -> None:
    timeline = shown(judge(good)).one("section", "timeline")
    places = {
        side: [(bar.attributes["x"], bar.attributes["width"]) for bar in timeline.all("rect", f"{side}-bar")] for side in ("real", "sim")
    }
    assert places["real"] == places["sim"]
    assert len(places["real"]) == good.real.telemetry.frame("dispatch").height


def test_a_long_run_is_drawn_in_part_and_says_so(tmp_path: Path, judge: Judge) -> None:
    timeline = shown(judge(write_pair(tmp_path, asynchronous(stop={"cycles": 300})))).one("section", "timeline")
    assert 1000 < len(timeline.all("rect")) <= 1210
    assert re.search(r"drawn: 0\.00 to \d+\.\d\d s of \d+\.\d\d s", timeline.text)


def test_the_distributions_of_the_fidelity_tier_are_drawn(tmp_path: Path, judge: Judge) -> None:
    pair = write_pair(tmp_path, fidelity(60), noise=(1, 2))
    Edit(pair.sim).each("accepted", lambda record: record.update(staleness=record["staleness"] + 2))
    row = rows(shown(judge(pair)))["U3"]
    assert [line.attributes["class"] for line in row.one("svg").all("polyline")] == ["ground", "real", "sim", "parted"]
    assert [cell.text for cell in row.one("table", "measures").all("th")][-2:] == ["KS", "mean staleness"]


def test_differences_of_the_conditions_are_marked(tmp_path: Path, judge: Judge) -> None:
    pair = RunPair(write_run(tmp_path, condition(), "real"), write_run(tmp_path, condition(seed=2), "sim"))
    Edit(pair.sim).stored(lambda stored: stored["libraries"].update(numpy="1.0"))
    conditions = shown(judge(pair, force=True)).one("section", "conditions")
    wrong = {row.one("th").text: [cell.text for cell in row.all("td")] for row in conditions.all("tr", "wrong")}
    assert [sorted(cell.split()) for cell in wrong["seed"]] == [["1"], ["2", "≠"]]
    assert "numpy 1.0" in wrong["libraries"][1]
    assert "goal" not in wrong
    assert any(row.one("th").text == "goal" for row in conditions.all("tr") if row.all("td"))


def test_a_good_pair_marks_nothing(good: RunPair, judge: Judge) -> None:
    page = shown(judge(good))
    assert not page.all("tr", "wrong")
    assert not [rect for rect in page.all("rect") if rect.attributes["class"].startswith("parted")]


class _Story:
    def lines(self) -> list[str]:
        return ["RACE: t3 and t1 are 2 ms apart", "hint: flame replay <run> --until 512"]


def test_a_story_has_a_section_and_without_one_there_is_none(good: RunPair, judge: Judge) -> None:
    report = judge(good)
    assert not shown(report).all("section", "story")
    report.story = _Story()  # type: ignore[assignment]
    assert [line.text for line in shown(report).one("section", "story").all("p")] == _Story().lines()


def test_text_of_telemetry_is_never_markup(good: RunPair, judge: Judge) -> None:
    evil = "\x1b\x00<script>alert(1)</script><img src=http://evil.invalid/>"
    Edit(good.sim).each("agg_round", lambda record: record.update(model=evil, reason=evil), cycle_is(5))
    Edit(good.sim).stored(lambda stored: stored["libraries"].update(evil=evil))
    page = shown(judge(good))
    assert not page.all("script")
    assert not page.all("img")
    assert "<script>alert(1)</script>" in rows(page)["L1"].text


def test_nothing_is_loaded_from_anywhere(good: RunPair, judge: Judge) -> None:
    html = render([judge(good)])
    assert not re.search(r"https?://|@import|url\(|<script|<iframe|<object", html)
    links = {*re.findall(r'(?:src|href)="([^"]*)"', html)}
    assert {link for link in links if not link.startswith("#")} == {"data:,", "parity.json"}


def test_several_pairs_share_a_page_and_a_scoreboard(tmp_path: Path, judge: Judge) -> None:
    reports = [judge(write_pair(tmp_path, condition())), judge(write_pair(tmp_path, asynchronous(baseline="fedbuff")))]
    page = parsed(render(reports, ["refused: fingerprints differ\nhint: --force"]))
    anchors = [element.attributes["id"] for element in page.all("details", "rung")]
    assert len(anchors) == len({*anchors}) == 2 * len(LADDER.rungs)
    board = page.one("section", "board")
    assert len(board.all("tr")) == 1 + len(LADDER.rungs)
    assert {link.attributes["href"] for link in board.one("tbody").all("a")} == {f"#{anchor}" for anchor in anchors}
    assert "not compared: refused: fingerprints differ" in page.text


def test_the_page_is_a_function_of_the_report(good: RunPair, judge: Judge) -> None:
    report = judge(good)
    assert render([report]) == render([replace(judge(good), seconds=report.seconds)])


@pytest.mark.parametrize(("target", "page"), [("out/page.html", "out/page.html"), ("out", "out/index.html")])
def test_the_page_and_the_document_are_written(target: str, page: str, good: RunPair, judge: Judge, tmp_path: Path) -> None:
    report = judge(good)
    assert write(tmp_path / target, [report]) == tmp_path / page
    assert (tmp_path / page).read_text(encoding="utf-8") == render([report])
    assert orjson.loads((tmp_path / "out" / "parity.json").read_bytes()) == orjson.loads(orjson.dumps(document([report])))


def test_the_command_writes_it_and_says_where(good: RunPair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(good.real.path), str(good.sim.path), "--html", str(tmp_path / "out")]) == 0
    assert f"wrote {tmp_path / 'out' / 'index.html'}" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main([str(good.real.path), str(good.sim.path), "--html", str(tmp_path / "file" / "x")]) == 2
    assert "can't be written" in capsys.readouterr().err


@needs_browser
def test_a_browser_shows_all_of_it_and_asks_the_network_for_nothing(good: RunPair, judge: Judge, tmp_path: Path) -> None:
    Edit(good.sim).each("agg_round", swap, cycle_is(5))
    report = judge(good)
    page, urls = opened(write(tmp_path / "page", [report]), tmp_path / "profile")
    assert urls == []
    found, made = rows(page), rows(shown(report))
    assert list(found) == list(made)
    assert {key for key, row in found.items() if row.all("svg")} == {key for key, row in made.items() if row.all("svg")}
    assert page.one("section", "timeline").all("svg")
    assert not page.all("script")


@needs_browser
def test_the_browser_would_tell_of_a_request(tmp_path: Path) -> None:
    (tmp_path / "leak.html").write_text('<img src="http://probe.invalid/x.png">')
    _, urls = opened(tmp_path / "leak.html", tmp_path / "profile")
    assert urls == ["http://probe.invalid/x.png"]


def palettes() -> Iterator[tuple[str, dict[str, str]]]:
    """The colours of light, and those of dark."""
    light, dark = re.findall(r":root \{(.*?)\}", CSS.read_text(encoding="utf-8"), re.DOTALL)
    for name, block in (("light", light), ("dark", dark)):
        yield name, dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("scheme", "colours"), list(palettes()))
@pytest.mark.parametrize("ground", ["paper", "card", "rail"])
def test_words_are_legible_in_light_and_dark(scheme: str, colours: dict[str, str], ground: str) -> None:
    for word in ("ink", "quiet", "real", "sim", "pass", "fail", "skip", "blocked", "diag", "error"):
        one, two = sorted((luminance(colours[word]), luminance(colours[ground])))
        assert (two + 0.05) / (one + 0.05) >= 4.5, f"{scheme}: {word} on {ground}"
