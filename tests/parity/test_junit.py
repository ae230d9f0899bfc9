"""JUnit XML: what a server of continuous integration counts is what the report counts."""

from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element, parse

import pytest

from flame.telemetry.rundir import RunPair
from parity.cli import main
from parity.engine import Report
from parity.reports.junit import suites, write
from parity.rungs import LADDER
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import asynchronous, condition, write_pair, write_run

Judge = Callable[..., Report]


def cases(suite: Element) -> dict[str, Element]:
    """Id of a rung -> its test."""
    return {case.attrib["name"].split()[0]: case for case in suite.iter("testcase")}


def test_counts_are_those_of_the_report(good: RunPair, judge: Judge) -> None:
    report = judge(good)
    (suite,) = suites([report])
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == [
        str(len(LADDER.rungs)), "0", "0", str(report.count("SKIP") + report.count("BLOCKED")),
    ]  # fmt: skip
    assert list(cases(suite)) == [rung.id for rung in LADDER.rungs]


def test_a_failure_names_its_blame_and_has_its_evidence(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).each("agg_round", lambda record: record.update(model="[x]\x1b\x00", variance=0.25), cycle_is(5))
    (suite,) = suites([judge(good)])
    told = {key: case.find("failure") for key, case in cases(suite).items()}
    failed = {key: failure for key, failure in told.items() if failure is not None}
    assert set(failed) == {"L1", "V2"}
    assert failed["L1"].get("type") == "ROOT-CAUSE"
    assert failed["V2"].get("type") == "DOWNSTREAM of L1"
    assert "first at cycle 5" in failed["L1"].get("message", "")
    assert "sim [x]��" in (failed["L1"].text or "")
    assert suite.get("failures") == "2"


def test_what_could_not_be_looked_at_is_skipped_and_why(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).set("agg_round", committed=False)
    skipped = {key: case.find("skipped") for key, case in cases(suites([judge(good)])[0]).items()}
    assert skipped["C2"] is not None
    assert skipped["C2"].get("message", "").startswith("BLOCKED: empty window")
    assert skipped["C2w"] is not None
    assert skipped["C2w"].get("message", "").startswith("SKIP: ")


def test_a_failure_that_only_warns_is_none(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).verdict(wall_s=40.0)
    assert suites([judge(good)])[0].get("failures") == "1"
    (suite,) = suites([judge(good, lenient=True)])
    assert suite.get("failures") == "0"
    assert (cases(suite)["Sp"].findtext("system-out") or "").startswith("only warns: ")


def test_a_pair_that_was_refused_is_an_error(tmp_path: Path) -> None:
    paths = [str(write_run(tmp_path, condition(seed=seed), kind).path) for seed, kind in ((1, "real"), (2, "sim"))]  # type: ignore[arg-type]
    assert main([*paths, "--junit", str(tmp_path / "ci" / "parity.xml")]) == 2
    root = parse(tmp_path / "ci" / "parity.xml").getroot()
    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    assert "fingerprints differ" in (root.findtext(".//error") or "")


def test_pairs_are_suites_and_their_tests_have_names_of_their_own(tmp_path: Path, judge: Judge) -> None:
    pairs = [write_pair(tmp_path, each) for each in (condition(), condition(seed=2), asynchronous(baseline="fedbuff"))]
    write(tmp_path / "all.xml", [judge(pair) for pair in pairs])
    root = parse(tmp_path / "all.xml").getroot()
    assert [suite.get("name") for suite in root] == ["fwdllm_n4_s1", "fwdllm_n4_s2", "fedbuff_n6_s1"]
    named = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(named) == len({*named}) == 3 * len(LADDER.rungs)
    for name in ("tests", "failures", "errors", "skipped"):
        assert root.get(name) == str(sum(int(suite.get(name, "0")) for suite in root))


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_it_is_written_beside_any_report(options: list[str], good: RunPair, tmp_path: Path) -> None:
    assert main([str(good.real.path), str(good.sim.path), "--junit", str(tmp_path / "x.xml"), *options]) == 0
    assert parse(tmp_path / "x.xml").getroot().get("failures") == "0"
