"""Two hosts: a worker that joins through a broker with TLS and passwords, and those who are refused."""

import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from flame.config import World
from flame.config.errors import ConfigError
from flame.launch.processes.joining import join
from flame.launch.processes.probing import data_digests, model_digests
from flame.launch.screen.ui import Quiet
from flame.runtime.books.process_books import code_digest
from flame.runtime.books.replay import replay
from flame.runtime.brokers.broker import find_mosquitto
from flame.runtime.transport.access import PASSWORD
from flame.runtime.transport.invitation import BadInvitation, Invitation
from flame.runtime.transport.link import MqttLink, Raw, Wiring
from flame.runtime.transport.topics import Topics
from flame.telemetry.rundir import RunDir

from .hosts import USERS, Shared, command, shared_broker, worker
from .support import ASYNC, GATED, broken, condition, cycles, kill_aggregator, run_for_real, simulate

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto isn't installed: apt-get install mosquitto"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_broker(tmp_path_factory.mktemp("shared") / "broker") as running:
        yield running


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher is alice's."""
    monkeypatch.setenv(PASSWORD, USERS["alice"])


class Elsewhere(Quiet):
    """Starts workers elsewhere as soon as the run has a name; `at` a cycle it may kill one and start it again."""

    def __init__(self, shared: Shared, folder: Path, count: int = 1, dies_at: int | None = None) -> None:
        self.shared, self.folder, self.count, self.dies_at = shared, folder, count, dies_at
        self.processes: list[Any] = []
        self.notes: list[str] = []

    def started(self, name: str, world: str) -> None:
        self.name = name
        for number in range(self.count):
            self._start("--slot", f"w{number + 1}")

    def _start(self, *more: str) -> None:
        self.processes.append(worker(self.shared, self.name, self.folder, "alice", None, *more))

    def closed(self, now_ns: int, wall_s: float, cycle: int, *rest: Any) -> None:
        if self.dies_at is not None and cycle >= self.dies_at:
            self.dies_at = None
            self.processes[0].kill()
            self._start()

    def noted(self, text: str) -> None:
        self.notes.append(text)


def world(shared: Shared, **more: Any) -> dict[str, Any]:
    return {"broker": shared.address, "broker_user": "alice", "broker_ca": str(shared.ca), "workers": 1, "remote": 1} | more


def brought_home(real: Path, folder: Path) -> RunDir:
    """The worker's books copied beside the aggregator's, as one would from another host."""
    for part in ("telemetry", "journal", "blobs"):
        shutil.copytree(folder / "runs" / real.name / part, real / part, dirs_exist_ok=True)
    return RunDir(real)


@pytest.mark.parametrize(("shape", "dies_at"), [(GATED, None), (ASYNC, 6)], ids=["gated", "async, one dies and joins again"])
def test_a_pair_over_two_hosts_is_exact(shape: dict[str, Any], dies_at: int | None, shared: Shared, tmp_path: Path) -> None:
    what = condition(shape)
    sim, ui = simulate(what, tmp_path), Elsewhere(shared, tmp_path / "elsewhere", dies_at=dies_at)
    real = run_for_real(what, tmp_path, ui, **world(shared))
    assert real.verdict == "COMPLETED", real.reason
    assert "flame worker --join localhost:" in ui.notes[0]
    assert [process.wait(20) for process in ui.processes] == ([0] if dies_at is None else [-signal.SIGKILL, 0])
    assert cycles(real) == cycles(sim)
    home = brought_home(real.path, ui.folder)
    assert [node for node in replay(home.path) if node.difference or node.skipped or not node.steps] == []
    assert broken(home.path, sim.path) == []


def test_who_leaves_for_good_takes_its_trainers_along(shared: Shared, tmp_path: Path) -> None:
    class Leaver(Elsewhere):
        def _start(self, *more: str) -> None:
            if not self.processes:
                super()._start(*more)

    what = condition(ASYNC, goal=2, concurrency=4, limits={"heartbeat_s": 0.25, "grace_s": 1.0, "ready_wait_s": 10})
    ui = Leaver(shared, tmp_path / "elsewhere", dies_at=3)
    real = run_for_real(what, tmp_path, ui, **world(shared))
    assert real.verdict == "COMPLETED", real.reason
    assert any("it may join again" in note for note in ui.notes)
    assert any("its trainers are lost" in note for note in ui.notes)
    assert set(real.frame("intrusion")["what"].str.contains("nobody joined in its place")) == {True}


