"""How every figure looks: column width, embedded fonts, families that survive greyscale and colour blindness.

A baseline keeps its colour, line and marker in every figure of a paper.
"""

from dataclasses import dataclass

import matplotlib as mpl

COLUMN_INCHES = (3.4, 2.4)

RC = {
    "figure.figsize": COLUMN_INCHES, "figure.dpi": 200, "savefig.bbox": "tight", "pdf.fonttype": 42, "ps.fonttype": 42,
    "font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "lines.linewidth": 1.4, "legend.frameon": False,
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """One baseline's colour (Okabe and Ito's palette), line and marker."""

    colour: str
    line: str
    marker: str


LOOKS = (
    Look("#0072B2", "-", "o"),
    Look("#D55E00", "--", "s"),
    Look("#009E73", "-.", "^"),
    Look("#CC79A7", ":", "D"),
    Look("#000000", "-", "v"),
    Look("#56B4E9", "--", "P"),
    Look("#E69F00", "-.", "X"),
    Look("#999999", ":", "*"),
)


def use() -> None:
    """Draw without a screen, in this style."""
    mpl.use("Agg")
    mpl.rcParams.update(RC)
