"""What travelled: bytes by direction and kind of payload, and weights that needn't have been sent.

Every message counts here, `resend` as a kind of its own.
"""

import polars as pl

from flame.analysis.learned import RESEND
from flame.telemetry.rundir import RunDir

WEIGHTS = ("full",)
"""Kinds of payload that carry all weights."""


def by_kind(run: RunDir) -> pl.DataFrame:
    """A row for each direction and kind: messages, bytes, and the mean size of one."""
    comm = run.telemetry.frame("comm")
    kinds = comm.group_by("direction", "payload").agg(
        messages=pl.len(), bytes=pl.col("message_bytes").sum(), mean_bytes=pl.col("message_bytes").mean()
    )
    return kinds.sort("direction", "payload")


def sent_weights(run: RunDir) -> pl.DataFrame:
    """Each message down with weights, in order. held: the trainer's last one had this version too, so it was redundant."""
    sizes = run.telemetry.frame("comm").filter((pl.col("direction") == "down") & (pl.col("payload") != RESEND)).unique("id")
    assigns = run.telemetry.frame("dispatch").sort("_seq").select("id", "trainer", "model_version", "payload", "stamp_ns")
    sent = assigns.filter(pl.col("payload").is_in(WEIGHTS)).join(sizes.select("id", "message_bytes"), on="id", maintain_order="left")
    before = pl.col("model_version").shift(1).over("trainer")
    return sent.with_columns(held=(before == pl.col("model_version")).fill_null(False))


def redundancy(run: RunDir) -> pl.DataFrame:
    """One row: messages with weights and their bytes, those that a trainer held already, versions, and sends a version."""
    sent = sent_weights(run)
    spare = sent.filter("held")
    versions = sent["model_version"].n_unique()
    total, wasted = int(sent["message_bytes"].sum()), int(spare["message_bytes"].sum())
    return pl.DataFrame(
        {
            "run": [run.label], "weights_sent": [sent.height], "bytes": [total], "held_already": [spare.height],
            "redundant_bytes": [wasted], "redundant_share": [wasted / total if total else None],
            "versions": [versions], "sends_a_version": [sent.height / versions if versions else None],
        }
    )  # fmt: skip
