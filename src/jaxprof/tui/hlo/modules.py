"""What is known of the open program of the HLO screen: its texts, what follows from them, and the thread that reads it.

A text is of any size. It is not split or copied: a line is sliced when it is shown, and moves in HLO use its model,
which parses only the computation at the line. A search goes piece by piece, so that its thread can be stopped and lets
others work. The thread reads a program part by part, and passes each part to the screen as soon as it is ready.
"""

from __future__ import annotations

import gc
import re
import threading
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from jaxprof.base.errors import JaxprofError
from jaxprof.base.grouping import grouped
from jaxprof.base.units import integer
from jaxprof.base.values import frozen
from jaxprof.hlo.kernels.origin import OriginColumns
from jaxprof.hlo.source import Source
from jaxprof.hlo.source_lines import LineOrigin, Origins, without_comments, without_locations
from jaxprof.hlo.stages import HLO_STAGES, STAGES, ModuleStages
from jaxprof.hlo.text.model import Computation, Instruction, Module
from jaxprof.tui import clock
from jaxprof.tui.kit.guard import in_daemon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jaxprof.events.finding import Finding
    from jaxprof.hlo.kernels.barriers import Barrier
    from jaxprof.hlo.kernels.kernels import Kernel
    from jaxprof.hlo.kernels.notices import Notice
    from jaxprof.session import Session


class Document:
    """One text with its lines, counted from 0."""

    def __init__(self, text: str, origins: Origins | None = None) -> None:
        """`origins` has where the lines of a program came from; None for plain text."""
        self.source = Source(text)
        self._origins = origins or {}
        self.is_program = origins is not None
        self.line_count = max(1, self.source.line_count)
        self.left_at = 0
        """The line at which the reader left it."""

    def line(self, number: int) -> str:
        """Return line `number`; empty outside of the text."""
        return next(iter(self.source.lines(number + 1, 1)), "") if number >= 0 else ""

    def origin(self, number: int) -> LineOrigin | None:
        """Return where line `number` came from; None if the text does not say."""
        return self._origins.get(number)

    def offset(self, number: int) -> int:
        """Return where line `number` begins in the text."""
        return self.source.offset(number + 1)

    def number(self, offset: int) -> int:
        """Return the line that holds the character at `offset`."""
        return self.source.line(offset) - 1


