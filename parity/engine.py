"""Runs the ladder over a pair: causal order, verdicts, and who is to blame.

1. The pair is admitted: one fingerprint, or `--force`. A refusal is no verdict, it is an error.
2. The window is taken; the kinds that the rungs need are read in one pass a side.
3. Each rung is tried in causal order. A need that is absent is SKIP and named. An empty window or an
   upstream that broke is BLOCKED. A rung that raises is ERROR: the checker broke, not the run.
4. Measures of the fidelity tier are judged together (Holm), because twenty tests at one level find
   something in equal runs. What replicates show among themselves (`parity.floor`) is no failure.
5. Blame: a FAIL with a failed transitive upstream is DOWNSTREAM, any other ROOT-CAUSE.
6. Where a sequence differs, or an intrusion cut the window, the explainer says where the runs part, and why.
"""

import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter

from flame.config.errors import ConfigError
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir, RunPair
from parity.evidence import Pair, Run, Window, kinds_of, window_of
from parity.explainer.explain import SEQUENCES, explain
from parity.explainer.story import Story
from parity.floor import NONE, Floor
from parity.ladder import Ladder
from parity.measures.statistics import ALPHA, holm, outcome
from parity.rung import DIAG, DIST, LOGICAL, Finding, Measure, Role, Rung, Tier, VerdictName, headline, skipped

READ_ALWAYS = ("agg_round", "intrusion", "run_meta")


class RefusedError(Exception):
    """A pair that may not be compared. str() says why, and what would lift it."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to judge. strict: DIAG rungs that have an opinion are enforced. lenient: statistics only warn."""

    max_bin: int | None = None
    strict: bool = False
    lenient: bool = False
    force: bool = False


@dataclass(slots=True)
class Result:
    """One rung's verdict. by: the failed or broken upstreams, nearest the ground first. warn: a failure that isn't enforced.

    floor: the headline number's worst among replicates, where there are some.
    """

    rung: Rung
    tier: Tier
    verdict: VerdictName
    finding: Finding
    reason: str
    role: Role | None = None
    by: tuple[str, ...] = ()
    warn: bool = False
    floor: float | None = None


@dataclass(slots=True)
class Report:
    """The ladder of one pair. notes: what a reader must know before believing any of it. story: where and why the runs part."""

    pair: Pair
    window: Window
    results: list[Result]
    notes: list[str]
    floor: Floor = NONE
    seconds: float = 0.0
    story: Story | None = None

    def count(self, verdict: VerdictName) -> int:
        """How many rungs ended so."""
        return sum(result.verdict == verdict for result in self.results)

    def of(self, id: str) -> Result:
        """The result of rung `id`. Raises KeyError when it isn't in the ladder."""
        found = {result.rung.id: result for result in self.results}
        return found[id]

    @property
    def exit_code(self) -> int:
        """0: every enforced rung passed. 1: one failed. 2: the checker broke, or there was nothing to compare."""
        if self.count("ERROR") or self.window.cycles == 0:
            return 2
        return 1 if any(result.verdict == "FAIL" and not result.warn for result in self.results) else 0


def check(pair: RunPair, ladder: Ladder, options: Options | None = None, floor: Floor = NONE) -> Report:
    """The report of one pair, held against a floor. Raises RefusedError, or TelemetryError when its telemetry can't be read."""
    start, options = perf_counter(), options or Options()
    evidence = Pair(Run("real", pair.real), Run("sim", pair.sim))
    notes = _admit(evidence, options)
    gather(evidence, ladder)
    notes += [f"{run.side}: torn last line dropped in {name}" for run in evidence.runs for name in sorted(run.dir.telemetry.torn)]
    window = window_of(evidence, options.max_bin)
    results: dict[str, Result] = {}
    for rung in ladder.rungs:
        results[rung.id] = _try(rung, evidence, window, [results[above] for above in ladder.upstream(rung.id)])
    report = Report(evidence, window, list(results.values()), notes, floor)
    _judge_measures(report)
    _judge_numbers(report)
    _enforce(report, options)
    _blame(report, ladder)
    _explain(report)
    report.seconds = perf_counter() - start
    return report


