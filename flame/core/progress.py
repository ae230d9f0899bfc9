"""Where a run stands. A value: `roles/cycle.py` alone makes the next one."""

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """Ordinals of the data-bin algorithm (algorithms.md, section 1).

    round: laps over the bins. data_id: the bin. iteration: cycles closed in this bin.
    model_version: commits. cycle: closes since the start, kept or committed.
    """

    round: int = 0
    data_id: int = 0
    iteration: int = 0
    model_version: int = 0
    cycle: int = 0

    def __str__(self) -> str:
        return f"round {self.round}, bin {self.data_id}, iteration {self.iteration}, version {self.model_version}"
