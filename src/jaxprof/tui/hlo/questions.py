"""The dialogs of the HLO screen: which program, which device, which of several lines, which file, what to write where.

Each dialog passes the answer to a function; without an answer it calls nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError, StorageError, system_words
from jaxprof.files import with_home
from jaxprof.tui.hlo.modules import device_of
from jaxprof.tui.hlo.stage_side import TITLES
from jaxprof.tui.kit.dialogs import Choose, Option, SaveAs

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks
    from jaxprof.hlo.open.stages import ModuleStages
    from jaxprof.tui.hlo.modules import OpenedModule
    from jaxprof.tui.profiler import Profiler


_LINE_SHOWN = 400
"""Characters shown of a line that can be chosen."""


def ask_module(
    app: Profiler,
    programs: Sequence[ModuleStages],
    opened: OpenedModule | None,
    choose: Callable[[ModuleStages], object],
) -> None:
    """Ask which run or module of a file to open; `choose` is called unless that one is open already."""

    def is_open(program: ModuleStages) -> bool:
        return opened is not None and opened.program.key == program.key

    def take(number: int) -> None:
        if not is_open(programs[number]):
            choose(programs[number])

    current = next((at for at, program in enumerate(programs) if is_open(program)), 0)
    options = [
        Option(program.title, ", ".join(TITLES[name] for name in TITLES if name in program.stages))
        for program in programs
    ]
    Choose("Which program?", options, current).ask(app, take)


def ask_device(app: Profiler, program: ModuleStages, take: Callable[[DevicePeaks | None], object]) -> None:
    """Ask with which device's ceilings the kernels are compared; `take` gets None for the program's own device."""
    from jaxprof.hlo.analysis.cost.peaks import DEVICES
    from jaxprof.units import scaled

    own = device_of(app.session, program)
    devices: list[DevicePeaks | None] = [None, *DEVICES.values()]
    options = [
        Option("its own", own.title if own is not None else "unknown: no ceilings"),
        *(Option(device.name, f"{device.title}, {scaled(device.bandwidth, 'B/s')}") for device in DEVICES.values()),
    ]
    Choose("Compare the kernels with (an estimate)", options).ask(app, lambda number: take(devices[number]))


def ask_line(app: Profiler, title: str, lines: Sequence[tuple[str, str]], go: Callable[[int], object]) -> None:
    """Ask which of several lines to go to, each with its name and its text."""
    options = [Option(name, text.strip()[:_LINE_SHOWN]) for name, text in lines]
    Choose(title, options).ask(app, go)


def ask_file(app: Profiler, open_file: Callable[[Path], object]) -> None:
    """Ask which file or folder to open; a session or a profile holds more than HLO and is opened as a session."""
    from jaxprof.analysis.opener import Kind, kind_of
    from jaxprof.tui.kit.dialogs import AskText

    def take(text: str) -> None:
        path = Path.cwd() / with_home(text)
        if kind_of(path) in (Kind.SESSION, Kind.PROFILE):
            app.open_session(path, go="hlo")
        else:
            open_file(path)

    what = "HLO text, an HLO proto, a folder of dumps, a session, or a profile."
    AskText("Open HLO", what, "", "Enter opens").ask(app, take)


_TABLE_FILE = "kernels.csv"


def ask_table_file(app: Profiler, table: Callable[[], str]) -> None:
    """Ask where to write the table of kernels as CSV, and write it. A relative path starts at the current folder."""

    def take(path: Path) -> None:
        place = Path.cwd() / path
        place = place / _TABLE_FILE if place.is_dir() else place
        try:
            write(place, table())
        except JaxprofError as error:
            app.tell(error)
        else:
            app.say(str(place), "Written")

    SaveAs("Write to a file", "the table as CSV, its rows as they stand", "", Path.cwd() / _TABLE_FILE).ask_for_path(
        app, take
    )


def write(path: Path, text: str) -> None:
    """Write a new file. Raises StorageError if the file already exists or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StorageError(f"{path} already exists", "Choose another name.") from None
    except OSError as error:
        raise StorageError(f"{path}: {system_words(error)}", "Choose another place.") from None
