"""Names of a run's MQTT topics, one place for both directions.

flame/<run>/to/<node>            messages to a node
flame/<run>/presence/<worker>    retained: the trainers of a worker, or that they are gone
flame/<run>/beat/<worker>        heartbeats of its main loop
flame/<run>/end                  retained: the run is over
flame/<run>/echo/<client>        what a client sends to itself, to know that all before it went out
"""

from dataclasses import dataclass

ROOT = "flame"
NAMED = ("to", "presence", "beat", "echo")


def check_level(what: str, name: str) -> str:
    """`name` if it may be one level of a topic. Raises ValueError naming the remedy."""
    if not name or any(sign in name for sign in "/+#\0") or len(name.encode()) > 200:
        raise ValueError(f"{what} `{name}` can't be part of an MQTT topic; use a name without / + # of at most 200 bytes")
    return name


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of `run`."""

    run: str

    def __post_init__(self) -> None:
        check_level("run", self.run)

    def to(self, node: str) -> str:
        """Messages to `node`."""
        return f"{ROOT}/{self.run}/to/{node}"

    def presence(self, worker: str) -> str:
        """Who lives on `worker`; `+` for all."""
        return f"{ROOT}/{self.run}/presence/{worker}"

    def beat(self, worker: str) -> str:
        """Heartbeats of `worker`; `+` for all."""
        return f"{ROOT}/{self.run}/beat/{worker}"

    def echo(self, client: str) -> str:
        """What `client` sends to itself."""
        return f"{ROOT}/{self.run}/echo/{client}"

    @property
    def end(self) -> str:
        """The end of the run."""
        return f"{ROOT}/{self.run}/end"

    def parse(self, topic: str) -> tuple[str, str] | None:
        """(kind, name) of one of this run's topics, None for any other. `end` has no name."""
        levels = topic.split("/")
        if levels[:2] != [ROOT, self.run]:
            return None
        if levels[2:] == ["end"]:
            return "end", ""
        return (levels[2], levels[3]) if len(levels) == 4 and levels[2] in NAMED else None
