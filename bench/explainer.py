"""Does the explainer name the cause and the step? Real runs on the toy, one fault injected into each.

    python -m bench.explainer [--each 10] [--causes RACE,LOST] [--runs DIR] [--broker mosquitto]

Each case is a pair: a clean simulated run, and a real one with a fault done to it from inside (`bench.harm`), to its
processes, or to its journal. The class that was injected and the step where it shows, found here by a naive reading of
both journals that shares no code with the engine, are held against the story. Half an hour on two busy cores for 50.
"""

import argparse
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

import flame
from bench import harm
from flame.config import Condition, World
from flame.launch.processes import fleet
from flame.telemetry.rundir import RunDir
from parity.evidence import Pair, Run
from parity.explainer.explain import explain
from tests.pairs.support import ASYNC, Harm, freeze_worker, kill_worker

PLAIN_MAINS = fleet.worker_main, fleet.aggregator_main

APART: dict[str, Any] = {
    "baseline": "apart", "trainers": 4, "goal": 4, "concurrency": 4, "loop": "sync", "staleness": "exact", "commit": ["agg_goal"],
    "commit_order": "arrival", "pacing": "relative", "delays": {"values": [0.6, 1.3, 2.0, 2.7]}, "stop": {"cycles": 4},
    "limits": {"resend_s": 0.5, "heartbeat_s": 0.25, "grace_s": 1.5},
}  # fmt: skip
"""Arrival order, and arrivals so far apart that only a fault can swap them; each cycle begins anew."""

QUICK: dict[str, Any] = ASYNC | {"limits": {"resend_s": 0.5, "heartbeat_s": 0.25, "grace_s": 1.5}}
"""Stamp order."""


TRIES = 5


@dataclass(frozen=True, slots=True)
class Pairing:
    """Both runs, the step of the real one where the fault shows, and one after which it was done, where that is known."""

    real: Path
    sim: Path
    step: int | None
    after: int = -1


