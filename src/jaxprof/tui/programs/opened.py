"""A program that was opened: its stages as documents with their places, its kernels, and what is to be said of them.

Everything here is made in a thread, part by part, and handed to the screen as it becomes ready.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.hlo.lexer import Language
from jaxprof.hlo.places import HloPlaces, Places, without_comments, without_locations
from jaxprof.tui.programs.document import Document
from jaxprof.tui.programs.hlo_ways import HloWays
from jaxprof.tui.programs.program import HLO_STAGES, STAGES, Program
from jaxprof.tui.programs.text_ways import TextWays

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxprof.hlo.analysis import Barrier, Finding, Kernel
    from jaxprof.hlo.model import Instruction, Module


@dataclass(slots=True)
class Stage:
    """One stage, ready to be shown."""

    name: str
    document: Document
    places: Places
    hlo: HloWays | None = None


@dataclass(slots=True)
class Opened:
    """What is known of a program so far. Parts that are not there yet are None."""

    program: Program
    stages: dict[str, Stage] = field(default_factory=dict)
    errors: dict[str, JaxprofError] = field(default_factory=dict)
    """What prevented a stage from being shown."""
    module: Module | None = None
    kernels: tuple[Kernel, ...] | None = None
    barriers: tuple[Barrier, ...] | None = None
    findings: tuple[Finding, ...] | None = None
    over: bool = False
    """Nothing more will come."""

    def kernel_line(self, computation: str, name: str) -> int | None:
        """The line of a kernel, or of any instruction, in the optimised HLO."""
        stage = self.stages.get("hlo")
        if stage is None or stage.hlo is None:
            return None
        if self.module is not None:
            holder = self.module.get(computation)
            found = holder.get(name) if holder is not None else None
            if found is not None:
                return stage.hlo.line_of(found)
        return stage.hlo.line_of_kernel(computation, name)

    def instruction(self, computation: str, name: str) -> Instruction | None:
        """An instruction of the optimised HLO by name."""
        holder = self.module.get(computation) if self.module is not None else None
        return holder.get(name) if holder is not None else None


def read_stage(program: Program, name: str) -> tuple[Stage, list[Module]]:
    """Reads a stage; for HLO also gives its modules. Blocks. Raises JaxprofError."""
    content = program.stages[name]()
    if name in HLO_STAGES:
        from jaxprof.hlo.parse import modules as parse

        modules = list(content.modules or parse(content.text))
        ways = HloWays(modules)
        document = Document(modules[0].source.text, Language.HLO, ways)
        return Stage(name, document, HloPlaces(ways), ways), modules
    language = Language.JAXPR if name == "jaxpr" else Language.STABLEHLO
    text, places = without_comments(content.text) if name == "jaxpr" else without_locations(content.text)
    document = Document(text, language)
    document.ways = TextWays(document.source, language)
    return Stage(name, document, places), []


def open_program(opened: Opened, tell: Callable[[str], None], cancelled: Callable[[], bool]) -> None:
    """Reads everything about a program, the kernels first, and calls `tell` with the part that is ready. Blocks."""
    from jaxprof.hlo.analysis import barriers, findings, kernels

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
            tell(name)
            continue
        opened.stages[name] = stage
        if name == "hlo" and modules:
            opened.module = modules[min(opened.program.module, len(modules) - 1)]
            if opened.module.entry is not None:
                _ = opened.module.entry.instructions  # cut up here, and not on the thread that draws
            tell(name)
            opened.kernels = kernels(opened.module)
            tell("kernels")
        else:
            tell(name)
    if opened.module is not None and not cancelled():
        opened.findings = findings(opened.module)
        tell("findings")
        if cancelled():
            return
        opened.barriers = barriers(opened.module)
        tell("barriers")
    opened.over = True
    tell("over")
