"""The upload itself, d v."""

from flame.core.messages import Payload
from flame.core.tasks import GradientResult
from flame.core.tensor import Tensor
from flame.learn.bfloat16 import widened
from flame.policies.payload.rules import Terms, strange
from flame.policies.payload.wire import WireDtype, travelling, width, wire_name
from flame.policies.perturb.combined import Key
from flame.policies.policy import Policy


class Dense(Policy):
    """delta (p,)."""

    def packed(self, result: GradientResult, wire: WireDtype) -> Payload:
        """The vector, as it travels."""
        return Payload("dense", {"delta": travelling(result.delta, wire)})

    def most(self, terms: Terms) -> int:
        """As many numbers as theta has."""
        return terms.layout.size * width(terms.layout.dtype, terms.wire)

    def fault(self, payload: Payload, key: Key, terms: Terms) -> str | None:
        """It moves theta and nothing else."""
        other = strange(payload, "dense", {"delta"})
        if other is not None:
            return other
        delta, wanted = payload.tensors["delta"], (wire_name(terms.layout.dtype, terms.wire), (terms.layout.size,))
        if (delta.dtype, delta.shape) != wanted:
            return f"brings {delta} as its delta, for a theta of {wanted[0]}{list(wanted[1])}"
        return None

    def delta(self, payload: Payload, key: Key, terms: Terms) -> Tensor:
        """The vector, in theta's dtype again."""
        return widened(payload.tensors["delta"], terms.layout.dtype)
