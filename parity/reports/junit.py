"""The report as JUnit XML, which the servers of continuous integration show: `flame parity --junit FILE`.

A pair is a suite and a rung a test. FAIL is `failure` (one that only warns is not), ERROR is `error`, SKIP and BLOCKED are
`skipped`; a DIAG passes, and what it says stands in its `system-out`. A pair that was refused is a suite with one error,
so that nothing to compare is never green.
"""

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from parity.engine import Report, Result
from parity.reports.printable import printable
from parity.rung import STAGES

KINDS = ("failure", "error", "skipped")


def write(target: Path, reports: Sequence[Report], refused: Sequence[str] = ()) -> None:
    """Write the suites to `target`; folders are made. refused: why pairs that were asked for weren't compared."""
    target.parent.mkdir(parents=True, exist_ok=True)
    tree = ElementTree(suites(reports, refused))
    indent(tree)
    tree.write(target, encoding="utf-8", xml_declaration=True)


def suites(reports: Sequence[Report], refused: Sequence[str] = ()) -> Element:
    """The whole tree."""
    root = Element("testsuites", name="flame parity")
    for report in reports:
        root.append(_suite(report))
    for number, reason in enumerate(refused):
        suite = SubElement(root, "testsuite", name=f"refused pair {number + 1}", time="0.000")
        case = SubElement(suite, "testcase", classname="parity", name="admission", time="0.000")
        _say(case, "error", reason.splitlines()[0], reason, type="refused")
        _count(suite)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{sum(report.seconds for report in reports):.3f}")
    return root


def _suite(report: Report) -> Element:
    condition, pair = report.pair.condition, report.pair
    name = f"{condition.baseline}_n{condition.trainers}_s{condition.seed}"
    suite = Element("testsuite", name=name, time=f"{report.seconds:.3f}")
    properties = SubElement(suite, "properties")
    known = {"tier": pair.tier, "window": str(report.window), "real": pair.real.dir.label, "sim": pair.sim.dir.label}
    for key, value in [*known.items(), *(("note", note) for note in report.notes)]:
        SubElement(properties, "property", name=key, value=printable(value))
    for result in report.results:
        suite.append(_case(result, name))
    _count(suite)
    return suite


def _case(result: Result, suite: str) -> Element:
    rung = result.rung
    where = f"parity.{suite}.{rung.stage}_{STAGES[rung.stage]}"
    case = Element("testcase", classname=where, name=f"{rung.id} {rung.name}", time="0.000")
    reason = result.reason or result.finding.reason
    more = "\n".join([reason, *result.finding.detail])
    if result.verdict == "FAIL" and not result.warn:
        blame = f"{result.role} of {', '.join(result.by)}" if result.by else str(result.role)
        _say(case, "failure", reason, more, type=blame)
    elif result.verdict == "ERROR":
        _say(case, "error", reason, more, type="ERROR")
    elif result.verdict in ("SKIP", "BLOCKED"):
        _say(case, "skipped", f"{result.verdict}: {reason}")
    elif reason:
        SubElement(case, "system-out").text = printable(f"{'only warns: ' if result.warn else ''}{more}")
    return case


def _say(case: Element, kind: str, message: str, text: str | None = None, **more: str) -> None:
    SubElement(case, kind, {"message": printable(message)} | more).text = None if text is None else printable(text)


def _count(suite: Element) -> None:
    """The counts of a suite, from its own cases: they can't disagree with them."""
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for name, kind in zip(("failures", "errors", "skipped"), KINDS, strict=True):
        suite.set(name, str(sum(case.find(kind) is not None for case in cases)))
