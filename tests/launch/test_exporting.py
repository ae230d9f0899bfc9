"""`flame export`: tables that hold the records, and events that another reader understands."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from flame.analysis.learned import Learned
from flame.launch.results.scalars import scalars
from flame.telemetry.rundir import RunDir


@pytest.fixture
def path(flame: Any, tmp_path: Path) -> Path:
    """One small run."""
    assert flame("run", "small", "--only", "gated").exit_code == 0
    (found,) = (tmp_path / "runs").iterdir()
    return found


def test_parquet_holds_the_records_and_the_curve(flame: Any, path: Path, tmp_path: Path) -> None:
    assert flame("export", "parquet", str(path), "--out", str(tmp_path / "out")).exit_code == 0
    run = RunDir(path)
    (out,) = (tmp_path / "out").iterdir()
    assert out.name == path.name
    assert {file.stem for file in out.iterdir()} == {*run.telemetry.kinds(), "curve"}
    for kind in run.telemetry.kinds():
        assert_frame_equal(pl.read_parquet(out / f"{kind}.parquet"), run.telemetry.frame(kind))
    assert_frame_equal(pl.read_parquet(out / "curve.parquet"), Learned(run).curve)


def test_csv_holds_them_too_with_lists_as_json(flame: Any, path: Path, tmp_path: Path) -> None:
    assert flame("export", "csv", str(path), "--out", str(tmp_path / "out")).exit_code == 0
    rounds = RunDir(path).telemetry.frame("agg_round")
    read = pl.read_csv(tmp_path / "out" / path.name / "agg_round.csv")
    assert read["cycle"].to_list() == rounds["cycle"].to_list()
    assert [orjson.loads(text) for text in read["cohort"]] == rounds["cohort"].to_list()
    assert read["variance"].to_list() == pytest.approx(rounds["variance"].to_list())


def test_scalars_are_the_curve_and_the_closes(path: Path) -> None:
    learned = Learned(RunDir(path))
    found = list(scalars(learned))
    accuracy = [(value, step, seconds) for tag, value, step, seconds in found if tag == "eval/accuracy"]
    assert accuracy == [(a, v, stamp / 1e9) for a, v, stamp in learned.curve.select("accuracy", "version", "stamp_ns").iter_rows()]
    assert [step for tag, _, step, _ in found if tag == "close/variance"] == learned.rounds["cycle"].to_list()


def events(file: Path) -> Iterator[bytes]:
    """The records of an event file: length, its checksum, data, their checksum."""
    raw = file.read_bytes()
    while raw:
        (size,) = struct.unpack("<Q", raw[:8])
        yield raw[12 : 12 + size]
        raw = raw[16 + size :]


def test_tensorboard_events_are_read_back(flame: Any, path: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="the extra `tensorboard` isn't installed")
    from tensorboardX.proto.event_pb2 import Event

    assert flame("export", "tensorboard", str(path), "--out", str(tmp_path / "out")).exit_code == 0
    (file,) = (tmp_path / "out" / path.name).iterdir()
    read = []
    for data in events(file):
        event = Event.FromString(data)
        read += [(value.tag, value.simple_value, event.step, event.wall_time) for value in event.summary.value]
    expected = list(scalars(Learned(RunDir(path))))
    assert [(tag, step, seconds) for tag, _, step, seconds in read] == [(tag, step, seconds) for tag, _, step, seconds in expected]
    assert [value for _, value, _, _ in read] == pytest.approx([value for _, value, _, _ in expected], rel=1e-6)


def test_what_is_no_run_is_refused(flame: Any, tmp_path: Path) -> None:
    for form in ("parquet", "csv", "tensorboard"):
        result = flame("export", form, str(tmp_path), "--out", str(tmp_path / "out"))
        assert result.exit_code == 2
        assert "hint: give one of `flame runs`" in result.stderr
    assert not (tmp_path / "out").exists()


def kinds_in(folder: Path) -> set[str]:
    return {file.stem for file in folder.iterdir()} - {"curve"}


def test_runs_lie_side_by_side_and_never_in_one_another(flame: Any, path: Path, tmp_path: Path) -> None:
    assert flame("run", "small", "--only", "gated", "--level", "summary").exit_code == 0
    (brief,) = set((tmp_path / "runs").iterdir()) - {path}
    out = tmp_path / "out"
    for run in (path, brief):
        assert flame("export", "csv", str(run), "--out", str(out)).exit_code == 0
    assert kinds_in(out / brief.name) == set(RunDir(brief).telemetry.kinds()) < kinds_in(out / path.name)
    for form in ("csv", "parquet"):
        again = flame("export", form, str(path), "--out", str(out))
        assert again.exit_code == 2
        assert f"`{out / path.name}` is there already\nhint: remove it, or give another `--out`" in again.stderr
    assert {file.suffix for file in (out / path.name).iterdir()} == {".csv"}


def test_an_export_that_breaks_leaves_nothing(flame: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(frame: pl.DataFrame, file: Path) -> None:
        if file.stem == "curve":
            raise OSError(28, "No space left on device")
        file.touch()

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    result = flame("export", "csv", str(path), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "can't be written: No space left on device" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_place_that_is_no_folder_is_refused(flame: Any, path: Path, tmp_path: Path, form: str) -> None:
    (tmp_path / "file").write_text("mine")
    for place in ("file", "/proc/nope"):
        result = flame("export", form, str(path), "--out", place)
        assert result.exit_code == 2
        assert "can't be written" in result.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_a_trace_is_a_file(flame: Any, path: Path, tmp_path: Path) -> None:
    for place in (".", "data", "/proc/nope"):
        (tmp_path / "data").mkdir(exist_ok=True)
        result = flame("export", "trace", str(path), "--out", place)
        assert result.exit_code == 2
        assert "can't be written" in result.stderr
        assert "hint: give the name of a file" in result.stderr
    assert not list(tmp_path.glob("**/*.part"))
    assert flame("export", "trace", str(path), "--out", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()
    assert flame("export", "trace", str(path), "--out", "made/trace.json").exit_code == 0
    assert [file.name for file in (tmp_path / "made").iterdir()] == ["trace.json"]
