"""How the model moves along the aggregate G at a commit."""

from typing import Annotated

from flame.policies.policy import BY_NAME
from flame.policies.server_opt.sgd import Sgd

ServerOpt = Annotated[Sgd, BY_NAME]

__all__ = ["ServerOpt", "Sgd"]
