"""A pair over two hosts, made of network namespaces: another network stack, and another monotonic clock. Needs root, iproute2, mosquitto.

    python -m bench.two_hosts [RUN_SET] [--baseline NAME] [--clock-ahead 3600]

    host a   10.77.0.1   mosquitto with TLS and passwords, the launcher, the aggregator, worker w0
    host b   10.77.0.2   worker w1, its monotonic clock an hour ahead, its own run folder

The worker's books are copied beside the aggregator's, and the pair is judged. Then workers that must be refused try
to join a run: a wrong password, other data.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from flame.runtime.transport.access import PASSWORD
from tests.pairs.hosts import USERS, configured

A, B, PORT, USER = "10.77.0.1", "10.77.0.2", 8883, "alice"
ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 300.0


def sh(*command: str) -> None:
    """Run it, or raise."""
    subprocess.run(command, check=True)


@contextmanager
def two_hosts() -> Iterator[tuple[str, str]]:
    """Two namespaces with a cable between them."""
    names = f"flame-a-{os.getpid()}", f"flame-b-{os.getpid()}"
    for name in names:
        sh("ip", "netns", "add", name)
    try:
        sh("ip", "link", "add", "fa", "netns", names[0], "type", "veth", "peer", "name", "fb", "netns", names[1])
        for name, device, address in zip(names, ("fa", "fb"), (A, B), strict=True):
            sh("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
            sh("ip", "-n", name, "link", "set", device, "up")
            sh("ip", "-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


@contextmanager
def broker(host: str, folder: Path) -> Iterator[Path]:
    """Mosquitto on host a; the certificate of its authority."""
    process = subprocess.Popen(on(host, configured(folder, A, A, PORT)), stderr=subprocess.DEVNULL)
    sleep(1.0)
    try:
        yield folder / "ca.pem"
    finally:
        process.kill()
        process.wait()


def on(host: str, command: Sequence[str], ahead: int = 0) -> list[str]:
    """The command, on that host; its monotonic clock `ahead` seconds of ours."""
    clock = ["unshare", "--fork", "-T", "--monotonic", str(ahead), "--boottime", str(ahead)] if ahead else []
    return ["ip", "netns", "exec", host, *clock, *command]


def flame(*arguments: str) -> list[str]:
    """The command line of this tree."""
    return [sys.executable, "-c", "from flame.launch.cli import main; main()", *arguments]


def joining(ca: Path, run: str) -> list[str]:
    """How a worker joins."""
    return flame("worker", "--join", f"{A}:{PORT}", "--run", run, "--broker-user", USER, "--broker-ca", str(ca))


def invited(runs: Path) -> str:
    """The name of the real run, once it is there."""
    until = monotonic() + PATIENCE_S
    while monotonic() < until:
        found = sorted(runs.glob("*_real"))
        if found and (found[-1] / "launcher.json").exists():
            return found[-1].name
        sleep(0.1)
    raise TimeoutError(f"no real run in {runs} after {PATIENCE_S:.0f} s")


def main() -> int:
    """The pair, its ladder, and the refusals; 0 where all is as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_set", nargs="?", default="toy")
    parser.add_argument("--baseline", default="async_goal")
    parser.add_argument("--clock-ahead", type=int, default=3600, metavar="S")
    asked = parser.parse_args()
    environment = os.environ | {PASSWORD: USERS[USER], "PYTHONPATH": str(ROOT), "FLAME_DATA": str(ROOT / "data")}
    with tempfile.TemporaryDirectory() as made, two_hosts() as (one, two):
        here, there = Path(made) / "a", Path(made) / "b"
        here.mkdir()
        there.mkdir()
        with broker(one, Path(made)) as ca:
            access = ["--broker", f"{A}:{PORT}", "--broker-user", USER, "--broker-ca", str(ca), "--workers", "1", "--remote", "1"]
            run = flame("run", asked.run_set, "--only", asked.baseline, "--mode", "both", "--seeds", "1", "--yes", "--no-parity", *access)
            file = ["--experiments", str(ROOT / "experiments.yaml")]
            launcher = subprocess.Popen(on(one, [*run, *file]), cwd=here, env=environment)
            name = invited(here / "runs")
            wrong = subprocess.run(
                on(two, joining(ca, name)), cwd=there, env=environment | {PASSWORD: "a guess"}, capture_output=True, text=True, check=False
            )
            worker = subprocess.Popen(on(two, joining(ca, name), asked.clock_ahead), cwd=there, env=environment)
            codes = launcher.wait(PATIENCE_S), worker.wait(PATIENCE_S)
        for part in ("telemetry", "journal", "blobs"):
            shutil.copytree(there / "runs" / name / part, here / "runs" / name / part, dirs_exist_ok=True)
        judged = subprocess.run(flame("parity", "--yes", "runs"), cwd=here, env=environment, check=False).returncode
    print(f"launcher {codes[0]}, worker {codes[1]}, ladder {judged}; with a wrong password: {wrong.returncode}\n{wrong.stderr}")
    return 0 if (*codes, judged, wrong.returncode) == (0, 0, 0, 2) else 1


if __name__ == "__main__":
    sys.exit(main())
