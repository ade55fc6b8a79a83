"""A recorded program in a few lines: its head with two clocks, how its time was spent, and its line in a list."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from textual.content import Content

from jaxprof.analysis.programs.result import CALLS, NOT_SEEN, ProgramResult
from jaxprof.base.text import safe, shorten
from jaxprof.base.units import UNKNOWN, bytes_, counted, percent, scaled, seconds
from jaxprof.session import Run, Session
from jaxprof.session.run import RecordedProgram
from jaxprof.tui import clock
from jaxprof.tui.kit.drawing import bar_with_names, cell, whole_parts
from jaxprof.tui.kit.format import clock_text, location_text, status_mark

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
    "paused": ("paused", "$error"),
}
"""Short name and colour of each state, in stacking order."""


def state_title(state: str) -> str:
    """Return the short name of a state; a newer version's state keeps its own name."""
    return STATES[state][0] if state in STATES else state.replace("_", " ")


def state_style(state: str) -> str:
    return STATES[state][1] if state in STATES else "$bar-track"


def in_order(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the states with their seconds in stacking order; unknown states, and time not sampled, come last."""
    ranks = {state: rank for rank, state in enumerate(STATES)}
    nonzero = [(state, value) for state, value in shares.items() if value > 0]
    return sorted(nonzero, key=lambda pair: (pair[0] == NOT_SEEN, ranks.get(pair[0], len(ranks))))


def share_bar(shares: Mapping[str, float], width: int) -> Content:
    """Return the states end to end over `width` columns, each with its name if it fits."""
    parts = (
        (state_title(state), took, f"{'$text-muted' if state == NOT_SEEN else '$background'} on {state_style(state)}")
        for state, took in in_order(shares)
    )
    return bar_with_names(parts, width)


_DOING = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}
_WITH = {"trace": "in Python", "lower": "to StableHLO", "compile": "backend"}


def doing(program: RecordedProgram, directory: str, now_seconds: float, width: int) -> Content:
    """Return the current activity of a running program, with a clock if it is one stage of JAX or a capture."""
    stage, window = next(iter(program.open_stages), None), program.windows[-1] if program.windows else None
    if stage is not None:
        before = f"{_DOING.get(stage.stage, stage.stage)} `{stage.function}`, {_WITH.get(stage.stage, '')}, "
        at = location_text(stage.called_from, directory)
        after = (f"  called from {at}" if at else "") + (f" in thread {stage.thread}" if stage.thread else "")
        began = stage.began_seconds
    elif window is not None and window.state == "began" and window.monotonic_seconds:
        before, after, began = "capturing a profile, ", "", window.monotonic_seconds
    else:
        words = "starting" if program.jax is None else "JAX is imported"  # without a sample yet
        if program.sampled:
            last = program.sampled[-1].states
            length, longest = sum(last.values()), sorted(in_order(last), key=lambda pair: -pair[1])[:3]
            words = ", ".join(f"{state_title(state)} {percent(value / length)}" for state, value in longest)
            words += " (JAX is not imported yet)" * (program.jax is None)
        return Content.assemble(("now ", "$text-muted"), cell(words, max(1, width - 4)))
    time = clock_text(now_seconds - began)
    head = Content.assemble(
        ("now ", "$text-muted"), (shorten(before, max(1, width - 4 - CLOCK)), "bold $phase-compile"), (time, "bold")
    )
    return head + cell(after, max(0, width - head.cell_length), "$text-muted")


CLOCK = 11


def head_lines(
    session: Session, result: ProgramResult, width: int, *, silent: str = "", shift_seconds: float = 0.0
) -> list[Content]:
    """Return the head of a program: command and state; figures; current activity or what went wrong; the bar of the
    time. Three lines once the program is over and nothing went wrong. `silent`: since when its writer is silent;
    `shift_seconds`: how far the writer's clock is ahead of ours."""
    run, now_seconds = result.run, clock.monotonic() + shift_seconds
    runs = not result.ended and not session.deserted
    ended_well = not run.over and result.ended and result.exit_code in (0, None)
    status = "ok" if ended_well else run.end(deserted=True).status
    standstill = result.standstill if runs and result.stands_still else None
    if runs:
        status = "running" if standstill is None else "standing still"
    state = status if runs else state_in_words(run, result, silent)
    time = "" if runs or not result.wall_seconds else seconds(result.wall_seconds)
    if runs and result.began_seconds:
        time = clock_text(now_seconds - result.began_seconds)
    lines = [
        first_line(shlex.join(result.argv), status, state, time, width),
        whole_parts((Content.styled(safe(text), style) for text, style in figures(session, result)), width),
    ]
    if not runs:  # what went wrong besides the exit code, and what the recording missed
        error = run.error.splitlines()[0] if run.error else ""
        words = [error, run.hint] if error and error != f"exit code {result.exit_code}" else []
        if trouble := " · ".join(filter(None, [" ".join(words), *(note.message for note in result.notes)])):
            lines.append(Content.styled(shorten(trouble, width), "$error"))
    elif standstill is not None:
        lines.append(
            Content.styled(shorten(f"it stands still {standstill.text(result.directory)}", width), "bold $error")
        )
    elif run.program is not None:
        lines.append(doing(run.program, result.directory, now_seconds, width))
    return [*lines, share_bar({state: round(took, 3) for state, took in result.spent.items()}, width)]


def first_line(title: str, status: str, state: str, time: str, width: int) -> Content:
    style = {"running": "bold $warning", "ok": "bold $better"}.get(status, "bold $error")
    gap = " " if len(time) >= CLOCK else ""
    clocked = cell(time, CLOCK, "bold", right=True)
    right = Content.assemble(status_mark(status), " ", (safe(state), style), gap, clocked)
    room = width - right.cell_length - 1
    return Content.assemble(cell(title, room, "bold $primary"), " ", right) if room >= 8 else right.truncate(width)


Figure = tuple[str, str]


def in_a_line(result: ProgramResult) -> str:
    """Return a program as one line of a list: how it ended, its duration, what it compiled, its findings."""
    words = [state_in_words(result.run, result), seconds(result.known_wall_seconds)] if result.ended else []
    if result.compile_count:
        words.append(f"{counted(result.compile_count, 'compilation')} in {seconds(result.compile_seconds)}")
    count = len(result.findings)
    words.append(counted(count, "finding") if count else "")
    return " · ".join(word for word in words if word)


OF_PROGRAM = Content.styled("Enter shows all of it: costs, findings, compilations, output", "$quiet")
"""Text of a screen for a program among other runs."""


def state_in_words(run: Run, result: ProgramResult, silent: str = "") -> str:
    if not result.ended:
        return silent or run.end(deserted=True).status
    if run.status == "cancelled":
        return "cancelled" if result.exit_code is None else f"cancelled, exit code {result.exit_code}"
    if result.exit_code is None:
        return "ended" if run.status in ("ok", "running") else run.status
    if run.status == "crashed":
        return f"crashed, exit code {result.exit_code}"
    return f"exit code {result.exit_code}"


def figures(session: Session, result: ProgramResult) -> list[Figure]:
    """Return the figures, the most important first: steps, compilations, findings, arrays, memory, ..."""
    from jaxprof.report.program_words import verdict  # not needed for the first frame

    known: list[Figure] = []
    if result.verdict.kind is not None:
        known.append((verdict(result), "bold"))
    elif result.verdict.seconds:
        known.append(("what bounds it is unknown", ""))
    steps = result.steps
    if steps is not None and steps.per_second is not None:
        jitter = f" ± {percent(steps.jitter)}" if steps.jitter is not None else ""
        known.append((f"{scaled(steps.per_second)} steps/s{jitter}", "bold"))
    if steps is not None and steps.count:
        series = result.iterations_of(steps)
        known.append((counted(steps.count if series is None else series.count, "step"), ""))
    if result.compile_count:
        share = result.of_wall(result.compile_seconds)
        words = (
            f"{counted(result.compile_count, 'compilation')} in {seconds(result.compile_seconds)} ({percent(share)})"
        )
        known.append((words, "$phase-compile"))
    elif result.import_seconds is not None:
        known.append(("nothing compiled", "$text-muted"))
    if result.arrays is not None:
        number, size = result.arrays.last
        known.append((f"{counted(number, 'array')}, {bytes_(size)}", ""))
    program = result.run.program
    if program is not None and program.arrays:
        last = sorted(program.arrays[-1].devices.items())
        known += [(f"{device} {bytes_(used)}", "") for device, used in last[:2]]
    if result.own_seconds is not None and result.wall_seconds:
        known.append((f"profiler overhead {percent(result.of_wall(result.own_seconds))}", "$quiet"))
    python = session.runs[result.run.id].environment
    if python is not None and python.jax:
        known.append((f"jax {python.jax}", "$quiet"))
    return known or [(UNKNOWN, "$quiet")]
