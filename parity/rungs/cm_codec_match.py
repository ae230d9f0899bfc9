"""Cm: the sim counts the bytes that the real run sends."""

from typing import Any

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.compare import mismatch
from parity.rung import DIAG, EXACT, LOGICAL, Finding, failed, passed, rung, skipped

RESEND = "resend"


@rung(
    id="Cm",
    name="codec_match",
    stage=6,
    tier=EXACT,
    domain=LOGICAL,
    needs=["comm.message_bytes", "comm.payload", "comm.direction", "accepted.id"],
    upstream=["L1"],
    over="cycles",
    fidelity=DIAG,
    shown=True,
)
def codec_match(pair: Pair, window: Window) -> Finding:
    """Bytes counted by the sim are the bytes sent in the real run, per payload kind and direction.

    What it checks: the messages of all updates that were released within the window: their assign, down, and
        their update, up. Per payload kind and direction the bytes and the number of messages are equal.
    Why: the figures of communication that a simulation gives are only worth something if they are the real ones.
    Reads: comm; accepted (which updates belong to the window).
    Statistic: number of (direction, kind) totals that differ.
    Tolerance: 0. In the fidelity tier the rung is DIAG, because other cohorts send other messages.
    Known limits: weights and assigns that the session layer sends again (`resend`) are left out and
        shown; retransmissions of MQTT itself are not counted by anybody.
    """
    real, sim = (_counted(run, window) for run in pair.runs)
    totals = {side: _totals(frame) for side, frame in (("real", real), ("sim", sim))}
    kinds = sorted(totals["real"].keys() | totals["sim"].keys())
    again = _resent(pair)
    if not kinds:
        return skipped("no message of an update of the window was counted")
    wrong = [kind for kind in kinds if totals["real"].get(kind) != totals["sim"].get(kind)]
    n = sum(count for count, _ in totals["real"].values())
    if not wrong:
        told = ", ".join(f"{kind} {totals['real'][kind][1]} B" for kind in kinds)
        return passed(f"{told}{again}", effect=0.0, tol=0.0, n=n)
    detail = [f"{kind}: real {_told(totals['real'].get(kind))}   sim {_told(totals['sim'].get(kind))}" for kind in wrong]
    reason = f"{mismatch(len(wrong), len(kinds), 'payload kinds')}, first {wrong[0]}{again}"
    return failed(reason, effect=float(len(wrong)), tol=0.0, n=n, detail=[*detail, *_first(real, sim)])


def _counted(run: Run, window: Window) -> pl.DataFrame:
    """The messages that count: of released updates of the window, resends left out.

    A worker that died after it sent, and before that was heard, sends again as a new incarnation: the first counts.
    """
    released = window.in_cycles(run.frame("accepted", "cycle", "id")).select("id").unique()
    sent = run.frame("comm", "id", "direction", "payload", "message_bytes", "_incarnation").filter(pl.col("payload") != RESEND)
    counted = sent.join(released, on="id", how="semi", maintain_order="left")
    first = pl.col("_incarnation").first().over("direction", "id")
    return counted.filter(pl.col("_incarnation").eq_missing(first))


def _totals(frame: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """`down full` -> (messages, bytes)."""
    grouped = frame.group_by("direction", "payload").agg(pl.len().alias("messages"), pl.sum("message_bytes"))
    return {f"{direction} {payload}": (messages, size) for direction, payload, messages, size in grouped.iter_rows()}


def _told(total: tuple[int, int] | None) -> str:
    return f"{total[1]} B in {total[0]} messages" if total else "nothing"


def _first(real: pl.DataFrame, sim: pl.DataFrame) -> list[str]:
    """The first assign id whose messages differ."""
    one, two = _by_id(real), _by_id(sim)
    for key in sorted(one.keys() | two.keys()):
        if one.get(key) != two.get(key):
            return [f"first at id {key}: real {one.get(key, 'nothing')}   sim {two.get(key, 'nothing')}"]
    return []


def _by_id(frame: pl.DataFrame) -> dict[int, str]:
    found: dict[int, list[Any]] = {}
    for key, direction, payload, size in frame.select("id", "direction", "payload", "message_bytes").sort(pl.all()).iter_rows():
        found.setdefault(key, []).append(f"{direction} {payload} {size} B")
    return {key: ", ".join(texts) for key, texts in found.items()}


def _resent(pair: Pair) -> str:
    again = pair.real.frame("comm", "payload", "message_bytes").filter(pl.col("payload") == RESEND)["message_bytes"]
    return f"; {again.len()} resends of {again.sum()} B left out" if again.len() else ""
