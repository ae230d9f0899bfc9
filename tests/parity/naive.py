"""What the rungs compute over columns, once more over plain rows: slow, obvious, and written without a look at the other.

A run is a `Table`: kind -> rows as dictionaries. Each function gives what its namesake in `parity` says, word for word.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from itertools import pairwise
from operator import itemgetter, xor
from typing import Any

from flame.core.trace import Trace

Row = dict[str, Any]
Table = dict[str, list[Row]]


@dataclass
class Assign:
    """One row of the ledger. ends: (ending, seq, cycle). accepts: seqs."""

    row: Row
    ends: list[tuple[str, int, int]] = field(default_factory=list)
    accepts: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return self.row[name]


@dataclass
class Books:
    """The ledger: rows by id, ids that were dispatched again, ends of nothing."""

    rows: dict[int, Assign] = field(default_factory=dict)
    twice: list[int] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)


def rounds(table: Table) -> list[Row]:
    """The closes, by cycle."""
    return sorted(table["agg_round"], key=itemgetter("cycle"))


def books(table: Table) -> Books:
    """The ledger, one record after another."""
    found = Books()
    for row in sorted(table["dispatch"], key=itemgetter("_seq")):
        if row["id"] in found.rows:
            found.twice.append(row["id"])
        else:
            found.rows[row["id"]] = Assign(row)
    for row in table["accepted"]:
        assign = found.rows.get(row["id"])
        if assign is None:
            found.strays.append(f"cycle {row['cycle']}: release of id {row['id']}, which was never dispatched")
        elif row["accepted"]:
            assign.accepts.append(row["_seq"])
        else:
            assign.ends.append(("reject", row["_seq"], row["cycle"]))
    for ending, key, seq, cycle in _ends(table):
        if key in found.rows:
            found.rows[key].ends.append((ending, seq, cycle))
        else:
            found.strays.append(f"cycle {cycle}: {ending} of id {key}, which was never dispatched")
    for left in (row for row in table["peer"] if row["planned"] and not row["up"]):
        _void(found, left)
    return found


def _void(found: Books, left: Row) -> None:
    """Whoever leaves takes its open row along."""
    for assign in found.rows.values():
        if assign.trainer == left["node"] and assign._seq < left["_seq"] and not assign.ends and not assign.accepts:
            assign.ends.append(("void", left["_seq"], assign.cycle))


def _ends(table: Table) -> Iterator[tuple[str, int, int, int]]:
    for row in rounds(table):
        yield from (("close", member["id"], row["_seq"], row["cycle"]) for member in row["cohort"])
    for row in table["intrusion"]:
        yield from (("void", key, row["_seq"], row["cycle"]) for key in row["voided"])


def _free_from(table: Table, assign: Assign) -> int | None:
    """The earliest seq at which the assign's node may be free again."""
    if assign.accepts:
        return next((seq for seq in sorted(row["_seq"] for row in table["agg_round"]) if seq > assign.accepts[0]), None)
    return min((seq for _, seq, _ in assign.ends), default=None)


def overlaps(table: Table) -> list[str]:
    """R1."""
    known, by_trainer = books(table), defaultdict[str, list[Assign]](list)
    for assign in sorted(known.rows.values(), key=lambda assign: assign._seq):
        by_trainer[assign.trainer].append(assign)
    pairs = [pair for rows in by_trainer.values() for pair in pairwise(rows)]
    wrong = [(before, row) for before, row in pairs if (free := _free_from(table, before)) is None or free > row._seq]
    told = [
        f"cycle {row.cycle}: `{row.trainer}` got id {row.id} while id {before.id} (of cycle {before.cycle}) was open"
        for before, row in sorted(wrong, key=lambda pair: pair[1]._seq)
    ]
    return [*(f"id {key} was dispatched twice" for key in known.twice), *told]


def conservation(table: Table) -> list[str]:
    """U4, of the exact tier."""
    known = books(table)
    every = list(known.rows.values())
    closed = [row for row in every if any(ending == "close" for ending, _, _ in row.ends)]
    last = max((row.accepts[0] for row in closed if row.accepts), default=-1)
    frontier = max((row["stamp_ns"] for row in table["agg_round"]), default=None)
    faults = []
    for close in rounds(table):
        if len(close["cohort"]) != close["goal"]:
            faults.append(f"cycle {close['cycle']} closed with {len(close['cohort'])} accepts, K = {close['goal']}")
        twice = Counter(member["trainer"] for member in close["cohort"])
        faults += [f"cycle {close['cycle']} counts `{trainer}` {times} times" for trainer, times in twice.items() if times > 1]
    faults += known.strays
    for row in every:
        if len(row.ends) > 1:
            told = ", ".join(f"{ending} in cycle {cycle}" for ending, _, cycle in row.ends)
            faults.append(f"id {row.id} of `{row.trainer}` ended {len(row.ends)} times: {told}")
        if len(row.accepts) > 1:
            faults.append(f"id {row.id} of `{row.trainer}` was accepted {len(row.accepts)} times")
    for row in every:
        if row in closed and not row.accepts:
            faults.append(f"id {row.id} of `{row.trainer}` is in cycle {row.ends[0][2]} and was never accepted")
        if row.accepts and not row.ends and row.accepts[0] < last:
            faults.append(f"id {row.id} of `{row.trainer}` was accepted and is in no cycle")
    for row in every:
        if not row.ends and not row.accepts and frontier is not None and row.due_ns < frontier:
            told = f"due at {row.due_ns / 1e9:.6f}, was lost: the last close is at {frontier / 1e9:.6f}"
            faults.append(f"id {row.id} of `{row.trainer}`, {told}")
    return faults


