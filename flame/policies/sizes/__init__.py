"""How large a cycle is: K accepts close it, C assigns may be in flight. Both are sampled where a cycle opens, never in its middle."""

from typing import Annotated

from pydantic import Field

from flame.policies.policy import BY_NAME
from flame.policies.sizes.static import Static
from flame.policies.sizes.var_tracking import VarTracking
from flame.policies.sizes.view import Sizes, SizesRule, SizesView

DynamicSizes = Annotated[Static | VarTracking, Field(discriminator="type"), BY_NAME]

__all__ = ["DynamicSizes", "Sizes", "SizesRule", "SizesView", "Static", "VarTracking"]
