"""The kinds of figures, by the name that `family:` gives."""

from flame.figures.families.ablation import Ablation
from flame.figures.families.bars import Bars, ProductivityBars
from flame.figures.families.family import Family
from flame.figures.families.learning import Learning
from flame.figures.families.sessions import Sessions
from flame.figures.families.stacked import Bytes, Utilisation
from flame.figures.families.sweep import Sweep
from flame.figures.families.variance import VarianceDecay

FAMILIES: dict[str, type[Family]] = {
    "learning": Learning, "bars": Bars, "productivity": ProductivityBars, "utilisation": Utilisation, "bytes": Bytes,
    "sessions": Sessions, "variance": VarianceDecay, "ablation": Ablation, "sweep": Sweep,
}  # fmt: skip

__all__ = ["FAMILIES", "Family"]
