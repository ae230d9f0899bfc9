"""How often the ladder fails pairs that differ by chance alone, and how large a shift must be, at which n, to be caught.

    python bench/false_alarms.py LAW [--pairs 1000] [--power 20] [--cycles 60 240] [--out FILE]

LAW is a file of `flame calibrate`: the latencies of a real machine. A pair is one toy condition in arrival order,
simulated twice with two draws of that law, so that the two differ as two real runs do, and by nothing else. One plays
the real run. An enforced FAIL is a false alarm: the share of reports with one is what Holm's ALPHA promises.

Power: the series that each measure of these pairs compared, with a shift put into one of them. A mean gets a constant
added, a distribution gets a share of its values moved beyond all others, such that the effect is a multiple of the
tolerance. Of each rung's measures at each n: how many end as FAIL, and how many as PASS (missed). A shift of
exactly the tolerance is over it in half of the cases only, whatever n is: 1.5 and 2 times are told beside it.

Each pair is a line of FILE, and those that are there aren't made
again. One process.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import orjson
from scipy import stats

from flame.config import Condition, World
from flame.launch.run import run
from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import Options, Report, check
from parity.measures import statistics
from parity.measures.statistics import ALPHA, outcome
from parity.rung import Measure
from parity.rungs import LADDER

SIZES = (10, 20, 40, 80, 160, 320, 640)
"""Values a side at which power is asked."""
FACTORS = (1.0, 1.5, 2.0)
"""Shifts, in tolerances."""
OF_THE_MACHINE = ("Lt", "Sp")
"""Rungs that say of a machine by itself whether it is late (as its law is, or not), or too slow to simulate: no alarm about a pair."""

TOY: dict[str, Any] = {
    "trainers": 10, "commit_order": "arrival", "pacing": "relative", "toy": {"features": 20, "classes": 3, "samples": 64},
    "delays": {"values": [0.15, 0.2, 0.25, 0.25, 0.3, 0.3, 0.4, 0.5, 0.5, 0.6]}, "eval": {"rows": 256},
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "async": {"goal": 3, "concurrency": 6, "loop": "async", "select": "random", "commit": ["agg_goal"]},
    "sync": {
        "goal": 5, "concurrency": 5, "loop": "sync", "select": "random", "staleness": "exact", "perturb": "guided",
        "commit": [{"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 6}],
    },
    "phones": {
        "goal": 3, "concurrency": 6, "loop": "async", "select": "all", "commit": ["agg_goal"], "awareness": "notified",
        "availability": {"trace": "phone_2st", "time_scale": 6000, "abandon_s": 9000},
    },
}  # fmt: skip


class Recorded(NamedTuple):
    """A statistic that a rung asked for, with what it compared."""

    name: str
    statistic: statistics.Statistic
    real: statistics.Array
    sim: statistics.Array
    tol: float
    aligned: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """One pair: its report, and what its measures compared."""

    report: Report
    recorded: dict[str, list[Recorded]]


def condition(shape: str, cycles: int, seed: int) -> Condition:
    """The toy condition of a pair."""
    return Condition.model_validate(TOY | SHAPES[shape] | {"baseline": shape, "seed": seed, "stop": {"cycles": cycles}})


def judged(law: Path, shape: str, cycles: int, number: int) -> Judged:
    """Pair `number`: two draws of one law, one condition."""
    with TemporaryDirectory() as folder:
        worlds = [World(kind="sim", latency=str(law), draw=2 * number + side, journal=False, blobs="none") for side in (0, 1)]
        one, other = (RunDir(run(condition(shape, cycles, number + 1), world, runs=folder).path) for world in worlds)
        with recording() as recorded:
            report = check(RunPair(one, other), LADDER, Options(force=True))
        return Judged(report, _by_rung(report, recorded))


@contextmanager
def recording() -> Iterator[list[tuple[Recorded, Measure]]]:
    """Every statistic that is made meanwhile."""
    made: list[tuple[Recorded, Measure]] = []
    measure = statistics._measure

    def remember(name: str, statistic: statistics.Statistic, real: Any, sim: Any, *, tol: float, aligned: bool) -> Measure:
        done = measure(name, statistic, real, sim, tol=tol, aligned=aligned)
        made.append((Recorded(name, statistic, real, sim, tol, aligned), done))
        return done

    with patch.object(statistics, "_measure", remember):
        yield made


def _by_rung(report: Report, made: Sequence[tuple[Recorded, Measure]]) -> dict[str, list[Recorded]]:
    """Rung -> its statistics: a measure is known by its chance, which a rung that replaces the effect leaves alone."""
    of_measure = {(done.name, done.p, done.critical, done.n): recorded for recorded, done in made}
    found: dict[str, list[Recorded]] = defaultdict(list)
    for result in report.results:
        for each in result.finding.measures:
            recorded = of_measure.get((each.name, each.p, each.critical, each.n))
            if recorded is not None:
                found[result.rung.id].append(recorded)
    return found


# ---- power


def shifted(recorded: Recorded, factor: float, n: int) -> Measure:
    """The measure of the first n values a side, with a shift of `factor` tolerances put into the sim's."""
    real, sim = recorded.real[:n], recorded.sim[:n]
    if isinstance(recorded.statistic, statistics.Mean):
        sim = sim + factor * recorded.tol * recorded.statistic.scale
    else:
        moved = np.random.Generator(np.random.Philox(key=n)).permutation(n)[: round(factor * recorded.tol * n)]
        sim = sim.copy()
        sim[moved] = max(real.max(), sim.max()) + 1e3
    return statistics._measure(recorded.name, recorded.statistic, real, sim, tol=recorded.tol, aligned=recorded.aligned)


