"""A folder with an experiments.yaml of its own, and the command line run in it."""

import errno
import io
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from flame.launch.cli import app
from flame.launch.screen import consoles

SECTIONS: dict[str, Any] = {
    "baselines": {
        "gated": {"select": {"type": "random"}, "commit": [{"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 9}]},
        "plain": {"commit": ["agg_goal"], "loop": "async", "estimator": {"type": "backprop"}, "server_opt": {"type": "sgd", "lr": 0.5}},
    },
    "run_sets": {
        "small": {
            "about": "four trainers on made-up data", "task": "toy", "toy": {"samples": 32}, "trainers": 4, "goal": 2, "concurrency": 3,
            "delays": {"values": [0.05, 0.06, 0.08]}, "eval": {"rows": 64}, "stop": {"cycles": 5},
            "baselines": ["gated", "plain"], "seeds": [1],
        }
    },
}  # fmt: skip

Flame = Callable[..., Result]


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """From now on the screens are `width` columns wide."""
    monkeypatch.setenv("COLUMNS", str(width))
    consoles.out.cache_clear()
    consoles.err.cache_clear()


@pytest.fixture
def sections() -> dict[str, Any]:
    """What stands in the file; a test may change it before it runs anything."""
    return yaml.safe_load(yaml.safe_dump(SECTIONS))  # type: ignore[no-any-return]


@pytest.fixture
def flame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sections: dict[str, Any]) -> Flame:
    """`flame ...` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLAME_DATA", str(tmp_path / "data"))
    terminal(monkeypatch, 140)

    def invoke(*arguments: str, answer: str | None = None) -> Result:
        (tmp_path / "experiments.yaml").write_text(yaml.safe_dump(sections))
        return CliRunner().invoke(app, arguments, input=answer)

    return invoke


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """Make a folder somebody else's: nobody is told what is in it, nor opens it. Permissions would stop everybody but root."""

    def close(folder: Path) -> Path:
        def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
            def refuse(path: Any = ".", *rest: Any, **named: Any) -> Any:
                place = Path(os.path.abspath(path)) if isinstance(path, str | os.PathLike) else None
                if place is not None and (folder in place.parents or (folder == place and call in listings)):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
                return call(path, *rest, **named)

            return refuse

        listings = (os.scandir, os.listdir)
        for module, name in ((os, "stat"), (os, "lstat"), (os, "scandir"), (os, "listdir"), (os, "unlink"), (io, "open")):
            monkeypatch.setattr(module, name, guarded(getattr(module, name)))
        return folder

    return close


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How processes were started from now on; they are not."""
    platform.processor()  # libraries ask for it when they are imported; it runs `uname`, once
    ways: list[str] = []

    def instead(way: str) -> Callable[..., int]:
        def start(*arguments: Any) -> int:
            ways.append(way)
            raise OSError(f"no process may be started, {way} was asked for one")

        return start

    for way in ("subprocess._fork_exec", "_posixsubprocess.fork_exec", "os.fork", "os.posix_spawn"):
        monkeypatch.setattr(way, instead(way))
    return ways


@pytest.fixture
def refused(flame: Flame, tmp_path: Path, begun: list[str]) -> Callable[[Sequence[str]], str]:
    """Run a command that must be refused; the message. Nothing is started and nothing is left."""

    def invoke(arguments: Sequence[str]) -> str:
        result = flame(*arguments)
        assert result.exit_code == 2, result.output
        assert begun == []
        assert not (tmp_path / "runs").exists()
        return " ".join(result.output.split())

    return invoke
