"""The upload as it is: d v, as long as theta."""

from flame.core.messages import Payload
from flame.core.tensor import Tensor
from flame.policies.policy import Policy


class Dense(Policy):
    """Send `delta` (p,)."""

    def specimen(self, theta: Tensor) -> Payload:
        """A payload with the names, shapes and dtypes of every upload of this kind, before one is made: theta weighs what delta does."""
        return Payload("dense", {"delta": theta})
