"""`flame probe`: whether a broker lets one in, how long a message takes, what a second carries, and who answers at its other side.

    trip      a message to ourselves, QoS 1, the median of some
    carries   some large messages to ourselves, one after another
    answer    another host that runs `flame probe --answer`: version, libraries, devices, digests of its data sets and model,
              and how far its clock is from ours

A clock's distance is (there - the middle of sending and hearing), as NTP has it; half a trip is its error. No run needs
it: it is for people who compare logs.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from queue import Empty, SimpleQueue
from statistics import median
from time import monotonic, time_ns
from typing import Any, Self

import orjson
from rich.console import Console
from rich.table import Table

from flame.config.errors import ConfigError
from flame.core.time import in_seconds
from flame.launch.processes.reaching import connect, reached
from flame.runtime.books.process_books import code_digest, libraries
from flame.runtime.transport.link import MqttLink, Raw, Wiring
from flame.runtime.transport.topics import ROOT

TRIPS, LARGE, LARGE_BYTES = 20, 8, 1 << 20
WAIT_S = 10.0
LISTEN_S = 2.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One host, as it says itself. asked: the question's number. clock: its wall clock, ns. data, model: digests, by name."""

    asked: int
    host: str
    code: str
    libraries: dict[str, str]
    devices: list[str]
    clock: int
    data: dict[str, str] = field(default_factory=dict)
    model: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, payload: bytes) -> Self:
        """From a message; what another version says besides is left out."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in orjson.loads(payload).items() if name in known})


class Line:
    """A connection to the broker, under a name of its own."""

    def __init__(self, broker: str, user: str | None, ca: str | None) -> None:
        host, port, access = reached(broker, user, ca)
        self.root = "/".join(filter(None, (ROOT, user, "probe")))
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self.heard: SimpleQueue[Any] = SimpleQueue()
        filters = [f"{self.root}/{self.name}", f"{self.root}/all"]
        self._link = MqttLink(
            Wiring(f"flame-{self.name}", host, port, filters, f"{self.root}/echo-{self.name}", None, self.heard.put, access)
        )
        connect(self._link, WAIT_S)

    def say(self, to: str, payload: bytes) -> None:
        """Send something to one, or to `all`."""
        self._link.publish(f"{self.root}/{to}", [payload])

    def hear(self, timeout_s: float) -> Raw | None:
        """The next message, None after `timeout_s`."""
        until = monotonic() + timeout_s
        while (left := until - monotonic()) > 0:
            try:
                mail = self.heard.get(timeout=left)
            except Empty:
                return None
            if isinstance(mail, Raw):
                return mail
        return None

    def close(self) -> None:
        """Leave nothing at the broker."""
        self._link.close(1.0)


def devices() -> list[str]:
    """Where torch could compute here."""
    import torch

    return [f"cpu, {os.cpu_count()} cores", *(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))]


def data_digests() -> dict[str, str]:
    """Of the rows of each data set that is prepared here, `$FLAME_DATA` or ./data."""
    from flame.learn.data import data_folder, find, present
    from flame.learn.data.columnar import columns

    found, folder = dict[str, str](), data_folder()
    for name in present(folder):
        try:
            found[name] = columns(find(name, folder)).digest
        except (ConfigError, OSError) as error:
            found[name] = f"can't be read ({type(error).__name__})"
    return found


def model_digests() -> dict[str, str]:
    """Of the model that comes as a package, where it is installed."""
    from flame.learn.pretrained import locate

    try:
        return {"minilm": locate("minilm").digest}
    except ConfigError:
        return {}


def answer(broker: str, user: str | None, ca: str | None, for_s: float, err: Console) -> int:
    """Answer those who probe, for a while. Raises ConfigError where the broker can't be used."""
    line = Line(broker, user, ca)
    here, data, model = devices(), data_digests(), model_digests()
    until = monotonic() + for_s
    err.print(f"answers at {broker} for {for_s:g} s; Ctrl-C ends it", markup=False)
    try:
        while (left := until - monotonic()) > 0:
            mail = line.hear(left)
            if mail is not None and mail.topic.endswith("/all"):
                question = orjson.loads(mail.payload)
                mine = Answer(question["number"], socket.gethostname(), code_digest(), libraries(), here, time_ns(), data, model)
                line.say(question["back"], orjson.dumps(asdict(mine)))
    except KeyboardInterrupt:
        pass
    finally:
        line.close()
    return 0


