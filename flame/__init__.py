"""flame: one federated-learning code, run for real and simulated, and proof that the two agree."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`flame.run` and `flame.Run`, imported when they are asked for: the vocabulary needs no launcher."""
    if name in ("run", "Run"):
        from flame.launch import run as launch

        return getattr(launch, name)
    raise AttributeError(f"module `flame` has no `{name}`")