def gather(pair: Pair, ladder: Ladder) -> None:
    """Read what the rungs look at, in one pass a side, both sides at once."""
    kinds = sorted(set(READ_ALWAYS).union(*(kinds_of(rung.needs) | set(rung.reads) for rung in ladder.rungs)))
    with ThreadPoolExecutor(len(pair.runs)) as pool:
        for _ in pool.map(lambda run: run.dir.telemetry.load(*kinds), pair.runs):
            pass


def statistical(rung: Rung, pair: Pair) -> bool:
    """Whether a statistic with a tolerance judges the rung in this pair, rather than equality or a law."""
    return rung.tier_in(pair.tier) == DIST and not (pair.exact and rung.domain == LOGICAL)


def _admit(pair: Pair, options: Options) -> list[str]:
    """Notes about the pair. Raises RefusedError for one that may not be compared."""
    notes: list[str] = []
    if pair.real.dir.run_fp != pair.sim.dir.run_fp:
        where = _differing(pair.real.condition.model_dump(), pair.sim.condition.model_dump())
        _refuse_or_note(f"fingerprints differ: real {pair.real.dir.run_fp}, sim {pair.sim.dir.run_fp}; {where}", options, notes)
    for run in pair.runs:
        if run.dir.world.kind != run.side:
            _refuse_or_note(f"`{run.dir.label}` stands for {run.side} and is a {run.dir.world.kind} run", options, notes)
        if (disagreement := run.dir.disagreement()) is not None:
            _refuse_or_note(disagreement, options, notes)
        if not run.dir.ended:
            notes.append(f"{run.side} has no verdict: it is still going, or crashed; the window is what it has written so far")
    return notes


def _differing(real: Mapping[str, object], sim: Mapping[str, object]) -> str:
    """The fields in which two conditions differ, with both values."""
    wrong = [f"`{key}` real {real[key]} sim {sim.get(key)}" for key in real if real[key] != sim.get(key)]
    return ", ".join(wrong[:5]) or "their conditions are equal as this version reads them"


def _refuse_or_note(what: str, options: Options, notes: list[str]) -> None:
    if not options.force:
        raise RefusedError(f"refused: {what}\nhint: --force compares them all the same, and says so")
    notes.append(f"FORCED: {what}")


def _try(rung: Rung, pair: Pair, window: Window, upstream: Sequence[Result]) -> Result:
    """One rung's finding, before measures are judged together."""
    broken = tuple(result.rung.id for result in upstream if result.verdict == "ERROR")
    if broken:
        return Result(rung, rung.tier_in(pair.tier), "BLOCKED", Finding(None), f"by {', '.join(broken)}", by=broken)
    return attempt(rung, pair, window)


def attempt(rung: Rung, pair: Pair, window: Window) -> Result:
    """What the rung by itself says of a pair; its measures are not judged yet."""
    tier = rung.tier_in(pair.tier)
    if window.is_empty(rung.over):
        what = "no cycle was closed in both runs" if rung.over == "cycles" else "no bin was completed in both runs"
        return Result(rung, tier, "BLOCKED", Finding(None), f"empty window: {what}")
    try:
        absent = pair.lacking(rung.needs, rung.reads)
        finding = Finding(None, absent, skip=True) if absent else rung.check(pair, window)
    except TelemetryError:
        raise
    except ConfigError as error:  # a rung asked for the condition's traces or devices, and their file isn't here
        finding = skipped(f"its condition can't be read here: {error.what}")
    except Exception as error:  # the boundary: whatever a rung raises is a verdict on the checker
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        return Result(rung, tier, "ERROR", Finding(None), reason)
    return Result(rung, tier, _verdict(tier, finding), finding, finding.reason)


def _verdict(tier: Tier, finding: Finding) -> VerdictName:
    if finding.skip:
        return "SKIP"
    if tier == DIAG or finding.ok is None:
        return "DIAG"
    return "PASS" if finding.ok else "FAIL"


