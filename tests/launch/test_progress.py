"""What is said while a run goes: plain lines, one live line, narrow terminals, no colour."""

from io import StringIO

import pytest
from rich.console import Console

from flame.config.stops import StopRules
from flame.launch.screen import progress as module
from flame.launch.screen.progress import Live, Plain, State, columns, fitted, progress, span

CYCLES = StopRules(cycles=10)
SECOND = 1_000_000_000


def tell(ui: Live | Plain, cycles: int = 4) -> None:
    """A short run."""
    ui.started("20260101T101500Z_quick_fwdllm_n10_s1_sim", "sim")
    for cycle in range(1, cycles + 1):
        ui.closed(cycle * 8 * SECOND, cycle * 1.0, cycle, 0, cycle // 2, cycle % 2, cycle // 2, 10)
    ui.scored(0.625, 1.98)
    ui.noted("`w1` ended with exit code -9; started again (1 of 3)")
    ui.ended("COMPLETED", "4 cycles")
    ui.close()


def terminal(width: int = 100, **options: object) -> tuple[Console, StringIO]:
    """A console that takes itself for a terminal."""
    out = StringIO()
    return Console(file=out, force_terminal=True, width=width, **options), out  # type: ignore[arg-type]


# ---- plain


def test_plain_lines_say_start_notes_last_state_and_verdict() -> None:
    out = StringIO()
    tell(Plain(CYCLES, out))
    lines = out.getvalue().splitlines()
    assert lines == [
        "[sim] started 20260101T101500Z_quick_fwdllm_n10_s1_sim",
        "[sim] note: `w1` ended with exit code -9; started again (1 of 3)",
        "[sim] cycle 4/10  version 2  acc 0.625  loss 1.980  32.0 s virtual  4.0 s wall  8.0x"
        "  round 0 bin 2 it 0  10 in flight  6.0 s left",
        "[sim] COMPLETED: 4 cycles",
    ]


def test_plain_lines_are_bounded_in_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    out = StringIO()
    ui = Plain(CYCLES, out, pause=5.0)
    ui.started("run", "sim")
    for cycle in range(88):
        now[0] += 0.25
        ui.closed(0, 0.0, cycle, 0, 0, 0, 0, 0)
    assert out.getvalue().count("cycle") == 4


def test_a_state_that_was_just_said_is_not_said_again() -> None:
    out = StringIO()
    ui = Plain(CYCLES, out, pause=0.0)
    ui.started("run", "real")
    ui.closed(SECOND, 1.0, 1, 0, 0, 0, 1, 2)
    ui.ended("COMPLETED", "")
    assert out.getvalue().splitlines()[1:] == [
        "[real] cycle 1/10  version 1  acc -  loss -  1.0 s wall  round 0 bin 0 it 0  2 in flight  9.0 s left", "[real] COMPLETED",
    ]  # fmt: skip


# ---- live


def test_a_live_line_ends_with_its_last_state_and_the_verdict() -> None:
    console, out = terminal(width=150, no_color=True)
    tell(Live(CYCLES, console))
    shown = out.getvalue()
    assert "COMPLETED 4 cycles" in shown
    assert "note: `w1` ended with exit code -9" in shown
    assert "cycle 4/10  version 2  acc 0.625  loss 1.980" in shown
    assert shown.rindex("\x1b[?25h") > shown.index("\x1b[?25l"), "the cursor comes back"


def test_a_run_that_broke_gives_the_terminal_back() -> None:
    console, out = terminal()
    ui = Live(CYCLES, console)
    ui.started("run", "sim")
    ui.close()
    ui.close()
    assert out.getvalue().rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in out.getvalue()


def test_no_color_writes_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console, out = terminal()
    tell(Live(CYCLES, console))
    assert not any(f"\x1b[{code}m" in out.getvalue() for code in ("31", "32", "33", "1;31", "1;32"))


@pytest.mark.parametrize("width", [12, 24, 40, 61, 80, 200])
def test_a_live_line_is_never_wider_than_the_terminal(width: int) -> None:
    console, _ = terminal(width, no_color=True)
    ui = Live(CYCLES, console)
    ui.started("run", "sim")
    ui.closed(8 * SECOND, 1.0, 1, 0, 0, 0, 0, 10)
    assert 0 < len(ui._text().plain) <= width
    ui.close()


class Ascii(StringIO):
    """A stream that can't take more."""

    encoding = "ascii"


def test_a_terminal_without_unicode_gets_signs_that_it_has() -> None:
    ui = Live(CYCLES, Console(file=Ascii(), force_terminal=True, width=100))
    ui.state = State("run", "sim", cycle=5)
    assert ui._text().plain.startswith("  ######------ cycle 5/10")


def test_a_pipe_gets_plain_lines() -> None:
    assert isinstance(progress(CYCLES, Console(file=StringIO())), Plain)
    assert isinstance(progress(CYCLES, terminal()[0]), Live)


# ---- what is said


def test_the_time_left_is_told_by_the_nearest_stop_rule() -> None:
    state = State(now_ns=30 * SECOND, wall_s=6.0, cycle=2, version=1)
    assert state.left_s(StopRules(cycles=4)) == 6.0
    assert state.left_s(StopRules(cycles=4, commits=10)) == 6.0
    assert state.left_s(StopRules(runtime_s=40)) == pytest.approx(2.0)
    assert state.left_s(StopRules(accepts=5)) is None
    assert State().left_s(CYCLES) is None


def test_absent_is_a_dash() -> None:
    said = columns(State(world="sim"), StopRules(commits=3))
    assert said[:4] == ["cycle 0", "version 0/3", "acc -", "loss -"]


def test_columns_are_dropped_from_the_right() -> None:
    assert fitted(["cycle 1", "version 2", "acc 0.5"], 20) == "cycle 1  version 2"
    assert fitted(["cycle 1", "version 2"], 5) == "cycle"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0.0 s"), (59.94, "59.9 s"), (65, "1:05"), (3600, "1:00:00"), (7390.6, "2:03:11")])
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text
