"""`--after parity,sanity,plot`: what is done with runs that have ended.

    parity    each pair is compared as soon as both runs of it have ended
    sanity    `flame check`: what each run must satisfy by itself
    plot      pictures of accuracy and loss, in a folder beside the runs

A hook that fails makes a bad end of the command, and stops nothing.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

import flame
from flame.config.errors import ConfigError, unknown
from flame.telemetry.rundir import RunName

HOOKS = ("parity", "sanity", "plot")
PLOTTER = Path(flame.__file__).parent.parent / "expt_scripts" / "plot_learning_curve.py"


def wanted(text: str | None, mode: str) -> frozenset[str]:
    """The hooks that `--after` names; parity, if it says nothing. Raises ConfigError for what can't follow."""
    if text is None:
        return frozenset({"parity"})
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in HOOKS:
            raise unknown("hook", name, HOOKS, f" in `--after {text}`")
    if "parity" in names and mode != "both":
        raise ConfigError(
            f"`--after {text}`: parity compares pairs, and `--mode {mode}` makes none", "give `--mode both`, or drop `parity`"
        )
    if "plot" in names and not PLOTTER.is_file():
        raise ConfigError(f"`--after {text}`: there is no `{PLOTTER.name}` beside the library", "use a source tree, or drop `plot`")
    return frozenset(names)


def carry_out(hooks: frozenset[str], ended: Sequence[Path], out: Console, err: Console) -> bool:
    """Everything that looks at all runs at once; whether it found nothing wrong."""
    well = True
    if "sanity" in hooks and ended:
        well &= _sane(ended, err)
    if "plot" in hooks and ended:
        well &= _plotted(ended, out, err)
    return well


def _sane(ended: Sequence[Path], err: Console) -> bool:
    from parity.cli import main as check

    try:
        return check(["--validate", "--yes", *map(str, ended)]) == 0
    except Exception as error:  # a checker that breaks is no reason to lose the closing table
        err.print(Text(f"not checked: {type(error).__name__}: {error}", "bold red"))
        return False


def _plotted(ended: Sequence[Path], out: Console, err: Console) -> bool:
    """Pictures of all of them, by a process of its own: what draws is heavy."""
    newest = ended[-1]
    folder = newest.parent / f"{newest.name.partition('_')[0]}_curves"
    command = [sys.executable, str(PLOTTER), "--out", str(folder), *(f"{_label(path)}={path}" for path in ended)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (out if done.returncode == 0 else err).print(done.stdout + done.stderr, markup=False, soft_wrap=True, end="")
    return done.returncode == 0


def _label(path: Path) -> str:
    name = RunName.parse(path.name)
    return f"{name.baseline} s{name.seed} {name.world}" if name else path.name