def probe(broker: str, user: str | None, ca: str | None, out: Console) -> int:
    """Measure, ask, and print a table. Raises ConfigError where the broker can't be used."""
    line = Line(broker, user, ca)
    try:
        trips = [_trip(line, b"x") for _ in range(TRIPS)]
        carried = [_trip(line, b"x" * LARGE_BYTES) for _ in range(LARGE)]
        answers = _asked(line)
    finally:
        line.close()
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_row("broker", broker)
    table.add_row("trip", f"{1e3 * median(trips):.2f} ms, {1e3 * min(trips):.2f} to {1e3 * max(trips):.2f} ms (n={TRIPS})")
    table.add_row("carries", f"{LARGE_BYTES / 1e6 / median(carried):.1f} MB/s there and back (n={LARGE} of {LARGE_BYTES >> 20} MiB)")
    table.add_row("here", f"flame {code_digest()}, {', '.join(devices())}")
    digests = {"data": data_digests(), "model": model_digests()}
    for kind, mine in digests.items():
        table.add_row("", f"{kind}: {', '.join(f'{name} {digest[:12]}' for name, digest in mine.items()) or 'none'}")
    for there, distance, error in answers:
        same = "the same flame" if there.code == code_digest() else f"another flame, {there.code}"
        table.add_row(there.host, f"{same}, {', '.join(there.devices)}, clock {distance:+.4f} s (error {error:.4f} s)")
        for name, version in libraries().items():
            if there.libraries.get(name) != version:
                table.add_row("", f"{name} {there.libraries.get(name, '-')} there, {version} here")
        for kind, theirs in (("data", there.data), ("model", there.model)):
            table.add_row("", f"{kind}: {', '.join(compared(digests[kind], theirs)) or 'none on either host'}")
    out.print(table)
    return 0


def compared(here: Mapping[str, str], there: Mapping[str, str]) -> Iterator[str]:
    """Of each name, whether both hosts have the same."""
    for name in sorted({*here, *there}):
        if name not in there or name not in here:
            yield f"{name} only {'here' if name in here else 'there'}"
        elif here[name] == there[name]:
            yield f"the same {name}"
        else:
            yield f"another {name} ({there[name][:12]} there, {here[name][:12]} here)"


def _trip(line: Line, payload: bytes) -> float:
    started = monotonic()
    line.say(line.name, payload)
    if line.hear(WAIT_S) is None:
        raise ConfigError(
            f"the broker takes messages of {len(payload)} bytes, and none came back within {WAIT_S:g} s",
            "look at its access list (`readwrite`), and at its largest packet",
        )
    return monotonic() - started


def _asked(line: Line) -> list[tuple[Answer, float, float]]:
    """Who has answered: it, how far its clock is from ours, and the error, s. Nobody: an empty list."""
    found: dict[str, tuple[Answer, float, float]] = {}
    for number in range(3):
        sent = time_ns()
        line.say("all", orjson.dumps({"number": number, "back": line.name}))
        until = monotonic() + LISTEN_S / 3
        while (left := until - monotonic()) > 0:
            mail = line.hear(left)
            if mail is None or mail.topic.endswith("/all"):
                continue
            there, half = Answer.read(mail.payload), (time_ns() - sent) // 2
            error = in_seconds(half)
            if there.asked == number and (there.host not in found or error < found[there.host][2]):
                found[there.host] = (there, in_seconds(there.clock - sent - half), error)
    return list(found.values())
