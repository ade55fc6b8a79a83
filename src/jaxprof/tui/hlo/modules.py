"""The modules of the HLO screen: those that can be opened, what is known of the open one, and the thread that reads it.

The thread reads a module part by part, and passes each part to the screen as soon as it is ready.
"""

from __future__ import annotations

import gc
import threading
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from jaxprof.analysis.ceilings import ceilings_for, machine_of_run
from jaxprof.analysis.ranking import BarrierIndex, Ranking, ranking_on
from jaxprof.devices.targets.machine import machine_of
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.cost.peaks import device_of_kind
from jaxprof.hlo.open.stages import HLO_STAGES, STAGES, ModuleStages
from jaxprof.hlo.places import HloPlaces, Places, without_comments, without_locations
from jaxprof.hlo.read.lexer import Language
from jaxprof.tui.hlo.document import Document, HloNavigation
from jaxprof.tui.kit.threads import in_daemon

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks
    from jaxprof.hlo.analysis.findings.finding import HloFinding
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.analysis.notices import Notice
    from jaxprof.hlo.analysis.origin_columns import OriginColumns
    from jaxprof.hlo.model import Instruction, Module
    from jaxprof.session import Session


LARGE = 16 << 20
"""Characters of HLO from which the first kernels are shown before the others are read."""
FROZEN = 4 << 20
"""Characters of HLO from which a module is hidden from the garbage collector."""
FIRST = 500
"""Number of kernels that are shown first."""


class ModuleList:
    """The programs that can be opened: those of the session and those of opened files."""

    def __init__(self) -> None:
        self.of_session: Sequence[ModuleStages] = ()
        self._of_files: list[ModuleStages] = []

    def add_files(self, programs: Sequence[ModuleStages]) -> None:
        """Append the programs of a file; a file that is opened again replaces its earlier programs."""
        keys = {program.key for program in programs}
        self._of_files = [program for program in self._of_files if program.key not in keys] + list(programs)

    @property
    def all(self) -> list[ModuleStages]:
        """The programs of the session, then those of files."""
        return [*self.of_session, *self._of_files]

    def of_run(self, key: str) -> ModuleStages | None:
        """Return the program of a run of the session; None if the run has no program."""
        return next((program for program in self.of_session if program.key == key), None)

    def first(self, wanted: str) -> ModuleStages | None:
        """Return the program of the run `wanted`, else the first of the session that was compiled, else its first."""
        named = [program for program in self.of_session if program.key == wanted]
        with_hlo = [program for program in self.of_session if "hlo" in program.stages]
        return next(iter([*named, *with_hlo, *self.of_session]), None)


@dataclass(slots=True)
class Stage:
    """One stage, ready to be shown."""

    name: str
    document: Document
    places: Places


@dataclass(slots=True)
class OpenedModule:
    """What is known of a program so far; a part that is not known yet is None.

    The reading thread assigns the attributes. The screen only reads them, after the message that a part is ready.
    """

    program: ModuleStages
    stages: dict[str, Stage] = field(default_factory=dict)
    errors: dict[str, JaxprofError] = field(default_factory=dict)
    """By stage, why it cannot be shown."""
    module: Module | None = None
    kernels: tuple[Kernel, ...] | None = None
    barriers: BarrierIndex | None = None
    """Why kernels were not fused, by kernel."""
    findings: tuple[HloFinding, ...] | None = None
    origins: OriginColumns | None = None
    """The source lines and named scopes of `kernels`."""
    notices: tuple[Notice, ...] = ()
    """Notices about the module, such as parts that were not read, as far as is known by now."""
    complete: bool = True
    """False while `kernels` holds only the first kernels of a large module."""
    over: bool = False
    """Whether reading has finished."""

    @property
    def optimised(self) -> bool:
        """Whether XLA's passes have run, so that rows are kernels and not operations."""
        return all(notice.code != "not-optimised" for notice in self.notices)

    @property
    def whole(self) -> bool:
        """Whether nothing is missing that could change a conclusion."""
        return not any(notice.serious for notice in self.notices)

    def kernel_line(self, computation: str, name: str) -> int | None:
        """Return the line of a kernel, or of any instruction, in the optimised HLO."""
        navigation = self.stages["hlo"].document.navigation if "hlo" in self.stages else None
        instruction = self.instruction(computation, name)
        return navigation.line_of(instruction) if navigation is not None and instruction is not None else None

    def instruction(self, computation: str, name: str) -> Instruction | None:
        """Return an instruction of the optimised HLO by name."""
        holder = self.module.get(computation) if self.module is not None else None
        return holder.get(name) if holder is not None else None


def read_stage(program: ModuleStages, name: str) -> tuple[Stage, Sequence[Module]]:
    """Read a stage, and for HLO also its modules. Blocks. Raises JaxprofError."""
    if name in HLO_STAGES:
        modules = program.modules(name)
        navigation = HloNavigation(modules)
        document = Document(modules[0].source.text, Language.HLO, navigation)
        return Stage(name, document, HloPlaces(navigation.modules, navigation.instruction)), modules
    language = Language.JAXPR if name == "jaxpr" else Language.STABLEHLO
    text = program.text(name)
    text, places = without_comments(text) if name == "jaxpr" else without_locations(text)
    return Stage(name, Document(text, language), places), []


