"""What a trainer holds: the weights of one version, brought up to date by whatever an assign carries."""

from dataclasses import dataclass

from flame.config.condition import Condition
from flame.core.messages import Payload
from flame.core.tensor import Tensor
from flame.learn.params import Layout
from flame.learn.patch import patched
from flame.policies.payload.log import Rules, read, retaken


@dataclass(slots=True)
class Held:
    """Weights as they travelled. theta: (p,). u: (p,), where guided perturbations want it."""

    version: int
    theta: Tensor
    u: Tensor | None

    @classmethod
    def of(cls, version: int, payload: Payload) -> "Held":
        """What a payload of full weights brings."""
        return cls(version, payload.tensors["theta"], payload.tensors.get("u"))


def advanced(held: Held, version: int, data_id: int, payload: Payload, condition: Condition, layout: Layout | None) -> Held:
    """What `held` becomes by a payload that builds on it. Raises ValueError where that doesn't lead to the sender's weights."""
    if payload.kind == "delta":
        return Held(version, patched(held.theta, payload.tensors), payload.tensors.get("u"))
    commits, digest = read(payload.tensors)
    rules = Rules(condition.perturb, condition.server_opt, layout or Layout.whole(held.theta))
    theta, direction = retaken(held.theta, commits, rules)
    if theta.digest != digest:
        raise ValueError(
            f"replaying {len(commits)} commits from version {held.version} gave weights {theta.digest}, the aggregator has {digest}; "
            "this machine computes other bits than the aggregator's: use `payload.down: once_per_version`"
        )
    return Held(version, theta, direction if condition.perturb.wants_direction(version, data_id) else None)
