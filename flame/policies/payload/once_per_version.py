"""Weights once per trainer and model version, afterwards VAR_BAD (FluxTune; algorithms.md, section 6)."""

from flame.policies.policy import Policy


class OncePerVersion(Policy):
    """Send `none` when the trainer was sent this version before."""

    def kind(self, held: int | None, version: int) -> str:
        """`none` or `full`. held: the last version sent to this trainer, None before the first."""
        return "none" if held == version else "full"
