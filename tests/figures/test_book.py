"""Whole figs.yaml files: every family drawn, the same bytes again, and what a PDF holds."""

import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import orjson
import pytest
from matplotlib.figure import Figure

from flame.config.experiments import load
from flame.figures.arms import Cast
from flame.figures.book import Wanted, make
from flame.figures.scene import Picture, Scene, Style
from flame.figures.spec import Figs
from tests.figures.conftest import FIGURES

UNIT = re.compile(r".+\(.+\)$")


def silent(line: str) -> None:
    """Say nothing."""


def digests(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def drawn(file: Path, name: str, style: Style | None = None) -> Picture:
    """One figure of a file, not saved."""
    figs = Figs(file)
    style = style or Style()
    cast = Cast(figs, figs.folder / figs.head.runs, {}, blind=style.blind)
    figure = figs.figures[name]
    scene = Scene(
        cast.of(name, figure) if figure.of_arms else [], figs.target(figure), style,
        load(figs.folder / figs.head.experiments), figs.folder / figs.head.runs,
    )  # fmt: skip
    return figure.draw(scene)


def words(figure: Figure) -> set[str]:
    """Every text that is shown in a figure."""
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible()}


def test_the_same_runs_give_the_same_bytes_whatever_the_time_and_the_hash_seed(figs: Callable[..., Path], tmp_path: Path) -> None:
    file, made = figs(), []
    for number in (1, 2):
        code = "from flame.launch.cli import main; main()"
        line = [sys.executable, "-c", code, "figs", str(file), "--out", str(tmp_path / f"out{number}")]
        done = subprocess.run(
            line, env=os.environ | {"PYTHONHASHSEED": str(number)}, capture_output=True, text=True, timeout=280, check=False
        )
        assert done.returncode == 0, done.stderr
        made.append(digests(tmp_path / f"out{number}" / "latest"))
    assert made[0] == made[1]
    assert set(made[0]) == {f"{name}.{kind}" for name in FIGURES for kind in ("pdf", "png")} | {"captions.md", "sources.json"}


@pytest.fixture(scope="module")
def pages(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One accuracy figure and a map, saved."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "figs.yaml").write_text(
        f"runs: {home / 'runs'}\nexperiments: {home / 'experiments.yaml'}\narms: {{fwdllm: {{run_set: main}}}}\n"
        "figures:\n  one: {family: learning, caption: What it learns.}\n  two: {family: sweep, sweep: steps, x: goal, y: server_opt.lr}\n"
    )
    return make(folder / "figs.yaml", folder / "out", Wanted(), silent)


def test_a_pdf_embeds_truetype_and_has_no_date(pages: Path) -> None:
    for path in pages.glob("*.pdf"):
        raw = path.read_bytes()
        plain = raw + b"".join(_inflated(stream) for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", raw, re.DOTALL))
        assert b"/FontFile2" in plain
        assert b"/CIDFontType2" in plain or b"/TrueType" in plain
        assert b"/Type3" not in plain
        assert b"CreationDate" not in plain
        width = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", plain)
        assert width is not None
        assert float(width[1]) == pytest.approx(3.3 * 72, abs=0.5)


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def test_captions_and_sources_say_what_is_shown(pages: Path, home: Path) -> None:
    captions = (pages / "captions.md").read_text()
    assert "**one**: What it learns. n = 3 seeds: mean, and a band from the lowest to the highest" in captions
    assert "8 of 8 simulations have a value" in captions
    told = orjson.loads((pages / "sources.json").read_bytes())
    assert sorted(each["run"] for each in told["arms"]["fwdllm"]) == sorted(path.name for path in (home / "runs").glob("*_main_fwdllm_*"))
    assert (pages.parent / "latest").resolve() == pages.resolve()


def test_latest_moves_and_the_old_folder_stays(figs: Callable[..., Path], tmp_path: Path) -> None:
    file = figs({"time": {"family": "utilisation", "arms": ["fwdllm"]}})
    first, second = (make(file, tmp_path / "out", Wanted(), silent) for _ in range(2))
    assert first != second
    assert (tmp_path / "out" / "latest").resolve() == second.resolve()
    assert digests(first) == digests(second)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_axes_carry_units_and_seeds_are_told(figs: Callable[..., Path], name: str) -> None:
    picture = drawn(figs(), name)
    axes = picture.figure.axes[0]
    labels = [label for label in (axes.get_xlabel(), axes.get_ylabel()) if label]
    assert labels
    assert [label for label in labels if not UNIT.match(label)] == []
    assert all(UNIT.match(other.get_ylabel()) for other in picture.figure.axes[1:])
    legend = {text.get_text() for each in picture.figure.legends for text in each.get_texts()}
    assert re.search(r"n = [23] seeds", picture.caption) or any("n=3" in text for text in legend)
    assert picture.figure.get_size_inches()[0] == pytest.approx(3.3)


def test_blind_figures_do_not_tell_the_own_name(figs: Callable[..., Path]) -> None:
    for name in ("accuracy-time", "cost", "traffic", "stays", "decay"):
        told = " ".join(words(drawn(figs(), name).figure))
        hidden = " ".join(words(drawn(figs(), name, Style(blind=True)).figure))
        assert "FluxTune" in told
        assert "FluxTune" not in hidden
        assert "Ours" in hidden
        assert "FwdLLM" in hidden


def test_only_what_is_asked_for_is_drawn_and_runs_can_be_given(figs: Callable[..., Path], home: Path, tmp_path: Path) -> None:
    (one, *_) = sorted((home / "runs").glob("*_main_fwdllm_*"))
    folder = make(figs(), tmp_path / "out", Wanted(only=["time"], instead={"fwdllm": [one]}), silent)
    assert {path.name for path in folder.iterdir()} == {"time.pdf", "time.png", "captions.md", "sources.json"}
    told = orjson.loads((folder / "sources.json").read_bytes())
    assert [each["run"] for each in told["arms"]["fwdllm"]] == [one.name]
    assert "FwdLLM n = 1" in (folder / "captions.md").read_text()
