"""How a run shows itself while it goes: one live line on a terminal, plain lines elsewhere.

`Live` redraws a line on stderr; `Plain` writes a line every few seconds and at the end, for logs and
pipes. Both say the same, in the same order: progress ordinals, virtual and wall time, sim_rate,
accuracy and loss, assignments in flight, and the time left where a stop rule tells. A narrow terminal
drops columns from the right; without colour nothing is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TextIO

from flame.config.stops import StopRules
from flame.core.time import in_seconds

PLAIN_PAUSE_S = 5.0
"""Seconds between two plain lines."""
LIVE_PAUSE_S = 0.1
BAR = 12
GOOD = ("COMPLETED", "CONVERGED")


@dataclass(slots=True)
class State:
    """What is known of the run so far."""

    name: str = ""
    world: str = ""
    now_ns: int = 0
    wall_s: float = 0.0
    cycle: int = 0
    round: int = 0
    data_id: int = 0
    iteration: int = 0
    version: int = 0
    in_flight: int = 0
    accuracy: float | None = None
    loss: float | None = None
    begun: float = field(default_factory=monotonic)

    def share(self, rules: StopRules) -> float | None:
        """How much of the run is done, by the stop rule that is nearest; None before the first close, or without one."""
        budget = in_seconds(self.now_ns) / rules.runtime_s if rules.runtime_s else 0.0
        parts = [self.cycle / rules.cycles if rules.cycles else 0.0, self.version / rules.commits if rules.commits else 0.0, budget]
        return min(max(parts), 1.0) or None

    def left_s(self, rules: StopRules) -> float | None:
        """Wall seconds to the end at the pace so far."""
        share = self.share(rules)
        return None if share is None else self.wall_s * (1 - share) / share


def columns(state: State, rules: StopRules) -> list[str]:
    """What is said, the most telling first; absent is `-`."""
    of = f"/{rules.cycles}" if rules.cycles else ""
    version = f"/{rules.commits}" if rules.commits else ""
    rate = in_seconds(state.now_ns) / state.wall_s if state.wall_s else None
    simulated = state.world == "sim"
    left = state.left_s(rules)
    return [
        f"cycle {state.cycle}{of}",
        f"version {state.version}{version}",
        f"acc {'-' if state.accuracy is None else f'{state.accuracy:.3f}'}",
        f"loss {'-' if state.loss is None else f'{state.loss:.3f}'}",
        *([f"{span(in_seconds(state.now_ns))} virtual"] if simulated else []),
        f"{span(state.wall_s)} wall",
        *([f"{rate:.1f}x"] if rate is not None and simulated else []),
        f"round {state.round} bin {state.data_id} it {state.iteration}",
        f"{state.in_flight} in flight",
        *([f"{span(left)} left"] if left else []),
    ]


def fitted(parts: Sequence[str], width: int) -> str:
    """As many of `parts` as fit into `width`, the first one cut if even that doesn't."""
    line = ""
    for part in parts:
        longer = f"{line}  {part}" if line else part
        if len(longer) > width:
            break
        line = longer
    return line or parts[0][:width]


def span(seconds: float) -> str:
    """A length of time as a person says it: `4.2 s`, `1:05`, `2:03:10`"""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Told:
    """Keeps the state; how it is shown is the subclasses' matter."""

    def __init__(self, rules: StopRules) -> None:
        self.state = State()
        self._rules = rules
        self._shown_at = 0.0

    def closed(
        self, now_ns: int, wall_s: float, cycle: int, round: int, data_id: int, iteration: int, version: int, in_flight: int
    ) -> None:
        """A cycle has closed."""
        state = self.state
        state.now_ns, state.wall_s, state.cycle, state.in_flight = now_ns, wall_s, cycle, in_flight
        state.round, state.data_id, state.iteration, state.version = round, data_id, iteration, version
        self._maybe_show()

    def scored(self, accuracy: float, loss: float) -> None:
        """An evaluation was released."""
        self.state.accuracy, self.state.loss = accuracy, loss
        self._maybe_show()

    def _maybe_show(self) -> None:
        now = monotonic()
        if now - self._shown_at >= self._pause:
            self._shown_at = now
            self._show()

    _pause: float

    def _show(self) -> None:
        raise NotImplementedError


class Plain(_Told):
    """Lines for a log: at the start, every `pause` seconds while cycles close, and at the end."""

    def __init__(self, rules: StopRules, out: TextIO, pause: float = PLAIN_PAUSE_S) -> None:
        super().__init__(rules)
        self._out, self._pause = out, pause
        self._said = ""

    def started(self, name: str, world: str) -> None:
        """Say which run begins."""
        self.state = State(name, world)
        self._shown_at = monotonic()
        self._line(f"started {name}")

    def noted(self, text: str) -> None:
        """Say it at once."""
        self._line(f"note: {text}")

    def ended(self, verdict: str, reason: str) -> None:
        """The last state, unless it was said, and the verdict."""
        if self._said != self._text():
            self._show()
        self._line(f"{verdict}: {reason}" if reason else verdict)

    def close(self) -> None:
        """Nothing is held."""

    def _show(self) -> None:
        self._said = self._text()
        self._line(self._said)

    def _text(self) -> str:
        return "  ".join(columns(self.state, self._rules))

    def _line(self, text: str) -> None:
        self._out.write(f"[{self.state.world or 'run'}] {text}\n")
        self._out.flush()


class Live(_Told):
    """One line on a terminal, redrawn in place; notes scroll above it. console: rich's, on stderr."""

    _pause = LIVE_PAUSE_S

    def __init__(self, rules: StopRules, console: Any) -> None:
        super().__init__(rules)
        self._console = console
        self._status: Any = None

    def started(self, name: str, world: str) -> None:
        """Show the line."""
        from rich.live import Live as Region

        self.state = State(name, world)
        self._console.print(f"[bold]{world}[/] {name}", highlight=False, soft_wrap=True)
        self._status = Region(self._text(), console=self._console, refresh_per_second=8, transient=True)
        self._status.start()

    def noted(self, text: str) -> None:
        """Above the line, for good."""
        from rich.text import Text

        self._console.print(Text(f"  note: {text}", "yellow"))

    def ended(self, verdict: str, reason: str) -> None:
        """Replace the line by its last state and the verdict."""
        from rich.text import Text

        self.close()
        self._console.print(self._text())
        style = "green" if verdict in GOOD else "bold red"
        self._console.print(Text("  ").append(verdict, style).append(f" {reason}"), soft_wrap=True)

    def close(self) -> None:
        """Give the terminal back, also after a run that broke."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _show(self) -> None:
        if self._status is not None:
            self._status.update(self._text())

    def _text(self) -> Any:
        from rich.text import Text

        share = self.state.share(self._rules) or 0.0
        ascii_only = self._console.options.ascii_only
        full, empty = ("#", "-") if ascii_only else ("━", "╌")
        width = self._console.width - 2
        bar = round(share * BAR) if width > 60 else 0
        line = Text("  ")
        if width > 60:
            line.append(full * bar, "green").append(empty * (BAR - bar), "dim").append(" ")
            width -= BAR + 1
        return line.append(fitted(columns(self.state, self._rules), width))


def progress(rules: StopRules, console: Any) -> Live | Plain:
    """The one for this console: live on a terminal, plain lines elsewhere."""
    return Live(rules, console) if console.is_terminal else Plain(rules, console.file)
