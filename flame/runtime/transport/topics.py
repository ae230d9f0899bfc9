"""Names of a run's MQTT topics, one place for both directions.

flame/<run>/to/<node>            messages to a node
flame/<run>/presence/<worker>    retained: the trainers of a worker, or that they are gone
flame/<run>/beat/<worker>        heartbeats of its main loop
flame/<run>/end                  retained: the run is over
flame/<run>/invite               retained: what a worker from elsewhere needs to join
flame/<run>/echo/<client>        what a client sends to itself, to know that all before it went out

Where the broker knows users it is flame/<user>/<run>/...: one line of its access list keeps them apart.
"""

from dataclasses import dataclass

ROOT = "flame"
NAMED = ("to", "presence", "beat", "echo")
ALONE = ("end", "invite")


def check_level(what: str, name: str) -> str:
    """`name` if it may be one level of a topic. Raises ValueError naming the remedy."""
    if not name or any(sign in name for sign in "/+#\0") or len(name.encode()) > 200:
        raise ValueError(f"{what} `{name}` can't be part of an MQTT topic; use a name without / + # of at most 200 bytes")
    return name


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of `run`. user: whose, where the broker knows users."""

    run: str
    user: str | None = None

    def __post_init__(self) -> None:
        check_level("run", self.run)

    @property
    def root(self) -> str:
        """What they all begin with."""
        return "/".join(filter(None, (ROOT, self.user, self.run)))

    def to(self, node: str) -> str:
        """Messages to `node`."""
        return f"{self.root}/to/{node}"

    def presence(self, worker: str) -> str:
        """Who lives on `worker`; `+` for all."""
        return f"{self.root}/presence/{worker}"

    def beat(self, worker: str) -> str:
        """Heartbeats of `worker`; `+` for all."""
        return f"{self.root}/beat/{worker}"

    def echo(self, client: str) -> str:
        """What `client` sends to itself."""
        return f"{self.root}/echo/{client}"

    @property
    def end(self) -> str:
        """The end of the run."""
        return f"{self.root}/end"

    @property
    def invite(self) -> str:
        """What a worker from elsewhere needs to join."""
        return f"{self.root}/invite"

    def parse(self, topic: str) -> tuple[str, str] | None:
        """(kind, name) of one of this run's topics, None for any other. `end` and `invite` have no name."""
        if not topic.startswith(f"{self.root}/"):
            return None
        levels = topic.removeprefix(f"{self.root}/").split("/")
        if len(levels) == 1 and levels[0] in ALONE:
            return levels[0], ""
        return (levels[0], levels[1]) if len(levels) == 2 and levels[0] in NAMED else None
