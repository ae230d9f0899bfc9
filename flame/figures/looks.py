"""How figures look, and who looks how: a baseline keeps its name, colour, line and marker in every figure of a paper.

Colours are Okabe and Ito's. No two neighbours of the registry share line and marker, so that they can be told apart
without colour; bars have hatches for the same reason.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import matplotlib as mpl
from matplotlib.markers import MarkerStyle

COLUMN = 3.3
"""Inches: one column of a two-column page."""

RC = {
    "figure.figsize": (COLUMN, 2.2), "figure.dpi": 100, "savefig.dpi": 300, "figure.constrained_layout.use": True,
    "pdf.fonttype": 42, "ps.fonttype": 42, "pdf.compression": 6, "font.family": "DejaVu Sans", "font.size": 7.5,
    "axes.labelsize": 7.5, "axes.titlesize": 7.5, "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 6.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25, "grid.linewidth": 0.5,
    "axes.axisbelow": True, "lines.linewidth": 1.2, "lines.markersize": 3.5, "hatch.linewidth": 0.5,
    "legend.frameon": False, "legend.handlelength": 2.6,
}  # fmt: skip

OWN_WIDTH = 1.9
"""Line width of the own system."""

GREYS = ("#3b3b3b", "#bdbdbd", "#ffffff")
HATCHES = ("", "////", "....", "xxxx", "----", "\\\\\\\\", "++++", "oooo")


MARKERS = tuple(name for name, kind in MarkerStyle.markers.items() if isinstance(name, str) and len(name) == 1 and kind != "nothing")
"""Those of matplotlib that are one sign."""


@dataclass(frozen=True, slots=True)
class Look:
    """name: in legends. blind: instead of it, for review. own: the paper's own system, which is emphasised."""

    name: str
    colour: str
    line: str
    marker: str
    own: bool = False
    blind: str | None = None

    @property
    def width(self) -> float:
        """Of its line."""
        return OWN_WIDTH if self.own else 1.2

    def shown(self, *, blind: bool) -> str:
        """Its name, without telling whose it is where `blind`."""
        return (self.blind or "Ours") if blind and self.own else self.name


BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#7f7f7f",
)  # fmt: skip

REGISTRY = {
    "fluxtune_stable": Look("FluxTune-S", BLUE, "-", "o", own=True, blind="Ours"),
    "fluxtune_gate": Look("FluxTune-G", SKY, "--", "v", own=True, blind="Ours (gate)"),
    "fluxtune": Look("FluxTune", VERMILION, "--", "s"),
    "fluxtune_r1": Look("R1", ORANGE, ":", "<"),
    "fluxtune_r2": Look("R2", GREEN, "-.", ">"),
    "fluxtune_r3": Look("R3", PURPLE, (0, (5, 1, 1, 1)), "d"),  # type: ignore[arg-type]
    "fluxtune_sync": Look("FluxTune-S (sync)", SKY, ":", "p", own=True, blind="Ours (sync)"),
    "fluxtune_bp": Look("FluxTune-S (backprop)", GREY, "-", "X", own=True, blind="Ours (backprop)"),
    "fwdllm": Look("FwdLLM", BLACK, "-.", "D"),
    "fwdllm_plus": Look("FwdLLM++", ORANGE, ":", "^"),
    "async_goal": Look("Async", GREEN, "--", "P"),
    "backprop": Look("FedSGD", GREY, "-", "x"),
    "fedbuff": Look("FedBuff", PURPLE, "-.", "h"),
    "spry": Look("SPRY", GREEN, ":", "*"),
    "scalars": Look("Scalars", PURPLE, "--", "H"),
}
"""The shipped baselines."""

SPARE = (
    Look("", BLUE, "-", "o"), Look("", VERMILION, "--", "s"), Look("", BLACK, "-.", "D"), Look("", GREEN, ":", "^"),
    Look("", PURPLE, "-", "v"), Look("", ORANGE, "--", "P"), Look("", SKY, "-.", "X"), Look("", GREY, ":", "*"),
)  # fmt: skip
"""For those that aren't in the registry, in turn."""


def assigned(keys: Iterable[str], known: dict[str, Look]) -> dict[str, Look]:
    """A look for each key: its own, or the next spare one that nobody has."""
    found: dict[str, Look] = {key: known[key] for key in keys if key in known}
    taken = {(look.colour, look.marker) for look in found.values()}
    spare = [look for look in SPARE if (look.colour, look.marker) not in taken] or list(SPARE)
    for number, key in enumerate(key for key in keys if key not in known):
        found[key] = replace(spare[number % len(spare)], name=key)
    return found


def use() -> None:
    """Draw without a screen, in this style and no other."""
    mpl.use("Agg")
    mpl.rcdefaults()
    mpl.rcParams.update(RC)  # type: ignore[arg-type]