def test_a_worker_without_a_run_ends_by_itself(shared: Shared, tmp_path: Path) -> None:
    """The launcher is gone without a word: neither an end, nor heartbeats."""
    what = condition(ASYNC, stop={"cycles": 100_000}, limits={"heartbeat_s": 0.25, "ready_wait_s": 20})
    ui = Elsewhere(shared, tmp_path / "elsewhere")
    ui.closed = lambda *rest: kill_aggregator(tmp_path / ui.name)  # type: ignore[method-assign]
    assert run_for_real(what, tmp_path, ui, **world(shared)).verdict == "CRASH"
    process = ui.processes[0]
    assert process.wait(60) == 1
    assert "nothing was heard of the run for 20 s" in process.stderr.read()


def test_wrong_credentials_are_refused(shared: Shared, tmp_path: Path) -> None:
    process = worker(shared, "any", tmp_path, "alice", "a guess")
    assert process.wait(60) == 2
    said = process.stderr.read() if process.stderr else ""
    assert "config error" in said
    assert "hint:" in said
    assert "authori" in said.lower()
    assert not (tmp_path / "runs").exists()


def test_a_launcher_with_wrong_credentials_is_refused_before_anything_runs(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "a guess")
    real = run_for_real(condition(ASYNC), tmp_path, **world(shared))
    assert (real.verdict, "not authorised" in real.reason) == ("CRASH", True)
    monkeypatch.delenv(PASSWORD)
    with pytest.raises(ConfigError, match=r"password of `alice` at the broker isn't given\nhint: .*FLAME_BROKER_PASSWORD"):
        run_for_real(condition(ASYNC), tmp_path / "none", **world(shared))
    assert not (tmp_path / "none").exists()


def link(shared: Shared, user: str, *filters: str) -> tuple[MqttLink, "SimpleQueue[Any]"]:
    """A connected client of that user, and what it hears."""
    heard: SimpleQueue[Any] = SimpleQueue()
    made = MqttLink(
        Wiring(f"{user}-{id(heard)}", "localhost", shared.port, filters, f"flame/{user}/echo", None, heard.put, shared.access(user))
    )
    made.connect(10)
    return made, heard


def hear(heard: "SimpleQueue[Any]", seconds: float = 1.0) -> list[Raw]:
    found = []
    while True:
        try:
            mail = heard.get(timeout=seconds)
        except Empty:
            return found
        if isinstance(mail, Raw):
            found.append(mail)


def test_a_user_can_neither_read_nor_write_the_runs_of_another(shared: Shared) -> None:
    """The access list of docs/hosts.md: `pattern readwrite flame/%u/#`."""
    hers, at_hers = link(shared, "alice", "flame/alice/run/to/t0")
    his, at_his = link(shared, "bob", "flame/bob/#")
    try:
        hers.publish("flame/alice/run/to/t0", [b"hers"])
        his.publish("flame/alice/run/to/t0", [b"forged"])
        his.publish("flame/bob/run/to/t0", [b"his"])
        assert his.flush(10)
        assert hers.flush(10)
        assert [mail.payload for mail in hear(at_hers)] == [b"hers"]
        assert [mail.payload for mail in hear(at_his)] == [b"his"]
    finally:
        hers.close(1)
        his.close(1)


def test_a_user_hears_nothing_of_another_where_the_broker_lets_it_subscribe(shared: Shared) -> None:
    hers, _ = link(shared, "alice", "flame/alice/run/beat/w0")
    his, at_his = link(shared, "bob", "flame/alice/#", "flame/bob/#")
    try:
        hers.publish("flame/alice/run/to/t0", [b"hers"], retain=True)
        assert hers.flush(10)
        his.publish("flame/bob/run/to/t0", [b"his"])
        assert his.flush(10)
        assert [mail.payload for mail in hear(at_his)] == [b"his"]
    finally:
        hers.publish("flame/alice/run/to/t0", [b""], retain=True)
        hers.close(1)
        his.close(1)