class Study:
    """Makes pairs in one folder."""

    def __init__(self, runs: Path, broker: str) -> None:
        self.runs, self._broker = runs, broker

    def pair(self, shape: dict[str, Any], seed: int, ui: Any = None, what: Callable[[Path], dict[str, Any]] | None = None) -> Pairing:
        """A clean simulated run and a real one. what: the harm, given the simulated run."""
        condition = Condition.model_validate(shape | {"seed": seed})
        sim = flame.run(condition, World(kind="sim"), runs=self.runs).path
        done = what(sim) if what else {}
        if done:
            os.environ[harm.HARM] = orjson.dumps(done).decode()
            fleet.worker_main, fleet.aggregator_main = harm.worker, harm.aggregator
        try:
            real = flame.run(condition, World(kind="real", broker=self._broker), runs=self.runs, ui=ui).path
        finally:
            os.environ.pop(harm.HARM, None)
            fleet.worker_main, fleet.aggregator_main = PLAIN_MAINS
        step = first_step(real, sim, stamps=condition.tier == "exact", of=done.get("id")) if (real / "journal").is_dir() else None
        return Pairing(real, sim, step)

    def shown(self, cause: str, number: int) -> Pairing:
        """A pair in which the fault shows first. One in which it changed nothing (two arrivals that kept their order after
        all), or only after the load of the machine had swapped two others, or that never began, is made again.
        """
        for _ in range(TRIES):
            made: Pairing = getattr(self, cause.lower())(number)
            if made.step is not None and made.step > made.after:
                return made
            print(f"{cause:8} {number}  the fault did not show first; made again", flush=True)
        raise RuntimeError(f"{cause} {number} did not show in {TRIES} runs; see {made.real}")

    # ---- one maker a cause; `number` counts its cases

    def race(self, number: int) -> Pairing:
        """Two trainers are 4 ms apart, and the first one's update leaves 40 ms late once."""
        close = APART | {"delays": {"values": [0.6, 1.3, 1.304, 2.7]}}
        return self.pair(close, number, what=lambda sim: {"what": "hold", "id": assign(sim, "t1", number % 4), "seconds": 0.04})

    def overrun(self, number: int) -> Pairing:
        """A compute takes until after the next trainer's update."""
        node, seconds = [("t0", 1.65), ("t1", 2.35), ("t2", 3.05)][number % 3]
        return self.pair(APART, number, what=lambda sim: {"what": "sleep", "id": assign(sim, node, number % 4), "seconds": seconds})

    def lost(self, number: int) -> Pairing:
        """An update never gets through: the others go on without it (arrival order), or wait until the ceiling (stamp order)."""
        if number % 2:
            shape, cycle = QUICK | {"stop": {"cycles": 20, "wall_s": 45.0}}, number
            return self.pair(shape, number, what=lambda sim: {"what": "drop", "id": accepted(sim, cycle, 1)})
        shape = APART | {"goal": 3, "delays": {"values": [0.6, 1.3, 2.0, 4.95]}, "stop": {"cycles": 4, "wall_s": 60.0}}
        return self.pair(shape, number, what=lambda sim: {"what": "drop", "id": accepted(sim, 1 + number % 3, number // 2 % 2)})

    def fault(self, number: int) -> Pairing:
        """A worker is killed or frozen: for good (stamp order), or until it is started again (arrival order)."""
        if number % 2:
            shape = QUICK | {"limits": QUICK["limits"] | {"respawns": 0}, "goal": 2, "concurrency": 4}
            ui = Harm(self.runs, 2 + number, kill_worker)
        else:
            shape, ui = APART, Harm(self.runs, 1 + number % 3, freeze_worker)  # one that is killed is back too soon to swap anything
        made = self.pair(shape, number, ui)
        return made if made.step is None else replace(made, after=closing(made.real, ui.at))

    def logic(self, number: int) -> Pairing:
        """A choice that is no function of its view; a result that is none of its task; an effect that was not the machine's."""
        if number % 3 == 0:
            return self.pair(QUICK, number, what=lambda sim: {"what": "choose", "call": 4 + number})
        if number % 3 == 1:
            return self.pair(QUICK, number, what=lambda sim: {"what": "round", "id": accepted(sim, number, 0)})
        clean = self.pair(QUICK, number)
        return Pairing(clean.real, clean.sim, forge(clean.real, 5 + number))


# ---- who is harmed


def records(run: Path, kind: str) -> list[dict[str, Any]]:
    """The records of a kind, in order of writing."""
    found = [orjson.loads(line)["record"] for file in (run / "telemetry").glob("*.jsonl") for line in file.read_bytes().splitlines()]
    return [record for record in found if record["kind"] == kind]


def assign(sim: Path, node: str, cycle: int) -> int:
    """The id of that trainer's assign in that cycle."""
    return next(each["id"] for each in records(sim, "dispatch") if each["trainer"] == node and each["at"]["cycle"] == cycle)


def accepted(sim: Path, cycle: int, place: int) -> int:
    """The id of an update that is accepted in that cycle."""
    return [each["id"] for each in records(sim, "accepted") if each["at"]["cycle"] == cycle and each["accepted"]][place]


# ---- where the fault shows, read naively


def journal(run: Path) -> list[dict[str, Any]]:
    """The aggregator's steps."""
    path = next(path for path in (run / "journal").iterdir() if path.name.startswith(("aggregator", "sim")))
    steps = [orjson.loads(line)["step"] for line in path.read_bytes().splitlines()[1:]]
    return [step for step in steps if step["node"] == "aggregator"]


def closing(run: Path, cycles: int) -> int:
    """The step at which that many cycles had closed."""
    closes = (
        step["seq"] for step in journal(run) for effect in step["effects"] or [] if effect.get("record", {}).get("kind") == "agg_round"
    )
    return next(islice(closes, cycles - 1, None))


def first_step(real: Path, sim: Path, stamps: bool, of: int | None = None) -> int | None:
    """The real run's step of the first release, intrusion, chosen cohort or update that the simulated one hasn't in that place.

    None where there is no such step, and where the simulated run has another update there than `of`, the one that was harmed.
    """
    mine, theirs = list(_happened(journal(real), stamps)), list(_happened(journal(sim), stamps))
    for one, two in zip_longest(mine, theirs):
        if one is None or two is None or one[1] != two[1]:
            harmed = of is None or (two is not None and isinstance(two[1], tuple) and two[1][3] == of)
            return None if not harmed else one[0] if one is not None else journal(real)[-1]["seq"]
    return None


def _happened(steps: list[dict[str, Any]], stamps: bool) -> Iterator[tuple[int, Any]]:
    brought: dict[int, Any] = {}
    for step in steps:
        event = step["event"]
        if event["kind"] == "received":
            brought[event["msg"]["id"]] = event["msg"]["payload"]
        if event["kind"] in ("peer_down", "stop_asked"):
            yield step["seq"], event["kind"]
        for stamp, rank, node, number in step["released"]:
            if stamps or rank == 5:
                yield step["seq"], (stamp if stamps else None, rank, node, number, brought.get(number) if rank == 5 else None)
        for effect in step["effects"] or []:
            if effect["kind"] == "emit" and effect["record"]["kind"] == "selection":
                yield step["seq"], effect["record"]["chosen"]


def forge(run: Path, number: int) -> int:
    """Rewrite what the `number`th sending step of a journal did, its chain included. Returns the step."""
    path = run / "journal" / "aggregator-1.jsonl"
    header, *lines = path.read_bytes().splitlines(keepends=True)
    steps = [orjson.loads(line)["step"] for line in lines]
    forged = [step for step in steps if any(effect["kind"] == "send" for effect in step["effects"] or [])][number]
    next(effect for effect in forged["effects"] if effect["kind"] == "send")["msg"]["draw"] += 1
    chain, out = b"", [header]
    for step in steps:
        line = orjson.dumps(step)
        chain = blake2b(chain + line, digest_size=8).digest()
        out.append(b'{"step":' + line + b',"chain":"' + chain.hex().encode() + b'"}\n')
    path.write_bytes(b"".join(out))
    return int(forged["seq"])


# ---- the study


def main() -> None:
    """Print a line a case, and the sums."""
    asked = _flags()
    right = exact = cases = 0
    with TemporaryDirectory() as folder:
        study = Study(asked.runs or Path(folder), asked.broker)
        for cause in asked.causes.split(","):
            for number in range(asked.first, asked.first + asked.each):
                made = study.shown(cause, number)
                story = explain(Pair(Run("real", RunDir(made.real)), Run("sim", RunDir(made.sim))))
                named, step = (story.cause, story.step) if story else (None, None)
                right, exact, cases = right + (named == cause), exact + (step == made.step), cases + 1
                print(f"{cause:8} {number}  told {named}  step {step}, true {made.step}{_wrong(cause, named, step, made)}", flush=True)
                if asked.runs is None and named == cause and step == made.step:
                    for path in (made.real, made.sim):
                        shutil.rmtree(path)
    print(f"\n{right} of {cases} classes right, {exact} of {cases} steps exact")


def _wrong(cause: str, named: str | None, step: int | None, made: Pairing) -> str:
    return "" if (named, step) == (cause, made.step) else f"   WRONG {made.real}"


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Whether the explainer names the cause and the step.")
    parser.add_argument("--each", type=int, default=10, help="cases of each cause")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--causes", default="RACE,OVERRUN,LOST,FAULT,LOGIC")
    parser.add_argument("--runs", type=Path, help="keep the runs there")
    parser.add_argument("--broker", default="mosquitto" if shutil.which("mosquitto") else "embedded")
    return parser.parse_args()


if __name__ == "__main__":
    main()
