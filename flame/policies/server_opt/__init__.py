"""How the model moves along the aggregate G at a commit."""

from typing import Annotated

from pydantic import Field

from flame.policies.policy import BY_NAME
from flame.policies.server_opt.adagrad import Adagrad
from flame.policies.server_opt.adam import Adam
from flame.policies.server_opt.clip import Clip
from flame.policies.server_opt.momentum import Momentum
from flame.policies.server_opt.nesterov import Nesterov
from flame.policies.server_opt.sgd import Sgd
from flame.policies.server_opt.step import ServerStep
from flame.policies.server_opt.trust_ratio import TrustRatio
from flame.policies.server_opt.view import StepView
from flame.policies.server_opt.yogi import Yogi

ServerOpt = Annotated[
    Adagrad | Adam | Clip | Momentum | Nesterov | Sgd | TrustRatio | Yogi, Field(discriminator="type"), BY_NAME
]  # fmt: skip

STATELESS = (Sgd, TrustRatio)
"""Steps that are functions of theta, G and progress alone, so that whoever has these can take them again."""


def stateless(step: ServerOpt) -> bool:
    """Whether a step, or what stands behind its clip, is one of them."""
    return isinstance(step.before if isinstance(step, Clip) else step, STATELESS)


__all__ = [
    "Adagrad",
    "Adam",
    "Clip",
    "Momentum",
    "Nesterov",
    "ServerOpt",
    "ServerStep",
    "Sgd",
    "StepView",
    "TrustRatio",
    "Yogi",
    "stateless",
]
