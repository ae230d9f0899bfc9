"""The document satisfies its types, and the schema on disk is made from them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter, ValidationError

from flame.telemetry.rundir import RunPair
from parity.engine import Report
from parity.reports.document import Document, schema, text
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import fidelity, write_pair

Judge = Callable[..., Report]
ADAPTER = TypeAdapter(Document)
SCHEMA = Path(__file__).parents[2] / "docs" / "parity.schema.json"


def checked(reports: list[Report]) -> Any:
    return ADAPTER.validate_json(text(reports))


def test_a_good_a_broken_and_a_crashed_pair_satisfy_it(good: RunPair, judge: Judge) -> None:
    assert checked([]) == {"pairs": []}
    checked([judge(good)])
    Edit(good.sim).set("agg_round", cycle_is(5), model="x")
    (good.real.path / "verdict.json").unlink()
    (pair,) = checked([judge(good)])["pairs"]
    assert pair["real"]["ended"] is None
    assert {rung["role"] for rung in pair["rungs"]} == {None, "ROOT-CAUSE"}


def test_a_pair_of_the_fidelity_tier_satisfies_it(tmp_path: Path, judge: Judge) -> None:
    checked([judge(write_pair(tmp_path, fidelity(60), noise=(1, 2)), lenient=True)])


SPOILS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a field is missing": lambda pair: pair["rungs"][0].pop("effect"),
    "a count is missing": lambda pair: pair["summary"].pop("pass"),
    "a field is unknown": lambda pair: pair.update(more=1),
    "a verdict is unknown": lambda pair: pair["rungs"][0].update(verdict="FINE"),
    "a number is a text": lambda pair: pair.update(seed="1"),
    "an entry is null": lambda pair: pair.update(real=None),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_another_document_does_not(spoil: str, good: RunPair, judge: Judge) -> None:
    made = orjson.loads(text([judge(good)]))
    SPOILS[spoil](made["pairs"][0])
    with pytest.raises(ValidationError):
        ADAPTER.validate_json(orjson.dumps(made))


def test_the_schema_on_disk_is_current_and_closed() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema()
    parts = orjson.loads(schema())["$defs"]
    assert set(parts) == {"EndEntry", "FloorEntry", "PairEntry", "RungEntry", "RunEntry", "Summary", "WindowEntry"}
    assert all(set(part["required"]) == set(part["properties"]) for part in parts.values())
