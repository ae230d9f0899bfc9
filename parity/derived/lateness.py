"""How late updates come by themselves, and which ones a fault held up.

An update is disturbed when between its dispatch and its release a worker was gone or started again, a connection was lost
or renewed, or a peer went down or came back: what is late then says nothing of the jitter. One fault delays several
updates, so a delayed one is held against the undisturbed alone.
"""

import polars as pl

from parity.evidence import Run

DOWN = ("respawn", "gone", "disconnected", "reconnected")
"""Faults after which updates come late."""


def jitter_s(run: Run) -> float:
    """Over how many seconds the lateness of updates spreads that neither overran nor were disturbed; 0 where it isn't measured."""
    overran = run.frame("trainer_round").filter("overran").select("id")
    late = run.derived(undisturbed).join(overran, on="id", how="anti")["late_s"]
    return float(late.max()) - float(late.min()) if late.len() else 0.0  # type: ignore[arg-type]


def is_on_time(run: Run, update: int) -> bool:
    """Whether it was released, and no later than an undisturbed one."""
    lateness = run.frame("lateness").drop_nulls("late_s")
    late = lateness.filter(pl.col("id") == update)["late_s"].max()
    usual = run.derived(undisturbed).filter(pl.col("id") != update)["late_s"].max()
    return isinstance(late, float) and isinstance(usual, float) and late <= usual


def undisturbed(run: Run) -> pl.DataFrame:
    """id, late_s of the updates whose lateness is the machine's alone. For `run.derived`."""
    dispatched = run.frame("dispatch").select("id", out_ns="_t_ns").unique("id", keep="first")
    late = run.frame("lateness").drop_nulls("late_s").select("id", "late_s", in_ns="_t_ns").join(dispatched, on="id", how="left")
    found = run.derived(disturbances)["_t_ns"].to_list()
    free = pl.all_horizontal(pl.lit(True), *(~pl.lit(at).is_between("out_ns", "in_ns", closed="none").fill_null(False) for at in found))
    return late.filter(free).select("id", "late_s")


def disturbances(run: Run) -> pl.DataFrame:
    """_t_ns, told: faults after which updates come late, and peers that went down or came back; in their order. For `run.derived`."""
    faults = run.frame("fault").filter(pl.col("what").is_in(DOWN))
    peers = run.frame("peer").filter(~pl.col("planned"))
    up = pl.when("up").then(pl.lit("up")).otherwise(pl.lit("down"))
    told = [
        faults.select("_t_ns", told=pl.format("{} {}: {}", "what", "node", "detail")),
        peers.select("_t_ns", told=pl.format("`{}` {}: {}", "node", up, "why")),
    ]
    return pl.concat(told).sort("_t_ns", maintain_order=True)


def span_of(run: Run, update: int) -> tuple[int, int] | None:
    """From its dispatch to its release, or to the end of the run; on the run's clock.

    What was sent should be there after the jitter and one more sending: a fault that came later held up nothing.
    """
    dispatched, sent, released = (
        run.frame(kind).filter(pl.col("id") == update)["_t_ns"].sort() for kind in ("dispatch", "task_send", "lateness")
    )
    if not dispatched.len():
        return None
    end = released[0] if released.len() else end_ns(run)
    there = sent[0] + round(1e9 * (jitter_s(run) + run.condition.limits.resend_s)) if sent.len() else end
    return dispatched[0], min(end, there)


def end_ns(run: Run) -> int:
    """The last instant of which its aggregator tells."""
    told = [run.frame(kind)["_t_ns"].max() for kind in ("agg_round", "accepted", "run_end", "intrusion", "dispatch")]
    return max((at for at in told if isinstance(at, int)), default=0)
