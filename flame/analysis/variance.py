"""How the gate's variance V falls within a bin, and where other commit rules would have stopped.

Rules are the project's own (`flame.policies.commit`), fed with what was recorded. A bin is known up to the close that
committed it, so a rule that would have gone on longer is `open` there: nobody knows where it would have ended.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pydantic import TypeAdapter, ValidationError

from flame.config.errors import ConfigError, explain
from flame.config.frozen import Frozen
from flame.policies.commit import KEEP, BinView, Commit, first_match

BIN = ("round", "data_id")
OPEN = "open"


class Rules(Frozen):
    """Commit rules, first match."""

    commit: tuple[Commit, ...]


def decay(rounds: pl.DataFrame, bins: int | None = None) -> pl.DataFrame:
    """A row a close that has a V, in order: bin (from 0), round, data_id, iteration, n uploads, variance, reason.

    bins: only the first so many. The last bin may be incomplete: its `complete` is false.
    """
    order = rounds.sort("cycle").with_columns(bin=(pl.struct(BIN).rle_id()).cast(pl.Int64))
    held = order.with_columns(complete=pl.col("committed").any().over("bin")).filter(pl.col("variance").is_not_null())
    table = held.select("bin", *BIN, "iteration", pl.col("pool").alias("n"), "variance", "threshold", "committed", "reason", "complete")
    return table if bins is None else table.filter(pl.col("bin") < bins)


def mean_decay(table: pl.DataFrame) -> pl.DataFrame:
    """A row an iteration: in how many bins it was reached, mean n, median V, and its quartiles."""
    v = pl.col("variance")
    return (
        table.group_by("iteration")
        .agg(bins=pl.len(), n=pl.col("n").mean(), low=v.quantile(0.25, "linear"), median=v.median(), high=v.quantile(0.75, "linear"))
        .sort("iteration")
    )


def reasons(rounds: pl.DataFrame) -> pl.DataFrame:
    """Why closes committed, or didn't: a row a reason, the most frequent first."""
    return rounds.group_by("reason").agg(closes=pl.len()).sort("closes", "reason", descending=[True, False])


def parse(text: str) -> tuple[Commit, ...]:
    """Rules as `plateau,patience=3,eps=0.15;cap,max=20`. Raises ConfigError for what is none."""
    entries = [_entry(part) for part in text.split(";") if part.strip()]
    if not entries:
        raise ConfigError(f"`{text}` names no commit rule", "write it like `variance,threshold=0.3;cap,max=20`")
    try:
        return Rules.model_validate({"commit": entries}).commit
    except ValidationError as error:
        raise explain(error, Rules, {"commit": entries}, lambda _: f" in `{text}`") from None


def _entry(text: str) -> dict[str, Any]:
    name, *numbers = (part.strip() for part in text.split(","))
    pairs = [number.partition("=") for number in numbers]
    odd = next((key for key, sign, _ in pairs if not sign), None)
    if odd is not None:
        raise ConfigError(f"`{odd}` in `{text}` is not of the form `key=value`", "write it like `cap,max=20`")
    return {"type": name} | {key.strip(): _number(value) for key, _, value in pairs}


def _number(text: str) -> int | float | str:
    try:
        found: int | float = TypeAdapter(int | float).validate_python(text)
    except ValidationError:
        return text
    return found


def stops(table: pl.DataFrame, rules: Sequence[Commit]) -> pl.DataFrame:
    """Where these rules would have stopped each bin: a row a bin with iteration, n, variance and reason; `open` at its last close."""
    rows = []
    for (number,), closes in table.filter("complete").group_by(["bin"], maintain_order=True):
        rows.append((number, *_stop(closes.sort("iteration"), rules), int(closes["iteration"].max())))  # type: ignore[arg-type]
    kinds = {
        "bin": pl.Int64(),
        "iteration": pl.Int64(),
        "n": pl.Int64(),
        "variance": pl.Float64(),
        "reason": pl.String(),
        "was": pl.Int64(),
    }
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _stop(closes: pl.DataFrame, rules: Sequence[Commit]) -> tuple[int, int, float, str]:
    states: list[Any] = [None] * len(rules)
    last: tuple[int, int, float] = (0, 0, 0.0)
    for iteration, n, variance in closes.select("iteration", "n", "variance").iter_rows():
        reason, states = first_match(rules, BinView(iteration, n, variance), states)
        last = iteration, n, variance
        if reason != KEEP:
            return *last, reason
    return *last, OPEN


def compared(table: pl.DataFrame, named: dict[str, Sequence[Commit]]) -> pl.DataFrame:
    """A row a set of rules: bins, how many stopped earlier, as recorded, or are open; mean closes and mean V where they stopped."""
    rows = []
    for name, rules in named.items():
        found = stops(table, rules)
        known = found.filter(pl.col("reason") != OPEN)
        earlier = known.filter(pl.col("iteration") < pl.col("was"))
        counts = (found.height, earlier.height, known.height - earlier.height, found.height - known.height)
        rows.append((name, *counts, known["iteration"].mean() if known.height else None, known["variance"].mean()))
    kinds = {name: pl.Int64() for name in ("bins", "earlier", "same", "open")}
    schema = {"rules": pl.String(), **kinds, "mean_iteration": pl.Float64(), "mean_variance": pl.Float64()}
    return pl.DataFrame(rows, schema=schema, orient="row")
