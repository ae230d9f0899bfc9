"""All figures of a figs.yaml, in a folder of their own.

    figures/<UTC time>/NAME.pdf, NAME.png, captions.md, sources.json        figures/latest -> the newest

Nothing is written before everything has been drawn. Only the folder's name holds a date: the same runs and file give
the same bytes in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from flame.analysis.tables import check_into
from flame.config.errors import ConfigError, unknown
from flame.figures.arms import Cast, Given
from flame.figures.canvas import save
from flame.figures.families import Family
from flame.figures.scene import Picture, Scene, Style
from flame.figures.spec import Figs

LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for beside the file. runs: instead of its folder. only: these figures."""

    runs: Path | None = None
    instead: Given = field(default_factory=dict)
    only: Sequence[str] = ()
    style: Style = field(default_factory=Style)


def make(file: Path, out: Path, wanted: Wanted, say: Callable[[str], object]) -> Path:
    """Draw the figures of `file` into a new folder in `out`; returns it. Raises ConfigError before anything is written."""
    check_into(out)
    figs = Figs(file)
    names = _chosen(figs, wanted.only)
    runs = wanted.runs or figs.folder / figs.head.runs
    cast = Cast(figs, runs, wanted.instead, blind=wanted.style.blind)
    pictures = {name: _drawn(name, figs, cast, Scene((), style=wanted.style, registry=figs.registry, folder=runs)) for name in names}
    folder = _folder(out)
    for name, picture in pictures.items():
        for path in save(picture.figure, folder, name):
            say(str(path))
    (folder / "captions.md").write_text(_captions(figs, pictures), encoding="utf-8")
    (folder / "sources.json").write_bytes(orjson.dumps(_sources(cast, wanted), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    _point(out / LATEST, folder)
    return folder


def _chosen(figs: Figs, only: Sequence[str]) -> list[str]:
    for name in only:
        if name not in figs.figures:
            raise unknown("figure", name, list(figs.figures), " (--only)")
    return [name for name in figs.figures if not only or name in only]


def _drawn(name: str, figs: Figs, cast: Cast, scene: Scene) -> Picture:
    figure: Family = figs.figures[name]
    arms = cast.of(name, figure) if figure.of_arms else []
    try:
        return figure.draw(Scene(arms, figs.target(figure), scene.style, scene.registry, scene.folder))
    except ConfigError as error:
        raise ConfigError(f"figures.{name}: {error.what}", error.hint) from None


def _folder(out: Path) -> Path:
    while True:
        folder = out / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder


def _captions(figs: Figs, pictures: dict[str, Picture]) -> str:
    told = [
        ". ".join(part for part in (figs.figures[name].caption.rstrip("."), picture.caption) if part) for name, picture in pictures.items()
    ]
    return "\n".join(
        f"**{name}**: {caption if caption.startswith('n ') else caption[:1].upper() + caption[1:]}.\n"
        for name, caption in zip(pictures, told, strict=True)
    )


def _sources(cast: Cast, wanted: Wanted) -> dict[str, Any]:
    """Which runs stand behind the arms, and how they were shown."""
    style = wanted.style
    arms = {
        arm.key: [{"run": each.run.label, "run_fp": each.run.run_fp, "condition_fp": each.run.condition_fp} for each in arm.runs]
        for arm in cast.all
    }
    return {"arms": arms, "style": {"smooth": style.smooth, "cutoff_mode": style.cutoff, "blind": style.blind}}


def _point(link: Path, folder: Path) -> None:
    """Let `latest` lead to the new folder."""
    fresh = link.with_name(f".{LATEST}.{folder.name}")
    fresh.symlink_to(folder.name)
    fresh.replace(link)
