"""The shelf: what can be sent down. The weights of this version, and what leads to them from the last ones.

The payload rule of the condition chooses from it, given what a trainer holds; how far back it reaches is the
rule's wish. Weights stand here as they travel (`payload.wire_dtype`): what a trainer holds is that, and a
difference leads from that to that. Whatever is made for one trainer is kept for the others of its version.

Reach and retention are two things. The reach is a function of versions: `held` is within it, or not. Retained are
weights until the step in which they were sent is carried out (`tidy`): one step may commit any number of versions, and
the session layer asks for the weights of each that it sent a difference of (`weights`).
"""

from collections.abc import Sequence

from flame.config.condition import Condition
from flame.core.messages import Payload
from flame.core.progress import Progress
from flame.core.tensor import Tensor
from flame.learn.params import Layout
from flame.learn.patch import patch
from flame.policies.payload import DOWN
from flame.policies.payload.log import DRAWN, Commit, Logged, committed, written
from flame.policies.payload.seeds import chosen
from flame.policies.payload.wire import travelling
from flame.policies.perturb.combined import seed_of
from flame.roles.cycle import Upload


class Shelf:
    """weights: `theta`, and `u` where guided perturbations want it."""

    def __init__(self, condition: Condition, weights: dict[str, Tensor], layout: Layout) -> None:
        self.version = 0
        self._seed, self._perturb, self._wire = condition.seed, condition.perturb, condition.payload.wire_dtype
        self._rule, self._logs = DOWN[condition.payload.down], condition.payload.down == "replay"
        self._drawn = condition.perturb.drawn(layout) if self._logs else 0
        self._full: dict[int, Payload] = {}
        self._oldest = 0
        self._commits: dict[int, Commit] = {}
        self._made: dict[tuple[str, int], Payload] = {}
        self._lay(weights)

    def payload(self, held: int | None) -> Payload:
        """What goes to a trainer that was sent version `held` last."""
        return self._rule.payload(held, self)

    def put(self, at: Progress, pool: Sequence[Upload], weights: dict[str, Tensor]) -> None:
        """The model has moved: by these uploads, at `at`, to these weights."""
        if self._logs:
            self._commits[at.model_version] = committed(at, [self._logged(upload) for upload in pool])
        self.version = at.model_version + 1
        self._made.clear()
        self._lay(weights)
        self._commits.pop(self.version - self._rule.keeps, None)

    def tidy(self) -> None:
        """A new step begins: drop the weights that are out of the rule's reach."""
        while self._reaches_to > self._oldest:
            del self._full[self._oldest]
            self._oldest += 1

    # ---- what a rule may look at

    def full(self) -> Payload:
        """The weights of this version."""
        return self._full[self.version]

    def weights(self, version: int) -> Payload:
        """Those of a version in reach, or of one that this step has left behind. Raises KeyError."""
        return self._full[version]

    def delta(self, held: int) -> Payload | None:
        """A patch of the held weights; u, where it is wanted, whole."""
        if held < self._reaches_to:
            return None
        if ("delta", held) not in self._made:
            now = self.full().tensors
            parts = patch(self._full[held].tensors["theta"], now["theta"])
            self._made["delta", held] = Payload("delta", parts | {name: now[name] for name in now if name != "theta"}, held)
        return self._made["delta", held]

    def log(self, held: int) -> Payload | None:
        """The commits since, where taking them again costs no more than `DRAWN`; u follows from the last of them."""
        if held < self._reaches_to:
            return None
        if ("log", held) not in self._made:
            commits = [self._commits[version] for version in range(held, self.version)]
            if self._drawn * sum(len(commit.uploads) for commit in commits) > DRAWN:
                return None
            self._made["log", held] = Payload("replay", written(commits, self.full().tensors["theta"]), held)
        return self._made["log", held]

    @property
    def _reaches_to(self) -> int:
        """The oldest version that the rule reaches back to."""
        return max(0, self.version - self._rule.keeps + 1)

    def _lay(self, weights: dict[str, Tensor]) -> None:
        self._full[self.version] = Payload("full", {name: travelling(values, self._wire) for name, values in weights.items()})

    def _logged(self, upload: Upload) -> Logged:
        row, sent = upload.row, upload.sent
        key = (self._seed, row.node, row.version, row.data_id, row.draw, row.id)
        return Logged(seed_of(self._perturb, key), upload.rate, sent.tensors["scalars"], chosen(sent))
