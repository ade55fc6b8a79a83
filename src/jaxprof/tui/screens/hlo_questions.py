"""What the HLO screen asks: which program, which device, which of several lines, and which file.

Each question is a dialog over the screen; its answer goes to a function of the screen, and no answer goes nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.tui.dialogs.choose import Choose, Option
from jaxprof.tui.programs.ceilings import device_of
from jaxprof.tui.widgets.stage_side import TITLES, Match

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Device
    from jaxprof.tui.app import JaxprofApp
    from jaxprof.tui.programs.opened import Opened
    from jaxprof.tui.programs.program import Program
    from jaxprof.tui.widgets.code_view import CodeView

_LINE_SHOWN = 400
"""Characters of a line that is one of the answers."""


def ask_program(
    app: JaxprofApp, programs: Sequence[Program], opened: Opened | None, choose: Callable[[Program], object]
) -> None:
    """Which run, or which module of a file; `choose` is told of one that is not open already."""

    def is_open(program: Program) -> bool:
        return opened is not None and opened.program.key == program.key

    def chosen(number: int | None) -> None:
        if number is not None and not is_open(programs[number]):
            choose(programs[number])

    current = next((at for at, program in enumerate(programs) if is_open(program)), 0)
    options = [
        Option(program.label, ", ".join(TITLES[name] for name in TITLES if name in program.stages))
        for program in programs
    ]
    app.push_screen(Choose("Which program?", options, current), chosen)


def ask_device(app: JaxprofApp, program: Program, take: Callable[[Device | None], object]) -> None:
    """Which device's ceilings the kernels are held against; None is the program's own."""
    from jaxprof.hlo.analysis import DEVICES
    from jaxprof.units import scaled

    own = device_of(app.session, program)
    devices: list[Device | None] = [None, *DEVICES.values()]
    options = [
        Option("its own", own.title if own is not None else "not known: no ceilings"),
        *(Option(one.name, f"{one.title}, {scaled(one.bandwidth, 'B/s')}") for one in DEVICES.values()),
    ]

    def chosen(number: int | None) -> None:
        if number is not None:
            take(devices[number])

    app.push_screen(Choose("Hold the kernels against (an estimate)", options), chosen)


def ask_user(app: JaxprofApp, message: CodeView.ManyUsers) -> None:
    """Which of the lines that use a value; the text goes there."""
    view, lines = message.view, message.lines
    options = [Option(str(line + 1), view.document.line(line).strip()[:_LINE_SHOWN]) for line in lines]

    def chosen(number: int | None) -> None:
        if number is not None:
            view.jump(lines[number])

    app.push_screen(Choose(f"{len(options)} users of {message.name}", options), chosen)


def ask_match(app: JaxprofApp, opened: Opened, matches: Sequence[Match], go: Callable[[Match], object]) -> None:
    """Which of the lines of other stages that came from one place."""
    options = [
        Option(f"{TITLES[name]} {line + 1}", opened.stages[name].document.line(line).strip()[:_LINE_SHOWN])
        for name, line in matches
        if name in opened.stages
    ]

    def chosen(number: int | None) -> None:
        if number is not None:
            go(matches[number])

    app.push_screen(Choose("The same place in other stages", options), chosen)


def ask_file(app: JaxprofApp, open_file: Callable[[Path], object]) -> None:
    """Which file or folder; a profile, which is more than HLO, is opened as a session."""
    from jaxprof.tui.dialogs.ask_text import AskText
    from jaxprof.tui.programs.program import holds_hlo
    from jaxprof.worker import is_profile

    def answered(text: str | None) -> None:
        path = Path.cwd() / Path(text or "").expanduser()
        if text and is_profile(path) and not holds_hlo(path):
            app.open_session(path, go="hlo")
        elif text:
            open_file(path)

    what = "HLO text, an HLO proto, a folder of dumps, or a profile."
    app.push_screen(AskText("Open HLO", what, "", "Enter opens"), answered)