def test_a_probe_measures_the_broker_and_who_answers(shared: Shared) -> None:
    user = ("--broker-user", "alice", "--broker-ca", str(shared.ca))
    other = command("probe", shared.address, "--answer", "--for", "40", *user)
    try:
        assert other.stderr is not None
        assert "answers at" in other.stderr.readline()
        done = command("probe", shared.address, *user)
        told, _ = done.communicate(timeout=60)
    finally:
        other.terminate()
        other.wait(10)
    assert done.returncode == 0
    lines = {line.split()[0]: line for line in told.splitlines()}
    assert float(lines["trip"].split()[1]) < 5_000
    assert "MB/s there and back" in lines["carries"]
    clock = re.search(r"the same flame, .*clock ([+-][\d.]+) s \(error ([\d.]+) s\)", told)
    assert clock is not None, told
    assert abs(float(clock[1])) <= float(clock[2]) + 1e-4, "one host has one clock"
    mine = ", ".join(f"the same {name}" for name in sorted(data_digests()))
    assert f" data: {mine or 'none on either host'}" in told
    assert f" model: {'the same minilm' if model_digests() else 'none on either host'}" in told


def test_a_probe_of_what_is_no_broker_is_refused(shared: Shared) -> None:
    for broker, said in ((f"localhost:{shared.port + 1}", "can't reach a broker"), ("localhost", "there is no broker `localhost`")):
        done = command("probe", broker)
        _, told = done.communicate(timeout=60)
        assert (done.returncode, said in told, "hint:" in told) == (2, True, True), told


INVITED = Invitation(
    "faked", condition(ASYNC).model_dump(mode="json"), World(kind="real", broker="localhost:1", remote=1).model_dump(mode="json"),
    "init", "data", "code", {"w1": ["t1"]},
)  # fmt: skip


@pytest.fixture
def invited(shared: Shared) -> Iterator[Any]:
    """Put an invitation at the door of the run `faked`."""
    made, _ = link(shared, "alice", "flame/alice/faked/beat/w0")
    topic = Topics("faked", "alice").invite

    def invite(invitation: bytes) -> None:
        made.publish(topic, [invitation], retain=True)
        assert made.flush(10)

    yield invite
    invite(b"")
    made.close(1)


class Silent:
    def print(self, *args: Any, **rest: Any) -> None:
        """Nothing."""


def refused(shared: Shared, folder: Path, run: str = "faked", slot: str | None = None, wait: float = 5.0) -> str:
    with pytest.raises(ConfigError) as error:
        join(shared.address, run, slot, "alice", str(shared.ca), wait, folder, Silent())  # type: ignore[arg-type]
    assert not folder.exists() or not list(folder.iterdir()), "nothing was begun"
    return str(error.value)


def test_another_version_is_refused(shared: Shared, invited: Any, tmp_path: Path) -> None:
    invited(replace(INVITED, code="0.0.9+abc").packed())
    said = refused(shared, tmp_path / "runs")
    assert "`faked` runs flame 0.0.9+abc, this is" in said
    assert "install the same version" in said


def test_other_data_are_refused(shared: Shared, invited: Any, tmp_path: Path) -> None:
    invited(replace(INVITED, code=code_digest(), data="other+none").packed())
    said = refused(shared, tmp_path / "runs")
    assert "its data digest is other+none, here it is" in said
    assert "flame data prepare" in said


def test_an_unknown_slot_and_a_run_that_is_full_are_refused(shared: Shared, invited: Any, tmp_path: Path) -> None:
    invited(INVITED.packed())
    assert "unknown worker `w7` of `faked`" in refused(shared, tmp_path / "runs", slot="w7")
    invited(replace(INVITED, slots={}).packed())
    assert "all workers of `faked` from elsewhere are there" in refused(shared, tmp_path / "runs")


def test_what_is_no_invitation_is_refused(shared: Shared, invited: Any, tmp_path: Path) -> None:
    invited(b"hello")
    assert "the invitation to `faked`: it can't be read" in refused(shared, tmp_path / "runs")


def test_nobody_invites(shared: Shared, tmp_path: Path) -> None:
    assert "nobody has invited to `elsewhere` within 1 s" in refused(shared, tmp_path / "runs", run="elsewhere", wait=1.0)


def test_an_invitation_of_another_schema_says_so() -> None:
    with pytest.raises(BadInvitation, match="it has schema 99, and this version reads 1"):
        Invitation.unpacked(replace(INVITED, schema=99).packed())
    assert Invitation.unpacked(INVITED.packed()) == INVITED
