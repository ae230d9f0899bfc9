"""flame: one federated-learning code, run for real and simulated, and proof that the two agree."""

__version__ = "0.1.0"
