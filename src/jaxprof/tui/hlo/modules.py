"""What is known of the open program of the HLO screen, and the thread that reads it.

The thread reads a program part by part, and passes each part to the screen as soon as it is ready.
"""

from __future__ import annotations

import gc
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.grouping import grouped
from jaxprof.hlo.open.stages import HLO_STAGES, STAGES, ModuleStages
from jaxprof.hlo.places import without_comments, without_locations
from jaxprof.tui.hlo.document import Document, HloDocument
from jaxprof.tui.kit.guard import in_daemon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jaxprof.finding import Finding
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.analysis.notices import Notice
    from jaxprof.hlo.analysis.origin_columns import OriginColumns
    from jaxprof.hlo.model import Instruction, Module


FROZEN = 4 << 20
"""Characters of HLO from which a module is hidden from the garbage collector."""


def first_of(programs: Mapping[str, ModuleStages], wanted: str) -> ModuleStages | None:
    """Return the program of the run `wanted`, else the first that was compiled, else the first."""
    with_hlo = (program for program in programs.values() if "hlo" in program.stages)
    return programs.get(wanted) or next(with_hlo, next(iter(programs.values()), None))


@dataclass(slots=True)
class OpenedModule:
    """What is known of a program so far; a part that is not known yet is None.

    The reading thread assigns the attributes. The screen only reads them, after the message that a part is ready.
    """

    program: ModuleStages
    stages: dict[str, Document] = field(default_factory=dict)
    errors: dict[str, JaxprofError] = field(default_factory=dict)
    """By stage, why it cannot be shown."""
    module: Module | None = None
    kernels: tuple[Kernel, ...] | None = None
    barriers: Mapping[str, Sequence[Barrier]] | None = None
    """Why kernels were not fused, by the name of each of the two."""
    findings: tuple[Finding, ...] | None = None
    origins: OriginColumns | None = None
    """The source lines and named scopes of `kernels`."""
    notices: tuple[Notice, ...] = ()
    """Notices about the module, such as parts that were not read, as far as is known by now."""
    over: bool = False
    """Whether reading has finished."""
    closed: threading.Event = field(default_factory=threading.Event)
    """Set once nothing more is to be read."""

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
        document, instruction = self.stages.get("hlo"), self.instruction(computation, name)
        return document.line_of(instruction) if isinstance(document, HloDocument) and instruction is not None else None

    def instruction(self, computation: str, name: str) -> Instruction | None:
        """Return an instruction of the optimised HLO by name."""
        holder = self.module.get(computation) if self.module is not None else None
        return holder.get(name) if holder is not None else None

    def close(self) -> None:
        """Let the thread that reads the program report nothing more; nothing waits for its end. For the UI thread."""
        self.closed.set()
        gc.unfreeze()

    def freeze(self) -> None:
        """Hide what was read from the garbage collector, until the program is closed. For the UI thread.

        All objects of a module refer to each other, so a full collection walks over all of them and frees nothing: for
        20 MB of HLO that pauses the app for 0.4 s, at any moment. The process is the app's own, so no objects of others
        are hidden.
        """
        if self.module is not None and len(self.module.text) > FROZEN:
            gc.freeze()


def open_in_thread(
    opened: OpenedModule,
    report: Callable[[OpenedModule, str], object],
    fail: Callable[[JaxprofError], object],
) -> None:
    """Read a program in a thread that quitting does not wait for; that thread calls `report` once a part is ready, and
    neither of both once the program is closed."""

    def failed(error: JaxprofError) -> None:
        if not opened.closed.is_set():
            what = f"{opened.program.title} could not be analysed: {error.what}"
            fail(JaxprofError(what, f"The text can still be read. {error.hint}"))

    def read() -> None:
        for part in read_program(opened):
            if opened.closed.is_set():
                return
            report(opened, part)

    in_daemon(read, "program", failed)


def read_program(opened: OpenedModule) -> Iterator[str]:
    """Read all of a program, the kernels first, and yield the name of each part that is ready. Blocks."""
    for name in sorted((stage.name for stage in STAGES), key=lambda name: name != "hlo"):
        if name in opened.program.stages:
            try:
                opened.stages[name] = _document(opened.program, name)
            except JaxprofError as error:
                opened.errors[name] = error
            if name == "hlo" and name in opened.stages:
                yield from _kernels(opened)
            else:
                yield name
    if opened.module is not None:
        yield from _conclusions(opened, opened.module)
    opened.over = True
    yield "over"


def _document(program: ModuleStages, name: str) -> Document:
    """Read a stage. Raises JaxprofError."""
    if name in HLO_STAGES:
        return HloDocument(program.modules(name))
    text = program.text(name)
    return Document(*(without_comments if name == "jaxpr" else without_locations)(text))


def _kernels(opened: OpenedModule) -> Iterator[str]:
    from jaxprof.hlo.analysis.kernels import kernels
    from jaxprof.hlo.analysis.notices import notices

    document = opened.stages["hlo"]
    assert isinstance(document, HloDocument)
    module = opened.module = opened.program.own(document.modules)
    if module.entry is not None:
        _ = module.entry.instructions  # parse in this thread, not in the one that draws
    yield "hlo"
    opened.kernels = kernels(module)
    opened.notices = notices(module)
    yield "kernels"


def _conclusions(opened: OpenedModule, module: Module) -> Iterator[str]:
    from jaxprof.hlo.analysis.barriers import barriers
    from jaxprof.hlo.analysis.findings.catalogue import findings
    from jaxprof.hlo.analysis.origin_columns import origin_columns

    opened.findings = findings(module)
    yield "findings"
    opened.barriers = grouped(
        (name, barrier) for barrier in barriers(module) for name in {barrier.producer, barrier.consumer}
    )
    yield "barriers"
    opened.origins = origin_columns(opened.kernels or (), cancelled=opened.closed.is_set)
    yield "origins"