def open_program(opened: OpenedModule, report: Callable[[str], None], cancelled: Callable[[], bool]) -> None:
    """Read all of a program, the kernels first, and call `report` with the name of each part when ready. Blocks."""
    from jaxprof.hlo.analysis.barriers import barriers
    from jaxprof.hlo.analysis.findings.catalogue import findings
    from jaxprof.hlo.analysis.kernels import kernels, stream
    from jaxprof.hlo.analysis.notices import notices, outline
    from jaxprof.hlo.analysis.origin_columns import origin_columns

    order = sorted((stage.name for stage in STAGES), key=lambda name: name != "hlo")
    for name in order:
        if cancelled():
            return
        if name not in opened.program.stages:
            continue
        try:
            stage, modules = read_stage(opened.program, name)
        except JaxprofError as error:
            opened.errors[name] = error
            report(name)
            continue
        opened.stages[name] = stage
        if name == "hlo" and modules:
            opened.module = opened.program.own(modules)
            if opened.module.entry is not None:
                _ = opened.module.entry.instructions  # parse in this thread, not in the one that draws
            report(name)
            if len(opened.module.text) > LARGE:
                opened.notices = outline(opened.module)
                opened.kernels = tuple(islice(stream(opened.module), FIRST))
                opened.complete = False
                report("kernels")
                if cancelled():
                    return
            opened.kernels = kernels(opened.module)
            opened.complete = True
            opened.notices = notices(opened.module)
            report("kernels")
        else:
            report(name)
    if opened.module is not None and not cancelled():
        opened.findings = findings(opened.module)
        report("findings")
        if cancelled():
            return
        opened.barriers = BarrierIndex(barriers(opened.module))
        report("barriers")
        opened.origins = origin_columns(opened.kernels or (), cancelled=cancelled)
        if opened.origins is not None:
            report("origins")
    opened.over = True
    report("over")


class ModuleReader:
    """Reads the open program, and reports nothing more about a program once it is closed. Both callbacks run in the
    reading thread, which is no worker of the app: quitting does not wait for it."""

    def __init__(self, report: Callable[[OpenedModule, str], object], fail: Callable[[JaxprofError], object]) -> None:
        self._report, self._fail = report, fail
        # Each thread has its own event, so that a stopped thread stays stopped when the next one starts.
        self._stop = threading.Event()
        self._freezing = threading.Lock()
        """Held to stop a thread, and by a thread to freeze what it has read: what a stopped thread has read stays
        unfrozen."""

    def read(self, opened: OpenedModule) -> None:
        """Read a program in place of the previous one, and report each part once it is ready."""
        self.stop()
        stop = self._stop = threading.Event()

        def failed(error: JaxprofError) -> None:
            if not stop.is_set():
                what = f"{opened.program.title} could not be analysed: {error.what}"
                self._fail(JaxprofError(what, f"The text can still be read. {error.hint}"))

        in_daemon(lambda: self._read(opened, stop), "program", failed)

    def stop(self) -> None:
        """Report nothing more; nothing waits for the end of the thread."""
        with self._freezing:
            self._stop.set()
            gc.unfreeze()

    def _read(self, opened: OpenedModule, stop: threading.Event) -> None:
        def report(part: str) -> None:
            self._freeze(opened, stop)
            if not stop.is_set():
                self._report(opened, part)

        open_program(opened, report, stop.is_set)

    def _freeze(self, opened: OpenedModule, stop: threading.Event) -> None:
        """Hide what was read from the garbage collector, until another program is opened.

        All objects of a module refer to each other, so a full collection walks over all of them and frees nothing: for
        20 MB of HLO that pauses the app for 0.4 s, at any moment. The process is the app's own, so no objects of others
        are hidden.
        """
        if opened.module is not None and len(opened.module.text) > FROZEN:
            with self._freezing:
                if not stop.is_set():
                    gc.freeze()


def device_of(session: Session, program: ModuleStages) -> DevicePeaks | None:
    """Return the device of a run's program, or of a dump that names it, with its ceilings; None where they are
    unknown."""
    run = session.runs.get(program.key)
    return ceilings_for(session, run) if run is not None else device_of_kind(program.device)


def rank(
    session: Session, opened: OpenedModule, measured: Mapping[str, float] | None, chosen: DevicePeaks | None
) -> Ranking:
    """Rank the kernels that are known so far by the `chosen` device, or by the program's own device if None.

    `measured` is seconds per call of the program by kernel name.
    """
    run = session.runs.get(opened.program.key)
    machine = machine_of_run(run, device_of(session, opened.program)) if chosen is None else machine_of(chosen)
    return ranking_on(machine, opened.module, opened.kernels or (), measured)
