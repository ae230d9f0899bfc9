"""What the trainers of one run say of themselves, against what their aggregator has of them.

Clocks: each process counts from `ready`, a worker from its first assign, so that its clock is one leg late. An
instant that is told by two of them is known to a leg, and to the time for which a process may lose its core.
"""

from collections.abc import Iterator

import polars as pl

from parity.derived.ledger import ledger_of
from parity.derived.phases import with_phases
from parity.evidence import Run
from parity.measures.statistics import ALPHA, quantile_share
from parity.rungs.lags import JITTER_S
from parity.single import Look

LIFE = ["id", "trainer", "_incarnation"]
"""One job in one life of its trainer: a respawned worker answers again, under the same id."""
SHARE = 0.01
"""Of the sends that may be off by more than the jitter: a process that loses its core says nothing of the run."""


def alternation(run: Run) -> Look:
    """In one life of a trainer, receipts and sendings alternate, and a sending answers the receipt before it."""
    both = [run.frame(kind, "trainer", "_incarnation", "_seq", "id").with_columns(kind=pl.lit(kind)) for kind in ("task_recv", "task_send")]
    frame = pl.concat(both).sort("trainer", "_incarnation", "_seq")
    faults, open_id = [], dict[tuple[str, str], int | None]()
    for trainer, life, _, task, kind in frame.iter_rows():
        expected = open_id.get((trainer, life))
        if kind == "task_recv" and expected is not None:
            faults.append(f"`{trainer}` received id {task} before it had answered {expected}")
        if kind == "task_send" and expected != task:
            faults.append(f"`{trainer}` sent id {task}, it had {'nothing' if expected is None else f'id {expected}'} to answer")
        open_id[trainer, life] = task if kind == "task_recv" else None
    return Look(frame.height, faults)


def punctual(run: Run) -> Look:
    """Nothing is sent before it is due, nor later than max(finished, due): exactly so in the sim, within the jitter in the real run."""
    return _sent_in_sim(run) if run.side == "sim" else _sent_for_real(run)


def _sent_in_sim(run: Run) -> Look:
    rows = run.frame("task_send", "id", "_t_ns", "stamp_ns").drop_nulls()
    late = (pl.col("_t_ns") - pl.col("stamp_ns")) / 1e9
    wrong = rows.filter((late < 0) | (late > JITTER_S))
    return Look(rows.height, [f"id {key} was sent at {at / 1e9:.9f}, due at {due / 1e9:.9f}" for key, at, due in wrong.iter_rows()])


def _sent_for_real(run: Run) -> Look:
    sends = slacks(run)
    faults = [*_beyond(sends.filter(pl.col("slack_s") < 0), "before it was due"), *_beyond(sends, "after it could be")]
    return Look(sends.height, faults)


def _beyond(sends: pl.DataFrame, how: str) -> Iterator[str]:
    """The sends that are off by more than the jitter, where they are more than chance makes of their share."""
    sign = -1 if how.startswith("before") else 1
    off = sends.select("id", "trainer", off=sign * pl.col("slack_s")).filter(pl.col("off") > JITTER_S)
    if off.height and quantile_share(sign * sends["slack_s"], JITTER_S, SHARE)[1] <= ALPHA:
        yield from (f"`{trainer}` sent id {key} {by:.3f} s {how}" for key, trainer, by in off.iter_rows())


