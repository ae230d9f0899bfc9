"""The intake: what an answer must be like, and the vector that it stands for."""

from flame.config.condition import Condition
from flame.core.messages import Update
from flame.core.tensor import Tensor
from flame.learn.params import Layout
from flame.policies.payload import UP, Terms
from flame.policies.perturb.combined import Key
from flame.roles.roster import Row


class Intake:
    """Takes what the condition's upload rule sends."""

    def __init__(self, condition: Condition, layout: Layout) -> None:
        self._seed, self._rule = condition.seed, UP[condition.payload.up]
        self._terms = Terms(condition.perturb, layout, condition.payload.wire_dtype)

    @property
    def most(self) -> int:
        """Bytes of the longest upload's tensors."""
        return self._rule.most(self._terms)

    def misfit(self, row: Row, update: Update) -> str | None:
        """What is wrong with an answer to `row`: it must echo the row, and move theta and nothing else; None: nothing."""
        echo = (update.version, update.data_id, update.iteration, update.stamp)
        asked = (row.version, row.data_id, row.iteration, row.due)
        if echo != asked:
            return f"echoes (version, bin, iteration, due) {echo}, but {asked} was asked for"
        return self._rule.fault(update.payload, self._key(row), self._terms)

    def delta(self, row: Row, update: Update) -> Tensor:
        """The upload (p,) in theta's dtype."""
        return self._rule.delta(update.payload, self._key(row), self._terms)

    def _key(self, row: Row) -> Key:
        return self._seed, row.node, row.version, row.data_id, row.draw, row.id