class HloDocument(Document):
    """The text of one or several HLO modules, with the ways through it by names."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = tuple(modules)
        super().__init__(modules[0].source.text, {})

    def origin(self, number: int) -> LineOrigin | None:
        instruction = self.instruction(number)
        return LineOrigin.of(instruction.stack, instruction.metadata.first_name) if instruction is not None else None

    @cached_property
    def _computations(self) -> list[Computation]:
        computations = (computation for module in self.modules for computation in module.computations.values())
        return sorted((each for each in computations if not each.is_synthetic), key=_begin)

    def instruction(self, number: int) -> Instruction | None:
        """Return the instruction that line `number` belongs to; None in a header or an end, and outside of any."""
        line = self.line(number)
        at = self.offset(number) + len(line) - len(line.lstrip())
        before = bisect_right(self._computations, at, key=_begin) - 1
        computation = self._computations[before] if before >= 0 else None
        if computation is None or not line.strip() or not computation.span[1] <= at < computation.span[2]:
            return None
        return computation.at(at)

    def line_of(self, item: Instruction | Computation) -> int | None:
        """Return the line on which an instruction or computation begins; None if the text has another form."""
        computation = item if isinstance(item, Computation) else item.computation
        return None if computation.is_synthetic else item.line - 1

    def targets(self, number: int) -> dict[str, int]:
        """Return what line `number` refers to, with the lines that define it: what it calls, then its operands."""
        instruction = self.instruction(number)
        if instruction is None:
            return {}
        both: tuple[Instruction | Computation, ...] = (
            *instruction.callees(),
            *instruction.operand_instructions(),
        )
        return {item.name: line for item in both if (line := self.line_of(item)) is not None}


def _begin(item: Instruction | Computation) -> int:
    return item.span[0]


_PIECE = 1 << 18
"""Characters per piece. A piece takes about a millisecond, during which the thread holds the interpreter lock."""
MOST = 1_000_000
"""Most matches kept; a search with more of them is marked as incomplete."""


@frozen
class Hits:
    pattern: re.Pattern[str]
    offsets: array[int]
    complete: bool = True
    """False if there are more matches than are kept."""

    def words(self, index: int | None) -> str:
        """Return the state of the search: `3 of 128`, `none` or `1 000 000 or more`."""
        if not self.offsets:
            return "none"
        shown = integer(len(self.offsets)) + ("" if self.complete else " or more")
        return f"{index + 1} of {shown}" if index is not None else shown


def search(text: str, pattern: re.Pattern[str], wanted: Callable[[], bool] = lambda: True) -> Hits | None:
    """Return the matches of a pattern in a text; None once the search is no longer `wanted`. Blocks: for threads."""
    offsets, at = array("Q"), 0
    while at < len(text) and len(offsets) < MOST:
        if not wanted():
            return None
        end = text.find("\n", min(at + _PIECE, len(text)))
        end = len(text) if end < 0 else end + 1
        found = (match for match in pattern.finditer(text, at, end) if match.end() > match.start())
        offsets.extend(match.start() for match in found)
        at = end
    return Hits(pattern, offsets[:MOST], complete=len(offsets) < MOST)


# -- the program ----------------------------------------------------------------------------------------------

EVERY = 0.5
"""Seconds from one message that kernels are being read to the next."""
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
    session: Session | None = None
    """The session that the program is a run of; None for a module of a file."""
    stages: dict[str, Document] = field(default_factory=dict)
    errors: dict[str, JaxprofError] = field(default_factory=dict)
    module: Module | None = None
    kernels: tuple[Kernel, ...] | None = None
    first: Sequence[Kernel] = ()
    """The first kernels of a large module, before all are known."""
    read: int = 0
    """Number of kernels that were read by now."""
    barriers: Mapping[str, Sequence[Barrier]] | None = None
    """Why kernels were not fused, by the name of each of the two."""
    findings: tuple[Finding, ...] | None = None
    origins: OriginColumns | None = None
    notices: tuple[Notice, ...] = ()
    """Notices about the module, such as parts that were not read, as far as is known by now."""
    over: bool = False
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
        document, instruction = self.stages.get("hlo"), self.instruction(computation, name)
        return document.line_of(instruction) if isinstance(document, HloDocument) and instruction is not None else None

    def instruction(self, computation: str, name: str) -> Instruction | None:
        holder = self.module.get(computation) if self.module is not None else None
        return holder.get(name) if holder is not None else None

    def close(self) -> None:
        """Let the thread that reads the program report nothing more; nothing waits for its end. For the UI thread."""
        self.closed.set()
        gc.unfreeze()

    def freeze(self) -> None:
        """Hide what was read from the garbage collector, until the program is closed. For the UI thread. A full
        collection walks over all objects of a module and frees none: for 20 MB of HLO that pauses the app for 0.4 s."""
        if self.module is not None and len(self.module.text) > FROZEN:
            gc.freeze()


def open_in_thread(
    opened: OpenedModule, report: Callable[[OpenedModule, str], object], fail: Callable[[JaxprofError], object]
) -> None:
    """Read a program in a thread that quitting does not wait for, and that reports nothing of a closed program."""

    def report_failure(error: JaxprofError) -> None:
        if not opened.closed.is_set():
            what = f"{opened.program.title} could not be analysed: {error.what}"
            fail(JaxprofError(what, f"The text can still be read. {error.hint}"))

    def read() -> None:
        for part in read_program(opened):
            if opened.closed.is_set():
                return
            report(opened, part)

    in_daemon(read, "program", report_failure)


def read_program(opened: OpenedModule) -> Iterator[str]:
    """Read all of a program, the kernels first, and yield the name of each part that is ready. Blocks."""
    recorded = (stage.name for stage in STAGES if stage.name in opened.program.stages)
    for name in sorted(recorded, key=lambda name: name != "hlo"):
        try:
            if name in HLO_STAGES:
                opened.stages[name] = HloDocument(opened.program.modules(name))
            else:
                text = opened.program.text(name)
                opened.stages[name] = Document(*(without_comments if name == "jaxpr" else without_locations)(text))
        except JaxprofError as error:
            opened.errors[name] = error
        document = opened.stages.get(name)
        if name == "hlo" and isinstance(document, HloDocument):
            from jaxprof.hlo.kernels.kernels import build_in_steps, kernels
            from jaxprof.hlo.kernels.notices import notices

            own = opened.module = opened.program.own(document.modules)
            if own.entry is not None:
                _ = own.entry.instructions  # parse in this thread, not in the one that draws
            yield "hlo"
            due = clock.monotonic() + EVERY
            for built in build_in_steps(own):
                if clock.monotonic() >= due:
                    opened.first, opened.read = opened.first or tuple(built), len(built)
                    yield "first kernels"
                    due = clock.monotonic() + EVERY
            opened.kernels, opened.notices = kernels(own), notices(own)
            yield "kernels"
        else:
            yield name
    if (module := opened.module) is not None:
        from jaxprof.analysis.kernels.hlo_program import HloProgram
        from jaxprof.facts.hlo import findings_of
        from jaxprof.hlo.kernels.barriers import barriers
        from jaxprof.hlo.kernels.origin import origin_columns

        program = HloProgram(opened.program, opened.session)
        program.hlo = module
        opened.findings = tuple(findings_of(program))
        yield "findings"
        opened.barriers = grouped(
            (name, barrier) for barrier in barriers(module) for name in {barrier.producer, barrier.consumer}
        )
        yield "barriers"
        instructions = (kernel.instruction for kernel in opened.kernels or ())
        opened.origins = origin_columns(instructions, cancelled=opened.closed.is_set)
        yield "origins"
    opened.over = True
    yield "over"