def slacks(run: Run) -> pl.DataFrame:
    """id, trainer, slack_s: from max(finished, due) to the sending of each update, where all of it was measured, on its worker's clock.

    An assign that was sent twice is left out: its due was counted from another instant than its dispatch.
    """
    began = run.frame("selection", "_seq", "_t_ns").sort("_seq")
    dispatched = run.frame("dispatch", "_seq", "id", "stamp_ns").sort("_seq").unique("id", maintain_order=True)
    stepped = dispatched.join_asof(began, on="_seq").select("id", origin="stamp_ns" if _relative(run) else "_t_ns")
    took = pl.sum_horizontal(pl.col(IN_COMPUTE).fill_null(0.0))
    busy = with_phases(run, *LIFE, "phases").drop_nulls("phases").select(*LIFE, busy_s=took).unique(LIFE, keep="first")
    received = run.frame("task_recv", *LIFE, "due_ns", "_t_ns").rename({"_t_ns": "recv"}).unique(LIFE, keep="first")
    sent = run.frame("task_send", *LIFE, "_t_ns").rename({"_t_ns": "sent"}).unique(LIFE, keep="first")
    jobs = sent.join(received, on=LIFE).join(busy, on=LIFE).join(stepped, on="id").join(_resent(run), on="id", how="anti")
    may_leave = pl.max_horizontal(pl.col("recv") + pl.col("due_ns") - pl.col("origin"), pl.col("recv") + pl.col("busy_s") * 1e9)
    return jobs.select("id", "trainer", slack_s=(pl.col("sent") - may_leave) / 1e9).drop_nulls().sort("id")


IN_COMPUTE = ("queue", "to_device", "compute", "to_host")
"""Phases of a job from its receipt to its result."""


def _relative(run: Run) -> bool:
    return run.condition.pacing == "relative"


def _resent(run: Run) -> pl.DataFrame:
    return run.frame("comm", "id", "payload").filter(pl.col("payload") == "resend").select("id").unique()


def answers(run: Run) -> Look:
    """Every released update was sent by its trainer: accepts are no more than sends."""
    released = run.frame("accepted", "id", "trainer").unique(maintain_order=True)
    unsent = released.join(run.frame("task_send", "id", "trainer"), on=["id", "trainer"], how="anti", maintain_order="left")
    return Look(released.height, [f"id {key} of `{trainer}` was released and never sent" for key, trainer in unsent.iter_rows()])


def lost(run: Run) -> Look:
    """No sent update is lost while one that was sent later commits: of its own trainer, or of any after the grace."""
    sent = run.frame("task_send", "id", "_t_ns").unique("id", keep="last")
    rows = run.derived(ledger_of).rows.join(sent, on="id", maintain_order="left")
    committed = rows.filter("closed")
    last = committed["_t_ns"].max() or 0
    last_of = committed.group_by("trainer").agg(last_seq=pl.col("seq").max())
    missing = rows.filter((pl.col("ends") == 0) & (pl.col("accepts") == 0)).join(last_of, on="trainer", how="left", maintain_order="left")
    overtaken = (pl.col("last_seq") > pl.col("seq")) | (pl.lit(last) - pl.col("_t_ns") > run.condition.limits.grace_s * 1e9)
    faults = [
        f"id {key} of `{trainer}` was sent at {at / 1e9:.3f} and never released"
        for key, trainer, at in missing.filter(overtaken).select("id", "trainer", "_t_ns").iter_rows()
    ]
    return Look(sent.height, faults)


def once(run: Run) -> Look:
    """Each (trainer, version, bin, draw) was dispatched once, answered once in each life of its trainer, and committed once."""
    key = ("trainer", "model_version", "data_id", "round", "draw")
    rows = run.frame("dispatch", "id", *key).drop_nulls()
    twice = rows.group_by(key, maintain_order=True).agg(pl.col("id")).filter(pl.col("id").list.len() > 1)
    faults = [f"`{row['trainer']}` got the same draw in ids {row['id']}" for row in twice.iter_rows(named=True)]
    for kind in ("trainer_round", "task_send"):
        faults += [f"`{trainer}` has {n} {kind} records of id {task}" for task, trainer, _, n in _repeated(run.frame(kind, *LIFE), LIFE)]
    members = run.members.select("id")
    faults += [f"id {task} was committed {n} times" for task, n in _repeated(members, ["id"])]
    return Look(rows.height, faults)


def _repeated(frame: pl.DataFrame, key: list[str]) -> list[tuple[object, ...]]:
    return frame.drop_nulls(key).group_by(key, maintain_order=True).len().filter(pl.col("len") > 1).rows()
