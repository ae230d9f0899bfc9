"""What the upload is made of, instead of the upload: k slopes, and which probes, where the seed alone doesn't say.

    delta = (1/k) sum d_i v_i,   v_i a function of (seed, choice)

The seed is derived from the assign on both sides (`flame.policies.perturb.combined.seed_of`), so it doesn't travel. The
aggregator rebuilds delta with the functions that made it (`flame.policies.perturb.rebuilt`), bit for bit, and
the gate, the rates and the step see vectors as ever.
"""

from flame.core.messages import Payload
from flame.core.tasks import GradientResult
from flame.core.tensor import Tensor
from flame.learn.params import array, tensor, vector
from flame.policies.payload.rules import Terms, strange
from flame.policies.payload.wire import WireDtype, width
from flame.policies.perturb import rebuilt
from flame.policies.perturb.combined import Choice, Key, seed_of
from flame.policies.policy import Policy


class Seeds(Policy):
    """scalars (k,) in theta's dtype; choice (c,) uint8, for `best_of` and `guided`."""

    def packed(self, result: GradientResult, wire: WireDtype) -> Payload:
        """Scalars and choice. Raises ValueError for a result that has none."""
        if result.scalars is None:
            raise ValueError("`payload.up: seeds` sends scalars, and this result has none; its task knows no probes")
        told = {"scalars": result.scalars} | ({} if result.choice is None else {"choice": result.choice})
        return Payload("seeds", told)

    def most(self, terms: Terms) -> int:
        """Scalars in theta's dtype, a byte for each number of the choice."""
        scalars, choice = terms.perturb.told(terms.layout)
        return scalars * width(terms.layout.dtype, "f32") + choice

    def fault(self, payload: Payload, key: Key, terms: Terms) -> str | None:
        """They are those of the condition's `perturb`, on the assign's own share."""
        other = strange(payload, "seeds", {"scalars", "choice"} if terms.perturb.told(terms.layout)[1] else {"scalars"})
        if other is not None:
            return other
        scalars, choice = payload.tensors["scalars"], payload.tensors.get("choice")
        if scalars.dtype != terms.layout.dtype or len(scalars.shape) != 1:
            return f"brings {scalars} as its scalars, for a theta of {terms.layout.dtype}"
        if choice is not None and (choice.dtype != "uint8" or len(choice.shape) != 1):
            return f"brings {choice} as its choice, which is of uint8"
        if not terms.perturb.fits(seed_of(terms.perturb, key), terms.layout, scalars.shape[0], chosen(payload)):
            return (
                f"brings {scalars.shape[0]} scalars and the choice {list(chosen(payload))}, which no {type(terms.perturb).__name__} sends"
            )
        return None

    def delta(self, payload: Payload, key: Key, terms: Terms) -> Tensor:
        """The vector, rebuilt."""
        scalars = vector(payload.tensors["scalars"])
        return tensor(rebuilt(terms.perturb, seed_of(terms.perturb, key), terms.layout, scalars, chosen(payload)))


def chosen(payload: Payload) -> Choice:
    """The choice in a payload of this kind, () where there is none."""
    choice = payload.tensors.get("choice")
    return () if choice is None else tuple(array(choice).tolist())