def power(pair: Judged) -> Iterator[dict[str, Any]]:
    """What becomes of a shift in each measure, at each n: the strictest step of Holm's, as if all others were nearer."""
    family = sum(len(result.finding.measures) for result in pair.report.results)
    for rung, recorded in pair.recorded.items():
        for each in recorded:
            if not each.real.std() and not each.sim.std():
                continue
            for n in (size for size in SIZES if size <= min(each.real.size, each.sim.size)):
                for factor in FACTORS:
                    measure = shifted(each, factor, n)
                    ended = {False: "FAIL", True: "PASS", None: "SKIP"}[outcome(measure, measure.p <= ALPHA / family)]
                    yield {"rung": rung, "measure": each.name, "n": n, "factor": factor, "ended": ended}


# ---- the study


def study(law: Path, shapes: Sequence[str], cycles: Sequence[int], pairs: int, powered: int, out: Path) -> None:
    """Make the pairs that `out` lacks, in turn over shapes and lengths."""
    held = lines(out)
    there = {(line["shape"], line["cycles"], line["pair"]) for line in held}
    kinds = [(shape, length) for shape in shapes for length in cycles]
    for number in range(pairs):
        shape, length = kinds[number % len(kinds)]
        if (shape, length, number) in there:
            continue
        pair = judged(law, shape, length, number)
        line = {"shape": shape, "cycles": length, "pair": number, **told(pair.report)}
        if number < powered:
            line["power"] = list(power(pair))
        with out.open("ab") as file:
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def told(report: Report) -> dict[str, Any]:
    """Verdicts of the rungs that are enforced, and what failed; apart, what the machine itself fails."""
    statistics = [result for result in report.results if result.finding.measures]
    failed = {result.rung.id: result.reason for result in report.results if result.verdict == "FAIL" and not result.warn}
    return {
        "failed": {rung: reason for rung, reason in failed.items() if rung not in OF_THE_MACHINE},
        "of_the_machine": {rung: reason for rung, reason in failed.items() if rung in OF_THE_MACHINE},
        "verdicts": Counter(result.verdict for result in report.results),
        "by_statistic": Counter(result.verdict for result in statistics),
        "measures": sum(len(result.finding.measures) for result in statistics),
    }  # fmt: skip


def lines(path: Path) -> list[dict[str, Any]]:
    """The pairs that were made."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.is_file() else []


def alarms(held: Sequence[dict[str, Any]]) -> list[str]:
    """False alarms by shape and length, as the rows of a table."""
    titles = "loop | cycles | pairs | with an enforced FAIL | share, 95 % interval | which | PASS, SKIP by statistic"
    rows = [f"| {titles} |", "|---|---|---|---|---|---|---|"]
    for key in [*sorted({(line["shape"], line["cycles"]) for line in held}), None]:
        group = [line for line in held if key is None or (line["shape"], line["cycles"]) == key]
        wrong = [line for line in group if line["failed"]]
        which = Counter(rung for line in wrong for rung in line["failed"])
        mean = [sum(line["by_statistic"].get(verdict, 0) for line in group) / len(group) for verdict in ("PASS", "SKIP")]
        names = ", ".join(f"{rung} {count}" for rung, count in which.most_common()) or "-"
        rows.append(
            f"| {' | '.join(map(str, key or ('all', '-')))} | {len(group)} | {len(wrong)} | {_share(len(wrong), len(group))} | {names} "
            f"| {mean[0]:.1f}, {mean[1]:.1f} |"
        )
    return rows


def _share(wrong: int, many: int) -> str:
    """With the exact binomial interval (Clopper and Pearson)."""
    interval = stats.binomtest(wrong, many).proportion_ci(0.95, "exact")
    return f"{wrong / many:.1%}, {interval.low:.1%} to {interval.high:.1%}"


def powers(held: Sequence[dict[str, Any]]) -> list[str]:
    """Share caught / share passed, by measure, shift and n, as the rows of a table."""
    ended: dict[tuple[str, str, float], dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for line in held:
        for each in line.get("power", ()):
            ended[each["rung"], each["measure"], each["factor"]][each["n"]][each["ended"]] += 1
    rows = [f"| rung, measure | shift | {' | '.join(f'n={size}' for size in SIZES)} |", f"|---|---|{'---|' * len(SIZES)}"]
    for (rung, measure, factor), by_n in sorted(ended.items()):
        cells = [_cell(by_n[size]) if size in by_n else "" for size in SIZES]
        rows.append(f"| {rung} {measure} | {factor:g} | {' | '.join(cells)} |")
    return rows


def _cell(ended: Counter[str]) -> str:
    total = ended.total()
    return f"{ended['FAIL'] / total:.0%} / {ended['PASS'] / total:.0%} ({total})"


def main(argv: Sequence[str] | None = None) -> int:
    """Make pairs, print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("law", type=Path, help="a file of flame calibrate")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--power", type=int, default=20, help="of how many pairs the power is asked")
    parser.add_argument("--cycles", type=int, nargs="+", default=[60, 240])
    parser.add_argument("--shapes", nargs="+", choices=tuple(SHAPES), default=list(SHAPES))
    parser.add_argument("--out", type=Path, default=Path("false_alarms.jsonl"))
    options = parser.parse_args(argv)
    study(options.law, options.shapes, options.cycles, options.pairs, options.power, options.out)
    held = lines(options.out)
    sys.stdout.write("\n".join([*alarms(held), "", *powers(held), ""]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
