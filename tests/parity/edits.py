"""Edits to the files of a run: one thing is spoiled, everything else stays."""

from collections.abc import Callable
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import orjson

from flame.telemetry.records import Record
from flame.telemetry.rundir import RunDir

Line = dict[str, Any]


class Edit:
    """Changes to the files of one run. Frames that were read before don't see them."""

    def __init__(self, run: RunDir) -> None:
        self.path = run.path

    def lines(self, change: Callable[[list[Line]], list[Line]]) -> None:
        """Rewrite each telemetry file through `change`."""
        for file in sorted((self.path / "telemetry").glob("*.jsonl")):
            lines = [orjson.loads(text) for text in file.read_bytes().splitlines()]
            file.write_bytes(b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in change(lines)))

    def each(self, kind: str, change: Callable[[Line], None], where: Callable[[Line], bool] = lambda record: True) -> None:
        """Change the records of `kind` for which `where` holds, in place."""

        def apply(lines: list[Line]) -> list[Line]:
            for line in lines:
                if line["record"]["kind"] == kind and where(line["record"]):
                    change(line["record"])
            return lines

        self.lines(apply)

    def set(self, kind: str, where: Callable[[Line], bool] = lambda record: True, **values: Any) -> None:
        """Set fields of the records of `kind`."""
        self.each(kind, lambda record: record.update(values), where)

    def drop(self, kind: str, where: Callable[[Line], bool] = lambda record: True) -> None:
        """Remove records of `kind`."""
        self.lines(lambda lines: [line for line in lines if line["record"]["kind"] != kind or not where(line["record"])])

    def forget(self, kind: str, name: str) -> None:
        """Remove a field from every record of `kind`."""
        self.each(kind, lambda record: record.pop(name, None))

    def repeat(self, kind: str, where: Callable[[Line], bool], **values: Any) -> None:
        """Write a record of `kind` once more, right after itself, with other values; what follows is numbered anew."""

        def apply(lines: list[Line]) -> list[Line]:
            out: list[Line] = []
            for line in lines:
                out.append(line)
                if line["record"]["kind"] == kind and where(line["record"]):
                    out.append(line | {"record": line["record"] | values})
            return renumber(out)

        self.lines(apply)

    def add(self, record: Record, after: Callable[[Line], bool]) -> None:
        """Write a new record of the aggregator after the first line for which `after` holds."""

        def apply(lines: list[Line]) -> list[Line]:
            place = next((number for number, line in enumerate(lines) if after(line["record"])), None)
            if place is None:
                return lines
            fresh = lines[place] | {"record": orjson.loads(orjson.dumps(asdict(record)))}
            return renumber([*lines[: place + 1], fresh, *lines[place + 1 :]])

        self.lines(apply)

    def swap(self, kind: str, one: int, two: int) -> None:
        """Exchange the places of two records of `kind`, by their ids."""

        def apply(lines: list[Line]) -> list[Line]:
            found = {line["record"]["id"]: place for place, line in enumerate(lines) if line["record"]["kind"] == kind}
            if one in found and two in found:
                first, second = found[one], found[two]
                lines[first], lines[second] = lines[second], lines[first]
            return renumber(lines)

        self.lines(apply)

    def steps(self, change: Callable[[list[Line]], Any]) -> None:
        """Change the steps of the first journal, and chain them anew: what a machine that isn't a function would write."""
        file = sorted((self.path / "journal").glob("*.jsonl"))[0]
        header, *lines = file.read_bytes().splitlines()
        steps = [orjson.loads(line)["step"] for line in lines]
        change(steps)
        chain, out = b"", [header]
        for step in steps:
            line = orjson.dumps(step)
            chain = blake2b(chain + line, digest_size=8).digest()
            out.append(b'{"step":' + line + b',"chain":"' + chain.hex().encode() + b'"}')
        file.write_bytes(b"\n".join(out) + b"\n")

    def verdict(self, **values: Any) -> None:
        """Change verdict.json."""
        self._json("verdict.json", lambda stored: stored.update(values))

    def stored(self, change: Callable[[Line], None]) -> None:
        """Change condition.json."""
        self._json("condition.json", change)

    def _json(self, name: str, change: Callable[[Line], Any]) -> None:
        stored = orjson.loads((self.path / name).read_bytes())
        change(stored)
        (self.path / name).write_bytes(orjson.dumps(stored))


def renumber(lines: list[Line]) -> list[Line]:
    """Give the lines of each node consecutive numbers again."""
    seen: dict[str, int] = {}
    for line in lines:
        line["seq"] = seen[line["node"]] = seen.get(line["node"], -1) + 1
    return lines


def cycle_is(number: int) -> Callable[[Line], bool]:
    """Whether a record belongs to that cycle."""
    return lambda record: record.get("at", {}).get("cycle") == number
