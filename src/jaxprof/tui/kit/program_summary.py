"""A recorded program in a few lines: its head with two clocks, how its time was spent, and its line in a list."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.programs.result import CALLS, NOT_SEEN
from jaxprof.text import columns, safe, shorten
from jaxprof.tui.kit.drawing import SPARKS, cell, styled_runs, whole_parts
from jaxprof.tui.kit.format import clock, place_text, status_mark
from jaxprof.tui.kit.picture import Lines
from jaxprof.units import UNKNOWN, bytes_, counted, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events import StageRunning
    from jaxprof.session import Run, Session
    from jaxprof.session.run import RecordedProgram


STATES = {
    "import": ("import", "$state-import"),
    "data": ("data", "$state-data"),
    "trace": ("trace", "$phase-trace"),
    "lower": ("lower", "$phase-lower"),
    "compile": ("compile", "$phase-compile"),
    "transfer": ("transfer", "$phase-transfer"),
    "device_busy": ("device", "$phase-run"),
    CALLS: ("calls", "$state-calls"),
    "host_busy": ("host", "$state-host"),
    "waiting": ("waiting", "$state-waiting"),
    "stopped": ("stopped", "$warning"),
}
"""Short name and colour of each state, in stacking order."""


def state_title(state: str) -> str:
    """Return the short name of a state; a newer version's state keeps its own name."""
    return STATES[state][0] if state in STATES else state.replace("_", " ")


def state_style(state: str) -> str:
    """Return the colour of a state."""
    return STATES[state][1] if state in STATES else "$bar-track"


