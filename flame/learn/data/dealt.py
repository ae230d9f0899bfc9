"""How a condition's data are dealt, and how they would be with another alpha: for studies, nothing is stored."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.core.rng import derive
from flame.learn.data.columnar import columns
from flame.learn.data.dataset import data_folder, find, load
from flame.learn.data.fednlp import method_name
from flame.learn.data.partition import Positions, deal


def dealt(condition: Condition, alpha: float | None = None) -> tuple[NDArray[np.int64], Mapping[str, Positions], int]:
    """Labels of all samples, positions of each client's, bins of a lap. alpha: of `niid_label`; None: the condition's own deal.

    Raises ConfigError where the condition has no data set, or it isn't there.
    """
    if condition.data is None:
        raise ConfigError(f"`task: {condition.task}` has no data set that is dealt", "give a run on text, such as one of `quick`")
    if alpha is None:
        own = load(condition)
        return own.columns.labels, own.parts, own.bins
    data = find(condition.data, data_folder())
    held, clients = columns(data), condition.trainers
    seed = derive(0, data.name, method_name("niid_label", clients, alpha), "train")
    parts = [held.train[part] for part in deal("niid_label", held.labels[held.train], clients, alpha, seed)]
    bins = min(len(part) for part in parts) // condition.batch_size
    return held.labels, dict(zip(condition.nodes, parts, strict=True)), min(bins, condition.max_bins or bins)