def wrong_stamps(table: Table, exact: bool) -> list[str]:
    """K6."""
    assigns = {row["id"]: row for row in sorted(table["dispatch"], key=itemgetter("_seq"))}
    withheld = {row["id"]: (row["done_ns"], row["due_ns"]) for row in table["withheld"]}
    faults = []
    for key, row in assigns.items():
        done, held = row["stamp_ns"] + row["delay_ns"], withheld.get(key)
        if held is not None and (held != (done, row["due_ns"]) or row["due_ns"] <= done):
            faults.append(f"id {key}: withheld from {_s(held[0])} to {_s(held[1])}, due at {_s(row['due_ns'])}")
        if held is None and row["due_ns"] != done:
            faults.append(f"id {key}: due is not stamp + D")
    for where, echo in _echoes(table):
        wrong = _wrong(assigns.get(echo["id"]), echo, exact)
        faults += [f"{where}, id {echo['id']}: {wrong}"] if wrong else []
    return faults


def _echoes(table: Table) -> Iterator[tuple[str, Row]]:
    for row in sorted(table["accepted"], key=itemgetter("_seq")):
        start, end = row["interval_ns"]
        yield f"cycle {row['cycle']}", row | {"dispatched": start, "stamp": end, "due": row["due_ns"]}
    for row in table["task_send"]:
        yield "task_send", row | {"due": row["stamp_ns"]}
    for row in rounds(table):
        for member in row["cohort"]:
            yield f"cohort of cycle {row['cycle']}", member | {"dispatched": member["dispatched_ns"], "stamp": member["stamp_ns"]}


def _wrong(assign: Row | None, echo: Row, exact: bool) -> str | None:
    if assign is None:
        return "was never dispatched"
    if echo["trainer"] != assign["trainer"]:
        return f"is `{assign['trainer']}`'s, not `{echo['trainer']}`'s"
    if echo.get("dispatched", assign["stamp_ns"]) != assign["stamp_ns"]:
        return f"dispatched at {_s(assign['stamp_ns'])}, echoed {_s(echo['dispatched'])}"
    if echo.get("due", assign["due_ns"]) != assign["due_ns"]:
        return f"due at {_s(assign['due_ns'])}, echoed {_s(echo['due'])}"
    stamp = echo.get("stamp")
    if stamp is not None and (stamp != assign["due_ns"] if exact else stamp < assign["due_ns"]):
        return f"stamp {_s(stamp)} is {'not' if exact else 'before'} its due {_s(assign['due_ns'])}"
    return None


def _s(ns: int) -> str:
    return f"{ns / 1e9:.6f}"


def pools(table: Table, nodes: list[str]) -> list[tuple[set[str], str]]:
    """Who is free at each selection, in order, and the fingerprint of that."""
    selections = sorted(table["selection"], key=itemgetter("_seq"))
    moves = list(_moves(table, selections))
    told = []
    for selection in selections:
        free = dict.fromkeys(nodes, True)
        free.update({node: state for seq, node, state in sorted(moves) if seq < selection["_seq"]})
        there = {node for node, state in free.items() if state}
        marks = [int.from_bytes(blake2b(node.encode(), digest_size=8).digest(), "big") for node in there]
        told.append((there, f"{reduce(xor, marks, 0):016x}"))
    return told


def _moves(table: Table, selections: list[Row]) -> Iterator[tuple[int, str, bool]]:
    comings = [(row["_seq"], row["node"], row["up"]) for row in table["peer"] if row["planned"]]
    answered = set()
    for row in table["dispatch"]:
        before = [selection["_seq"] for selection in selections if selection["_seq"] <= row["_seq"]]
        answered |= {(before[-1], row["trainer"])} if before else set()
    for selection in selections:
        comings += [(selection["_seq"], node, False) for node in selection["chosen"] if (selection["_seq"], node) not in answered]
    gone = {node: seq for seq, node, up in comings if not up}
    yield from comings
    for assign in books(table).rows.values():
        yield assign._seq, assign.trainer, False
        end = min((seq for _, seq, _ in assign.ends), default=None)
        if end is not None and end < gone.get(assign.trainer, 1 << 62):
            yield end, assign.trainer, True


def against_trace(table: Table, traces: dict[str, Trace]) -> list[str]:
    """A6."""
    withheld, faults = {row["id"]: row["due_ns"] for row in table["withheld"]}, []
    for row in sorted(table["dispatch"], key=itemgetter("_seq")):
        key, done = row["id"], row["stamp_ns"] + row["delay_ns"] - row["up_ns"]
        back = traces[row["trainer"]].next_available(done) if row["trainer"] in traces else None
        counts = None if back is None else back + row["up_ns"]
        who, at = f"id {key} of `{row['trainer']}`", f"{done / 1e9:.3f}"
        if key in withheld and back == done:
            faults.append(f"{who} is withheld at {at} (spurious): the trace has it there")
        elif key not in withheld and back != done:
            faults.append(f"{who} isn't withheld at {at} (missed): the trace has it away")
        elif withheld.get(key, row["due_ns"]) != counts:
            told = "no time" if counts is None else f"{counts / 1e9:.3f}"
            faults.append(f"{who} counts at {row['due_ns'] / 1e9:.3f}, by the trace at {told}")
    return faults
