"""`flame runs prune`: remove run directories that nobody needs any more.

What is asked for is chosen by all of the conditions given; a run that goes on, has left processes behind, or can't be looked into,
is never chosen. Runs that ended in different ways don't take each other's place: the last good run of a condition outlives
every newer crash.
"""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from flame.config.errors import ConfigError, unknown
from flame.launch.folder.clean import trace
from flame.launch.folder.listing import VERDICTS, run_paths, size_of, sized, verdict_of
from flame.launch.screen.consoles import agreed
from flame.telemetry.rundir import RunDir, RunDirError, RunName

WELL, BAD, REFUSED = 0, 1, 2
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGE = re.compile(r"(\d+)([smhdw])")
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to go. keep: so many of the newest stay, of each run-set, run_fp, world and verdict. older: than it. verdicts: of these."""

    keep: int | None = None
    older: timedelta | None = None
    verdicts: tuple[str, ...] = ()


def wanted(keep: int | None, older_than: str | None, verdicts: Sequence[str]) -> Wanted:
    """From flags. Raises ConfigError for an age or a verdict that is none, and where nothing is said."""
    if keep is None and older_than is None and not verdicts:
        raise ConfigError("which runs?", "give `--keep N`, `--older-than 7d` or `--verdict CRASH`; several narrow the choice")
    return Wanted(keep, None if older_than is None else age(older_than), tuple(map(known_verdict, verdicts)))


def age(text: str) -> timedelta:
    """`30m`, `12h`, `7d`, `2w`. Raises ConfigError."""
    match = AGE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"`--older-than {text}` is no age", "write it like `30m`, `12h`, `7d` or `2w`")
    try:
        return timedelta(**{UNITS[match[2]]: int(match[1])})
    except (OverflowError, ValueError):
        raise ConfigError(f"`--older-than {text}` is older than any run", "give an age in its bounds, such as `52w`") from None


def known_verdict(text: str) -> str:
    """A verdict as it is spelled. Raises ConfigError."""
    if text.upper() not in VERDICTS:
        raise unknown("verdict", text, VERDICTS, " (`--verdict`)")
    return text.upper()


def chosen(runs: Path, what: Wanted, now: datetime) -> list[Path]:
    """The runs that go, oldest first."""
    paths = [path for path in run_paths(runs) if not path.is_symlink()]
    spared = _newest(paths, what.keep) if what.keep is not None else set()
    found = [path for path in paths if path not in spared and _is_old(path, what.older, now)]
    found = [path for path in found if not what.verdicts or verdict_of(path) in what.verdicts]
    return [path for path in found if not _alive(path)]


def prune(runs: Path, what: Wanted, out: Console, *, yes: bool, dry_run: bool) -> int:
    """Show what goes, ask, remove. Without anybody to ask, only `--yes` is an answer."""
    paths = chosen(runs, what, datetime.now(UTC))
    if not paths:
        out.print(f"nothing of {runs} is to go", markup=False)
        return WELL
    for path in paths[:SHOWN]:
        out.print(f"  {path.name}  {verdict_of(path)}  {sized(size_of(path))}", markup=False, soft_wrap=True)
    if len(paths) > SHOWN:
        out.print(f"  and {len(paths) - SHOWN} more")
    if dry_run:
        return WELL
    if not yes and not agreed(f"remove {len(paths)} runs, {sized(sum(map(size_of, paths)))}?", unasked=False):
        out.print("nothing was removed; `--yes` removes them")
        return REFUSED
    tried = [path for path in paths if not _alive(path)]
    left = [path for path in tried if not _removed(path, out)]
    out.print(f"{len(tried) - len(left)} runs removed")
    return BAD if left else WELL


def _removed(path: Path, out: Console) -> bool:
    try:
        shutil.rmtree(path)
    except OSError as error:
        out.print(f"  {path.name} can't be removed: {error.strerror}", markup=False, soft_wrap=True)
        return False
    return True


def _newest(paths: Sequence[Path], keep: int) -> set[Path]:
    groups: dict[tuple[object, ...], list[Path]] = {}
    for path in paths:
        name = RunName.parse(path.name)
        if name is not None:
            groups.setdefault((name.run_set, name.world, _condition(path, name), verdict_of(path)), []).append(path)
    return {path for group in groups.values() for path in sorted(group)[max(0, len(group) - keep) :]}


def _condition(path: Path, name: RunName) -> object:
    """What was run: its fingerprint, or what the name says where that can't be read."""
    try:
        return RunDir(path).run_fp
    except RunDirError:
        return name.baseline, name.trainers, name.seed


def _is_old(path: Path, older: timedelta | None, now: datetime) -> bool:
    name = RunName.parse(path.name)
    if older is None or name is None:
        return older is None
    try:
        begun = datetime.strptime(name.time[:15] + "Z", "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:  # digits that are no time
        return False
    return now - begun > older


def _alive(path: Path) -> bool:
    """Whether anything of it lives, as far as that can be known; who can't look mustn't remove."""
    try:
        (path / "launcher.json").exists()
    except OSError:
        return True
    alive = trace(path)
    return alive.launcher is not None or bool(alive.others)
