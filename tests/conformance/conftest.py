"""One broker per arm and session; each test has a run of its own on it."""

from collections.abc import Iterator

import pytest

from .arms import Arm, Peer, connect, missing, open_arm

ARMS = ["loopback", pytest.param("embedded", marks=pytest.mark.real), pytest.param("mosquitto", marks=pytest.mark.real)]


@pytest.fixture(scope="session", params=ARMS)
def arm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    """Each broker in turn."""
    why = missing(request.param)
    if why:
        pytest.skip(why)
    opened, close = open_arm(request.param, tmp_path_factory.mktemp(request.param))
    yield opened
    close()


@pytest.fixture
def run(request: pytest.FixtureRequest) -> str:
    """The name of a run that no other test uses."""
    return f"r-{abs(hash(request.node.nodeid)):x}"


class Bench:
    """Makes ends of one run and closes them after the test."""

    def __init__(self, arm: Arm, run: str) -> None:
        self.arm, self.run = arm, run
        self.peers: list[Peer] = []

    def worker(self, name: str = "w0", nodes: tuple[str, ...] = ("t0", "t1"), **more: object) -> Peer:
        """A worker that hosts `nodes`."""
        return self._keep(connect(self.arm, self.run, name, nodes, **more))  # type: ignore[arg-type]

    def aggregator(self, **more: object) -> Peer:
        """The aggregator's process."""
        return self._keep(connect(self.arm, self.run, "aggregator", ["aggregator"], listens=True, **more))  # type: ignore[arg-type]

    def _keep(self, peer: Peer) -> Peer:
        self.peers.append(peer)
        return peer


@pytest.fixture
def bench(arm: Arm, run: str) -> Iterator[Bench]:
    """Ends of one run, closed afterwards."""
    made = Bench(arm, run)
    yield made
    for peer in made.peers:
        peer.transport.close()
