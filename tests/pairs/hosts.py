"""A broker as two hosts would share it: TLS, passwords, and an access list that keeps users apart."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import trustme

from flame.config.condition import Limits
from flame.runtime.brokers.broker import LOOPBACK, _free_port, find_mosquitto, mosquitto_configuration
from flame.runtime.transport.access import PASSWORD, Access
from flame.runtime.transport.probe import probe

USERS = {"alice": "alice's secret", "bob": "bob's secret"}
ACL = "pattern readwrite flame/%u/#\n"


@dataclass(frozen=True)
class Shared:
    """A running broker. ca: its authority's certificate."""

    port: int
    ca: Path

    @property
    def address(self) -> str:
        """As `--broker` takes it."""
        return f"localhost:{self.port}"

    def access(self, user: str) -> Access:
        """That user's, with the right password."""
        return Access(user, USERS[user], str(self.ca))


def configured(folder: Path, host: str, address: str, port: int) -> list[str]:
    """How to start mosquitto on that address, with a certificate for `host`, the users' passwords and the access list."""
    program = find_mosquitto()
    assert program is not None
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    server = authority.issue_cert(host)
    server.private_key_pem.write_to_path(folder / "key.pem")
    server.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    (folder / "acl").write_text(ACL)
    passwords = folder / "passwords"
    passwords.touch(0o600)
    for user, password in USERS.items():
        subprocess.run(["mosquitto_passwd", "-b", str(passwords), user, password], check=True, env=_with_sbin(), capture_output=True)
    lines = mosquitto_configuration(port, Limits()).replace("allow_anonymous true", "allow_anonymous false").replace(LOOPBACK, address)
    files = {"certfile": "cert.pem", "keyfile": "key.pem", "password_file": "passwords", "acl_file": "acl"}
    (folder / "mosquitto.conf").write_text(lines + "".join(f"{key} {folder / name}\n" for key, name in files.items()))
    return [program, "-c", str(folder / "mosquitto.conf")]


@contextmanager
def shared_broker(folder: Path) -> Iterator[Shared]:
    """Mosquitto with TLS on a free port of this host."""
    folder.mkdir(parents=True)
    port = _free_port()
    command = configured(folder, "localhost", LOOPBACK, port)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        shared = Shared(port, folder / "ca.pem")
        _await(shared)
        yield shared
    finally:
        process.kill()
        process.wait()


def _with_sbin() -> dict[str, str]:
    return os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"}


def _await(shared: Shared) -> None:
    until = monotonic() + 10
    while True:
        try:
            probe("localhost", shared.port, 1.0, access=shared.access("alice"))
            return
        except OSError:
            if monotonic() > until:
                raise
            sleep(0.05)


def command(*arguments: str, folder: Path | None = None, password: str = USERS["alice"]) -> "subprocess.Popen[str]":
    """`flame ...` in a process of its own."""
    environment = os.environ | {PASSWORD: password, "COLUMNS": "200"}
    code = [sys.executable, "-c", "from flame.launch.cli import main; main()"]
    pipe = subprocess.PIPE
    return subprocess.Popen([*code, *arguments], cwd=folder, text=True, stdout=pipe, stderr=pipe, env=environment)


def worker(shared: Shared, run: str, folder: Path, user: str = "alice", password: str | None = None, *more: str) -> "subprocess.Popen[str]":
    """`flame worker`, as on another host: its own folder, nothing shared but the broker."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--join", shared.address, "--run", run, "--broker-user", user, "--broker-ca", str(shared.ca), *more]
    return command("worker", *options, folder=folder, password=USERS[user] if password is None else password)