def _judge_measures(report: Report) -> None:
    """Give the rungs with measures their verdict, all of them in one step of Holm."""
    judged = [result for result in report.results if result.finding.measures and result.tier != DIAG]
    rejected = iter(holm([measure.p for result in judged for measure in result.finding.measures]))
    for result in judged:
        measures = result.finding.measures
        noise = [report.floor.of(result.rung, measure) for measure in measures]
        outcomes = [outcome(measure, next(rejected), floor or 0.0) for measure, floor in zip(measures, noise, strict=True)]
        ok = False if False in outcomes else None if None in outcomes else True
        place = measures.index(headline(measures)) if ok else outcomes.index(ok)
        worst, result.floor = measures[place], noise[place]
        result.verdict = "SKIP" if ok is None else "PASS" if ok else "FAIL"
        result.reason = "; ".join(filter(None, (_told(worst, ok, result.floor), result.finding.reason)))
        result.finding = replace(result.finding, effect=worst.effect, tol=worst.tol, n=worst.n)


def _told(measure: Measure, ok: bool | None, floor: float | None) -> str:
    beside = "" if floor is None else f", floor {floor:.3f}"
    if ok is None and floor is not None and floor >= max(measure.tol, measure.effect):
        return f"replicates are {floor:.3f} apart: no shift of {measure.tol:.2f} can be told ({measure.name} {measure.effect:.3f})"
    if ok is None:
        return f"n={measure.n}, needs {measure.needs} to see {measure.tol:.2f} ({measure.name} {measure.effect:.3f}{beside})"
    sign = "<=" if ok else ">"
    known = f"n={measure.n}, critical {measure.critical:.3f} at {ALPHA}{beside}"
    return f"{measure.name} {measure.effect:.3f} {sign} {measure.tol:.2f} ({known})"


def _judge_numbers(report: Report) -> None:
    """Hold statistics that are a single number against the floor. A tolerance of 0 is a law, and stays one."""
    for result in report.results:
        effect, tol, ok = result.finding.effect, result.finding.tol, result.finding.ok
        if result.finding.measures or ok is None or effect is None or not tol or not statistical(result.rung, report.pair):
            continue
        floor = result.floor = report.floor.of_number(result.rung, effect, tol, ok)
        if floor is None:
            continue
        if not ok and (floor - effect) * (effect - tol) >= 0:
            result.verdict, result.reason = "SKIP", f"replicates are as far apart, {floor:.3f}: {result.reason}"
        elif ok and (floor - tol) * (tol - effect) > 0:
            result.verdict, result.reason = "SKIP", f"replicates are {floor:.3f} apart, beyond {tol:.2f}: {result.reason}"


def _enforce(report: Report, options: Options) -> None:
    """Apply --strict and --lenient."""
    for result in report.results:
        opinion = result.finding.ok
        if options.strict and result.verdict == "DIAG" and opinion is not None:
            result.verdict = "PASS" if opinion else "FAIL"
        result.warn = options.lenient and result.verdict == "FAIL" and statistical(result.rung, report.pair)


def _blame(report: Report, ladder: Ladder) -> None:
    failing = {result.rung.id for result in report.results if result.verdict == "FAIL"}
    for result in report.results:
        if result.verdict == "FAIL":
            result.by = tuple(above for above in ladder.upstream(result.rung.id) if above in failing)
            result.role = "DOWNSTREAM" if result.by else "ROOT-CAUSE"


def _explain(report: Report) -> None:
    """Tell the story of a pair whose sequences differ. An explainer that breaks is a note: the verdicts stand."""
    differ = any(result.rung.id in SEQUENCES and result.finding.ok is False for result in report.results)
    if not differ and report.window.cut is None:
        return
    try:
        report.story = explain(report.pair)
    except TelemetryError:
        raise
    except Exception as error:  # the boundary, as for a rung
        where = traceback.extract_tb(error.__traceback__)[-1]
        report.notes.append(f"the explainer broke: {type(error).__name__}: {error} ({where.name}, line {where.lineno})")


def pair_of(real: RunDir, sim: RunDir) -> RunPair:
    """A pair of two directories, in the roles that their worlds give them (as given, when the worlds don't say)."""
    if (real.world.kind, sim.world.kind) == ("sim", "real"):
        real, sim = sim, real
    return RunPair(real, sim)
