"""Modelled devices of a condition: how long one unit of work takes on each trainer.

A registry belongs to the condition and not to the seed, so that replicates differ in everything but
their devices. There are four sources, in seconds, all divided by `delays.factor`:

- `values`: trainer i takes entry i, in turn.
- `lognormal`: drawn by name (`flame.config.draws`), kept between `low` and `high`.
- `registry`: read from a file (`flame.config.registry`).
- `ai_benchmark`: each trainer is one phone, drawn by name, of those measured by AI-Benchmark. A score
  is a speed, so the delay is `reference_s` x median score / score: `reference_s` is what the phone
  in the middle takes. (On the 333 phones of the reference, 0.36 to 14.7 times that.)
"""

from statistics import median

from flame.config.condition import Condition
from flame.config.delays import AiBenchmark, Delays, Lognormal
from flame.config.draws import lognormal, uniform
from flame.config.registry import delays, scores
from flame.core.profile import Profile
from flame.core.rng import derive
from flame.core.time import seconds


def profiles(condition: Condition) -> dict[str, Profile]:
    """The profile of each trainer, by node, in the order of their names. Raises ConfigError for a file that won't do."""
    factor, nodes = condition.delays.factor, condition.nodes
    modelled = _modelled(condition.delays, nodes)
    return {node: Profile(node, seconds(delay / factor)) for node, delay in zip(nodes, modelled, strict=True)}


def _modelled(source: Delays, nodes: tuple[str, ...]) -> list[float]:
    if source.values is not None:
        return [source.values[number % len(source.values)] for number in range(len(nodes))]
    if source.registry is not None:
        return delays(source.registry, nodes, source.reuse)
    if source.ai_benchmark is not None:
        return _by_score(source.ai_benchmark, nodes)
    return [_draw(source.lognormal or Lognormal(), node) for node in nodes]


def _draw(law: Lognormal, node: str) -> float:
    return min(max(lognormal(law.mean, law.sd, uniform("delay", node)), law.low), law.high)


def _by_score(source: AiBenchmark, nodes: tuple[str, ...]) -> list[float]:
    measured = scores(source.path, source.score)
    middle = median(measured)
    return [source.reference_s * middle / measured[derive(0, "phone", node) % len(measured)] for node in nodes]