def in_order(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the states with their seconds in stacking order; unknown states, and time not sampled, come last."""
    ranks = {state: rank for rank, state in enumerate(STATES)}
    nonzero = [(state, value) for state, value in shares.items() if value > 0]
    return sorted(nonzero, key=lambda pair: (pair[0] == NOT_SEEN, ranks.get(pair[0], len(ranks))))


def share_bar(shares: Mapping[str, float], width: int) -> Content:
    """Return the states end to end over `width` columns, each with its name if it fits."""
    rows = in_order(shares)
    total = sum(value for _, value in rows)
    if not total or width < 1:
        return Content.styled(" " * max(0, width), "on $bar-track")
    parts: list[tuple[str, str]] = []
    done, used = 0.0, 0
    for state, value in rows:
        done += value
        until = round(done / total * width)
        room = until - used
        used = until
        if room <= 0:
            continue
        name, share = state_title(state), percent(value / total)
        text = next((text for text in (f" {name} {share}", f" {name}") if columns(text) < room), "")
        style = f"$text-muted on {state_style(state)}" if state == NOT_SEEN else f"$background on {state_style(state)}"
        parts.append((text.ljust(room), style))
    return Content.assemble(*parts)


def state_columns(states: Sequence[Mapping[str, float]], height: int) -> list[Content]:
    """Return a chart over time in `height` lines: one column for each of `states` (shares of 1), stacked from below.

    A cell has eight levels and can show two states: the one at its bottom, and the most frequent one above it.
    """
    levels = [_levels(column, height * 8) for column in states]
    lines = []
    for row in range(height):
        base = (height - 1 - row) * 8
        lines.append(styled_runs(_cell(column[base : base + 8]) for column in levels))
    return lines


def _levels(shares: Mapping[str, float], count: int) -> list[str]:
    """Return the state at each of `count` levels, from below; empty strings above the top."""
    levels: list[str] = []
    done = 0.0
    for state, share in in_order(shares):
        done += share
        levels += [state] * (min(count, round(done * count)) - len(levels))
    return levels + [""] * (count - len(levels))


def _cell(levels: Sequence[str]) -> tuple[str, str]:
    bottom = levels[0]
    until = next((index for index, state in enumerate(levels) if state != bottom), len(levels))
    if until == len(levels):
        return (" ", "") if not bottom else ("█", state_style(bottom))
    top = Counter(levels[until:]).most_common(1)[0][0]
    if not bottom:
        return " ", ""
    over = f" on {state_style(top)}" if top else ""
    return SPARKS[until - 1], state_style(bottom) + over


_DOING = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}
_WITH = {"trace": "in Python", "lower": "to StableHLO", "compile": "backend"}


@dataclass(frozen=True, slots=True)
class Doing:
    """A program's current activity. With `began_seconds` (monotonic), a clock runs between `before` and `after`."""

    before: str
    after: str = ""
    began_seconds: float | None = None


def doing(program: RecordedProgram, directory: str = "") -> Doing:
    """Return the current activity of a running program."""
    stage = _stage(program)
    if stage is not None:
        what = f"{_DOING.get(stage.stage, safe(stage.stage))} `{safe(stage.function)}`, {_WITH.get(stage.stage, '')}, "
        at = place_text(stage.called_from, directory)
        thread = f" in thread {safe(stage.thread)}" if stage.thread else ""
        return Doing(what, (f"  called from {at}" if at else "") + thread, stage.began_seconds)
    window = program.windows[-1] if program.windows else None
    if window is not None and window.state == "began":
        return Doing("capturing a profile, ", "", window.monotonic_seconds or None)
    if not program.sampled:
        return Doing("starting" if program.jax is None else "JAX is imported")
    last = program.sampled[-1]
    length = sum(last.states.values())
    parts = sorted(in_order(last.states), key=lambda pair: -pair[1])[:3]
    words = ", ".join(f"{state_title(state)} {percent(value / length)}" for state, value in parts) if length else ""
    return Doing(words if program.jax is not None else f"{words} (JAX is not imported yet)")


def _stage(program: RecordedProgram) -> StageRunning | None:
    """Return the current stage, preferring the main thread. A stage that later samples no longer show is over."""
    for thread in sorted(program.running):
        stage = program.running[thread]
        if thread or not program.sampled:
            return stage
        last = program.sampled[-1]
        if last.began_seconds <= stage.began_seconds or last.states.get(stage.stage, 0.0) > 0:
            return stage
    return None


CLOCK = 11


@dataclass(frozen=True, slots=True)
class Head:
    """Content of the head; while it stays equal, only the clocks are redrawn."""

    title: str
    status: str
    """Status, as of a run: `running`, `ok`, `failed`, `crashed`, `cancelled`."""
    state: str
    """State in words: `running`, `exit code 3`, `interrupted`."""
    began_seconds: float | None
    """Start of the program (monotonic clock); None when it is over."""
    wall_seconds: float | None
    """Duration in seconds; None until the program is over."""
    figures: tuple[tuple[str, str], ...] = ()
    """Texts with their styles, from the most to the least important."""
    doing: Doing | None = None
    trouble: str = ""
    """What went wrong, or what was not recorded."""
    shares: tuple[tuple[str, float], ...] = ()
    """States with their seconds, which add up to the wall time."""


class ProgramHead(Lines):
    """Four lines: command and state; figures; current activity or what went wrong; the bar of the time. Three lines
    once the program is over and nothing went wrong.

    Without new events it is redrawn only when one of its two clocks shows another time.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._head: Head | None = None
        self.shift_seconds = 0.0
        """Seconds that the writer's clock is ahead of ours, if another machine writes the session."""

    def show_head(self, head: Head | None) -> None:
        """Show another state of the program, or another program."""
        self._head = head
        self.tick()

    @property
    def runs(self) -> bool:
        """Whether a clock ticks."""
        return self._head is not None and self._head.began_seconds is not None

    def tick(self) -> None:
        """Redraw if the head, or a clock, shows something else."""
        head = self._head
        began = (head.began_seconds, head.doing.began_seconds if head.doing is not None else None) if head else ()
        clocks = [self._clock(each) for each in began if each is not None]
        self.show((head, clocks), lambda width: self._lines_of(head, width) if head is not None else ())

    def _clock(self, began_seconds: float) -> str:
        return clock(monotonic() + self.shift_seconds - began_seconds)

    def _lines_of(self, head: Head, width: int) -> list[Content]:
        now = [self._now(head, width)] if head.trouble or head.doing is not None else []
        figures = whole_parts((Content.styled(safe(text), style) for text, style in head.figures), width)
        return [self._first(head, width), figures, *now, share_bar(dict(head.shares), width)]

    def _first(self, head: Head, width: int) -> Content:
        """Return the program on the left, its state and clock on the right."""
        time = ""
        if head.began_seconds is not None:
            time = self._clock(head.began_seconds)
        elif head.wall_seconds is not None:
            time = seconds(head.wall_seconds)
        style = {"running": "bold $warning", "ok": "bold $better"}.get(head.status, "bold $error")
        state = Content.assemble(status_mark(head.status), " ", (safe(head.state), style))
        gap = " " if len(time) >= CLOCK else ""
        right = Content.assemble(state, gap, cell(time, CLOCK, "bold", right=True))
        room = width - right.cell_length - 1
        if room < 8:
            return right.truncate(width)
        return Content.assemble(cell(head.title, room, "bold $primary"), " ", right)

    def _now(self, head: Head, width: int) -> Content:
        if head.trouble:
            return Content.styled(shorten(head.trouble, width), "$error")
        now = head.doing
        if now is None:
            return Content("")
        parts = [Content.styled("now ", "$text-muted")]
        if now.began_seconds is None:
            parts.append(cell(now.before, max(1, width - 4)))
            return Content.assemble(*parts)
        before = Content.styled(shorten(now.before, max(1, width - 4 - CLOCK)), "bold $phase-compile")
        time = self._clock(now.began_seconds)
        rest = width - 4 - before.cell_length - len(time)
        return Content.assemble(*parts, before, (time, "bold"), cell(now.after, max(0, rest), "$text-muted"))


Figure = tuple[str, str]
"""A text and its style."""


def head_of(session: Session, result: ProgramResult, *, growing: bool, silent: str = "") -> Head:
    """Return the head of a program. `growing`: a process writes it; `silent`: since when its writer is silent."""
    run = result.run
    runs = not result.ended and growing
    ended_well = not run.over and result.ended and result.exit_code in (0, None)
    return Head(
        title=shlex.join(result.argv),
        status="running" if runs else "ok" if ended_well else run.end(deserted=True).status,
        state="running" if runs else state_in_words(run, result, silent),
        began_seconds=result.began_seconds if runs and result.began_seconds else None,
        wall_seconds=None if runs else result.wall_seconds or None,
        figures=tuple(_figures(session, result)),
        doing=doing(run.program, result.directory) if runs and run.program is not None else None,
        trouble="" if runs else trouble_of(run, result),
        shares=tuple((state, round(took, 3)) for state, took in result.spent.items()),
    )


def in_a_line(result: ProgramResult) -> str:
    """Return a program as one line of a list: how it ended, its duration, what it compiled, its findings."""
    words = [state_in_words(result.run, result), seconds(result.wall_seconds or None)] if result.ended else []
    if result.compile_count:
        words.append(f"{counted(result.compile_count, 'compilation')} in {seconds(result.compile_seconds)}")
    count = len(result.findings)
    words.append(counted(count, "finding") if count else "")
    return " · ".join(word for word in words if word)


OF_PROGRAM = Content.styled("Enter shows all of it: findings, ledger, lines, output", "$quiet")
"""Text of a screen for a program among other runs."""


def state_in_words(run: Run, result: ProgramResult, silent: str = "") -> str:
    """Return in words how the program ended."""
    if not result.ended:
        return silent or run.end(deserted=True).status
    if run.status == "cancelled":
        return "cancelled" if result.exit_code is None else f"cancelled, exit code {result.exit_code}"
    if result.exit_code is None:
        return "ended" if run.status in ("ok", "running") else run.status
    if run.status == "crashed":
        return f"crashed, exit code {result.exit_code}"
    return f"exit code {result.exit_code}"


def trouble_of(run: Run, result: ProgramResult) -> str:
    """Return what went wrong besides the exit code, and what the recording missed."""
    error = run.error.splitlines()[0] if run.error else ""
    words = [error] if error and error != f"exit code {result.exit_code}" else []
    words += [run.advice] if words and run.advice else []
    return " ".join([*words, *(note.message for note in result.notes)])


def _figures(session: Session, result: ProgramResult) -> list[Figure]:
    """Return the figures from the most to the least important: steps, compilations, findings, arrays, memory,
    transfers, overhead."""
    figures: list[Figure] = []
    if result.verdict.kind is not None:
        figures.append((f"{result.verdict.kind} {percent(result.verdict.share)}", "bold"))
    elif result.verdict.seconds:
        figures.append(("what bounds it is unknown", ""))
    steps = result.steps
    if steps is not None and steps.per_second is not None:
        jitter = f" ± {percent(steps.jitter)}" if steps.jitter is not None else ""
        figures.append((f"{scaled(steps.per_second)} steps/s{jitter}", "bold"))
    if result.compile_count:
        share = result.of_wall(result.compile_seconds)
        words = (
            f"{counted(result.compile_count, 'compilation')} in {seconds(result.compile_seconds)} ({percent(share)})"
        )
        figures.append((words, "$phase-compile"))
    elif result.import_seconds is not None:
        figures.append(("nothing compiled", "$text-muted"))
    count = len(result.findings)
    if count:
        figures.append((counted(count, "finding"), "$warning"))
    if result.arrays is not None:
        number, size = result.arrays.last
        figures.append((f"{counted(number, 'array')}, {bytes_(size)}", ""))
        figures += [(f"{device} {bytes_(used)}", "") for device, used in _memory(result)]
    if result.own_seconds is not None and result.wall_seconds:
        figures.append((f"profiler overhead {percent(result.of_wall(result.own_seconds))}", "$quiet"))
    python = session.runs[result.run.id].environment
    if python is not None and python.jax:
        figures.append((f"jax {python.jax}", "$quiet"))
    return figures or [(UNKNOWN, "$quiet")]


def _memory(result: ProgramResult) -> list[tuple[str, int]]:
    """Return the memory in use on each device, from the last report of its allocator."""
    program = result.run.program
    return sorted(program.arrays[-1].devices.items())[:2] if program is not None and program.arrays else []
