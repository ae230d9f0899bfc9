"""What is done to a real run from inside, for `bench/explainer.py`: the main functions of its processes, with one fault.

A harm is a small JSON object in the environment (HARM), so that it reaches the processes that a fork server starts:
`{"what": "sleep", "id": 7, "seconds": 0.9}`.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from flame.core.messages import Update
from flame.core.tensor import Tensor
from flame.launch.processes import mains as processes
from flame.policies.select import Random
from flame.runtime.compute.executors import Beside
from flame.runtime.transport import codec
from flame.runtime.transport.mqtt import MqttTransport

HARM = "FLAME_HARM"


def worker(spec: processes.Spec, *rest: Any) -> None:
    """A worker with a fault."""
    _do(spec)
    processes.worker_main(spec, *rest)


def aggregator(spec: processes.Spec, pipe: Connection) -> None:
    """An aggregator with a fault."""
    _do(spec)
    processes.aggregator_main(spec, pipe)


def _do(spec: processes.Spec) -> None:
    harm = json.loads(spec.environment.get(HARM, "{}"))
    if harm:
        HARMS[harm["what"]](harm)


def _computing(harm: dict[str, Any], run: Callable[[Any, Any], Any]) -> None:
    """One assign is computed by `run(learner, task)`."""
    plain = Beside.submit

    def submit(self: Beside, job: tuple[str, int], task: Any, due: int) -> None:
        if job[1] == harm["id"]:
            self._learner = _Except(self._learner, task, run)  # type: ignore[assignment]
        plain(self, job, task, due)

    Beside.submit = submit  # type: ignore[method-assign]


class _Except:
    """A learner that does one task in another way, and is asked for all else as it is."""

    def __init__(self, learner: Any, task: Any, run: Callable[[Any, Any], Any]) -> None:
        self._learner, self._task, self._run = learner, task, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def run(self, task: Any) -> Any:
        return self._run(self._learner, task) if task is self._task else self._learner.run(task)


def _sleep(harm: dict[str, Any]) -> None:
    """A compute takes long."""

    def run(learner: Any, task: Any) -> Any:
        time.sleep(harm["seconds"])
        return learner.run(task)

    _computing(harm, run)


def _round(harm: dict[str, Any]) -> None:
    """A result has another last bit."""

    def run(learner: Any, task: Any) -> Any:
        result = learner.run(task)
        data = bytearray(result.delta.data)
        data[0] ^= 1
        return replace(result, delta=Tensor(result.delta.dtype, result.delta.shape, bytes(data)))

    _computing(harm, run)


def _on_send(harm: dict[str, Any], drop: bool) -> None:
    """The update of one assign is dropped, however often it is sent, or leaves late."""
    plain = MqttTransport.send

    def send(self: MqttTransport, to: str, src: str, data: bytes, measured: Any = None) -> None:
        msg = codec.decode(data)
        hit = isinstance(msg, Update) and msg.id == harm["id"]
        if hit and not drop:
            time.sleep(harm["seconds"])
        if not (hit and drop):
            plain(self, to, src, data, measured)

    MqttTransport.send = send  # type: ignore[method-assign]


def _choose(harm: dict[str, Any]) -> None:
    """One choice isn't a function of what the policy sees."""
    plain, calls = Random.choose, [0]

    def choose(self: Random, view: Any, want: int, state: None) -> Any:
        chosen, after = plain(self, view, want, state)
        calls[0] += 1
        others = [node for node in view.free if node not in chosen]
        if calls[0] >= harm["call"] and others and chosen and not harm.get("done"):
            harm["done"] = True
            chosen = sorted([*chosen[1:], others[os.getpid() % len(others)]])
        return chosen, after

    Random.choose = choose  # type: ignore[method-assign]


HARMS = {
    "sleep": _sleep,
    "drop": lambda harm: _on_send(harm, drop=True),
    "hold": lambda harm: _on_send(harm, drop=False),
    "choose": _choose,
    "round": _round,
}
