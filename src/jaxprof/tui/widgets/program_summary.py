"""What the head of a program says, from its figures. Pure functions."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.safe_text import shorten
from jaxprof.tui.widgets.program_bar import share_bar, share_table
from jaxprof.tui.widgets.program_head import Head, as_shares
from jaxprof.tui.widgets.program_now import doing
from jaxprof.units import UNKNOWN, bytes_, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.results.programs.derive import ProgramResult
    from jaxprof.session import Run, Session

Figure = tuple[str, str]
"""A text and its style."""


def head_of(session: Session, found: ProgramResult, *, growing: bool, silent: str = "") -> Head:
    """The head of a program. `growing`: somebody writes the session; `silent`: since when nobody is heard of."""
    run = found.run
    runs = not found.ended and growing
    return Head(
        title=command_line(found),
        status="running" if runs else status_of(run, found),
        state="running" if runs else state_in_words(run, found, silent),
        began_seconds=found.began_seconds if runs and found.began_seconds else None,
        wall_seconds=None if runs else found.wall_seconds or None,
        figures=tuple(_figures(session, found)),
        doing=doing(run.program, found.directory) if runs and run.program is not None else None,
        trouble="" if runs else trouble_of(run, found),
        shares=as_shares({share.state: share.seconds for share in found.timeline}),
    )


def in_a_line(found: ProgramResult) -> str:
    """What a list says of it: how it ended, how long it took, what it compiled, what is to be remarked."""
    words = [state_in_words(found.run, found), seconds(found.wall_seconds or None)] if found.ended else []
    if found.compile_count:
        words.append(f"{integer(found.compile_count)} compiled in {seconds(found.compile_seconds)}")
    count = len(found.findings)
    words.append(f"{count} finding{'s' if count != 1 else ''}" if count else "")
    return " · ".join(word for word in words if word)


def summary_lines(session: Session, found: ProgramResult, width: int) -> list[Content]:
    """A program where only a part of a screen is there for it; its own screen has the rest."""
    lines = [
        Content.styled(shorten(command_line(found), width), "bold $primary"),
        Content.styled(shorten(" · ".join(text for text, _ in _figures(session, found)), width)),
        Content(""),
        share_bar({share.state: share.seconds for share in found.timeline}, width),
        Content(""),
        *share_table([(one.state, one.seconds, one.exact) for one in found.timeline], found.wall_seconds, width),
    ]
    if found.findings:
        lines += [Content(""), Content.styled("findings", "bold $primary")]
        lines += [Content(shorten(one.message, width)) for one in found.findings[:8]]
    return [*lines, Content(""), Content.styled("7 shows all of it: ledger, findings, lines, output", "$quiet")]


def command_line(found: ProgramResult) -> str:
    """As one would type it after `python`."""
    return shlex.join(found.argv)


def status_of(run: Run, found: ProgramResult) -> str:
    """The status of one that does not go on; what ended with the session did not end well."""
    if run.over:
        return run.status
    return "ok" if found.ended and found.exit_code in (0, None) else "crashed"


def state_in_words(run: Run, found: ProgramResult, silent: str = "") -> str:
    """How it ended."""
    if not found.ended:
        return silent or ("not started" if run.status == "queued" else "cut off")
    if run.status == "cancelled":
        return "cancelled" if found.exit_code is None else f"cancelled, exit code {found.exit_code}"
    if found.exit_code is None:
        return "over" if run.status in ("ok", "running") else run.status
    if run.status == "crashed":
        return f"crashed, exit code {found.exit_code}"
    return f"exit code {found.exit_code}"


def trouble_of(run: Run, found: ProgramResult) -> str:
    """What went wrong beyond its exit code, or what was not seen of it."""
    said = run.error.splitlines()[0] if run.error else ""
    words = [said] if said and said != f"exit code {found.exit_code}" else []
    words += [run.advice] if words and run.advice else []
    return " ".join([*words, *(note.message for note in found.notes)])


def _figures(session: Session, found: ProgramResult) -> list[Figure]:
    """From the most to the least important: steps, compilations, findings, arrays, memory, transfers, overhead."""
    figures: list[Figure] = []
    steps = found.steps
    if steps is not None and steps.per_second is not None:
        jitter = f" ± {percent(steps.jitter)}" if steps.jitter is not None else ""
        figures.append((f"{scaled(steps.per_second)} steps/s{jitter}", "bold"))
    if found.compile_count:
        share = found.of_wall(found.compile_seconds)
        words = f"{integer(found.compile_count)} compiled in {seconds(found.compile_seconds)} ({percent(share)})"
        figures.append((words, "$phase-compile"))
    elif found.import_seconds is not None:
        figures.append(("nothing compiled", "$text-muted"))
    count = len(found.findings)
    if count:
        figures.append((f"{count} finding{'s' if count != 1 else ''}", "$warning"))
    if found.arrays is not None:
        number, size = found.arrays.last
        figures.append((f"{integer(number)} array{'' if number == 1 else 's'}, {bytes_(size)}", ""))
        figures += [(f"{device} {bytes_(used)}", "") for device, used in _memory(found)]
    if found.own_seconds is not None and found.wall_seconds:
        figures.append((f"recording {percent(found.of_wall(found.own_seconds))}", "$quiet"))
    python = session.runs[found.run.id].environment
    if python is not None and python.jax:
        figures.append((f"jax {python.jax}", "$quiet"))
    return figures or [(UNKNOWN, "$quiet")]


def _memory(found: ProgramResult) -> list[tuple[str, int]]:
    """The memory in use of each device, as its allocator said last."""
    program = found.run.program
    return sorted(program.arrays[-1].devices.items())[:2] if program is not None and program.arrays else []
