"""HLO programs as text and as data: kernels with their roofline, findings, barriers, a kernel's tree, a device table.

Least times come from the ceilings and links of a device and are called lower bounds; times from a model are called
estimates. Nothing here is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from jaxprof.facts import SENTENCE, Fact, at, column, pick, within
from jaxprof.facts.units import BYTE_RATE, BYTES, COUNT, INDEX, LIST, OBJECT, ROWS, SECONDS, TEXT, TRUTH
from jaxprof.hlo.analysis.barriers import barriers
from jaxprof.hlo.analysis.collectives import collectives
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.kernels import Kernel, kernels, totals
from jaxprof.hlo.analysis.notices import NOT_OPTIMISED, notices, problems
from jaxprof.hlo.analysis.origin import place_of
from jaxprof.hlo.analysis.platform import platform_of
from jaxprof.hlo.analysis.tree import text_tree, tree
from jaxprof.report.kernels import KERNEL, LARGE, KernelOptions, likeness, released, rows_of
from jaxprof.report.renderers import text_lines
from jaxprof.report.table import Table
from jaxprof.text import safe
from jaxprof.units import and_more, bytes_, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.flame import FlameGraph
    from jaxprof.analysis.memory import MemoryPicture
    from jaxprof.analysis.ranking import Ranked
    from jaxprof.devices.targets import Exchange, Machine, StepTime
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.collectives import Collective
    from jaxprof.hlo.analysis.findings.finding import HloFinding
    from jaxprof.hlo.analysis.kernels import ModuleTotals
    from jaxprof.hlo.analysis.notices import Notice
    from jaxprof.hlo.analysis.origin import HloSourceLocation
    from jaxprof.hlo.model import Computation, Instruction, Module
    from jaxprof.hlo.read.record import Record
    from jaxprof.session import Run


_EXECUTION_ORDER: Final = KernelOptions()


@dataclass(frozen=True)
class HloProgram:
    """A program in an answer of `jaxprof hlo`."""

    module: Module
    label: str = ""
    machine: Machine | None = None
    run: Run | None = None
    elsewhere: bool = False
    """Whether the program was compiled for a device that this machine does not have."""
    memory: MemoryPicture | None = None
    choice: KernelOptions = _EXECUTION_ORDER

    @cached_property
    def step(self) -> StepTime | None:
        """Lower bound and estimate of one run on the device; None without a device."""
        from jaxprof.devices.targets import step_time

        return step_time(self.module, self.machine) if self.machine is not None else None

    @cached_property
    def flame(self) -> FlameGraph:
        """Flame graph of the kernels by named scope."""
        from jaxprof.report.flame import module_flame

        return module_flame(self.module, self.machine, self.run)


def _lazy_rows(make: Callable[[HloProgram], Iterable[Any]]) -> Callable[[HloProgram], Iterator[Any]]:
    """Return a version of `make` that derives the rows only when the first one is printed."""

    def rows(program: HloProgram) -> Iterator[Any]:
        yield from make(program)

    return rows


def _computations(program: HloProgram) -> Iterator[Computation]:
    module = program.module
    large = len(module.text) > LARGE
    for computation in module.computations.values():
        yield computation
        if large and computation is not module.entry:
            computation.forget()


_InstructionRow = tuple["Instruction", "Record", "HloSourceLocation | None"]
"""An instruction, its parsed text (looked up once for all columns), and its source location."""
_INSTRUCTION: Final[tuple[Fact[_InstructionRow], ...]] = (
    Fact("name", TEXT, "Its name", lambda row: row[0].name),
    Fact("opcode", TEXT, "The HLO operation", lambda row: row[0].opcode),
    Fact("shape", TEXT, "Its type and shape", lambda row: str(row[1].shape)),
    Fact("operands", LIST, "The instructions that it reads", lambda row: row[1].operands),
    Fact("called", LIST, "The computations that it calls", lambda row: row[0].called),
    Fact("op_name", TEXT, "JAX's path", lambda row: row[1].metadata.op_name),
    Fact("file", TEXT, "File of the source line", lambda row: row[2] and row[2].file),
    Fact("line", INDEX, "Line of the source", lambda row: row[2] and row[2].line),
)


def _instruction_rows(computation: Computation) -> Iterator[_InstructionRow]:
    stack_of = computation.module.stack_of
    for instruction in computation.instructions:
        parts = instruction.parts
        yield instruction, parts, place_of(stack_of(parts.metadata))


_COMPUTATION: Final[tuple[Fact[Computation], ...]] = (
    Fact("name", TEXT, "Its name"),
    Fact("entry", TRUTH, "Whether the program begins there", at("is_entry")),
    Fact("instructions", ROWS, "Its instructions", _instruction_rows, inside=_INSTRUCTION),
)
BARRIERS: Final[tuple[Fact[Barrier], ...]] = (
    Fact("producer", TEXT, "The kernel that writes the data", title="producer", widest=40),
    Fact("consumer", TEXT, "The kernel that reads the data", title="consumer", widest=40),
    Fact("reason", TEXT, "Why the two are not one kernel, as the documents list it"),
    Fact("words", TEXT, "Why the two are not one kernel, in words", title="why not fused"),
    Fact("bytes", BYTES, "What fusing would save", title="bytes"),
)
FINDINGS: Final[tuple[Fact[HloFinding], ...]] = (
    *SENTENCE,
    Fact("where", LIST, "Kernels that it is about"),
    Fact("bytes", BYTES, "Traffic of one call that it accounts for"),
)
_NOTICES: Final[tuple[Fact[Notice], ...]] = (
    Fact("code", TEXT, "What kind it is"),
    Fact("message", TEXT, "What of the module was not seen"),
    Fact("hint", TEXT, "What would show it"),
    Fact("serious", TRUTH, "Whether it makes conclusions doubtful"),
)
_PROBLEMS: Final[tuple[Fact[Any], ...]] = (
    Fact("line", INDEX, "Line of the text"),
    Fact("message", TEXT, "What could not be read"),
)
_DEVICE: Final[tuple[Fact[HloProgram], ...]] = (
    Fact("name", TEXT, "Name of the device", at("machine.device.name")),
    Fact("estimate", TRUTH, "Whether this machine lacks the device, so that nothing was measured on it",
         at("elsewhere")),
    Fact("memory_bytes", BYTES, "Its memory", at("machine.device.memory_bytes")),
    Fact("memory_needed_bytes", BYTES, "What the program needs of it", lambda program: _needed_bytes(program.run)),
    *within(
        at("step"),
        (
            Fact("least_seconds", SECONDS, "Lower bound of one run", at("bound_seconds")),
            Fact("bound", TEXT, "What sets the lower bound", at("limit")),
            Fact("estimate_seconds", SECONDS, "Estimate of one run, with collectives by their model"),
        ),
    ),
    Fact("source", TEXT, "Where its ceilings come from", at("machine.device.source")),
    Fact("links", ROWS, "Its links to other devices", at("machine.levels"), inside=(
        Fact("name", TEXT, "Name of the link"),
        Fact("devices", COUNT, "Devices of a unit"),
        Fact("bytes_per_second", BYTE_RATE, "Bandwidth of the link", at("bandwidth")),
        Fact("source", TEXT, "The document that says so", at("document")),
    )),
)  # fmt: skip


def facts_of_program(view: str | None = None) -> tuple[Fact[HloProgram], ...]:
    """Return the facts of a program in JSON, or those of one view of it. Long lists are derived while they are
    printed."""
    view_facts: dict[str, tuple[Fact[HloProgram], ...]] = {
        "kernels": (Fact("kernels", ROWS, "Its kernels", partial(_kernels, keep=view is None), inside=KERNEL,
                         alike=likeness),),
        "barriers": (
            Fact("barriers", ROWS, "Kernels that share an array and are not one, the most bytes first",
                 _lazy_rows(lambda program: barriers(program.module)), inside=BARRIERS),
        ),
        "findings": (
            Fact("findings", ROWS, "What is worth changing", _lazy_rows(lambda program: findings(program.module)),
                 inside=FINDINGS),
        ),
    }  # fmt: skip
    last: tuple[Fact[HloProgram], ...] = ()
    if view == "memory":
        from jaxprof.facts.memory import MEMORY

        last = (Fact("memory", OBJECT, "Its memory; null for a module that is not scheduled", inside=MEMORY),)
    elif view == "flame":
        from jaxprof.report.flame import FLAME, GRAPH, graph_rows

        frames = _lazy_rows(lambda program: graph_rows(program.flame))
        last = (
            Fact("flame", ROWS, "The frames of the flame graph, those with most first", frames, inside=FLAME),
            *within(at("flame"), GRAPH),
        )
    device_facts = (
        Fact("device", OBJECT, "The device that it is compared with", lambda program: program,
                         inside=_DEVICE, when=at("machine")),
        Fact("collectives", ROWS, "Its collectives over the links", _collective_rows,
                         inside=COLLECTIVES, when=at("machine")),
    )  # fmt: skip
    return (
        Fact("run", TEXT, "Id of its run", at("run.id"), when=at("run")),
        Fact("label", TEXT, "Name of its run for people", when=at("run")),
        Fact("module", TEXT, "Name of the HLO module", at("module.name")),
        *((Fact("computations", ROWS, "Its computations", _computations, inside=_COMPUTATION),)
          if view is None else ()),
        Fact("platform", TEXT, "cpu, gpu, tpu", lambda program: platform_of(program.module)),
        *chain.from_iterable(facts for name, facts in view_facts.items() if view in (None, name)),
        Fact("notices", ROWS, "What of the module was not seen", _lazy_rows(lambda program: notices(program.module)),
             inside=_NOTICES),
        Fact("problems", ROWS, "Lines that could not be read", _lazy_rows(lambda program: problems(program.module)),
             inside=_PROBLEMS),
        *(device_facts if view in (None, "kernels") else ()),
        *last,
    )  # fmt: skip


def _kernels(program: HloProgram, *, keep: bool) -> Iterator[Ranked]:
    yield from released(rows_of(program.module, program.machine, program.choice, keep=keep))


def notices_text(module: Module) -> list[str]:
    """Return the gaps of the module, one line each, and an empty line. They come before what is derived from the
    rest."""
    lines = [safe(str(notice)) for notice in notices(module)]
    return [*lines, ""] if lines else []


def findings_text(module: Module) -> list[str]:
    """Return each finding with its advice and its kernels."""
    lines = notices_text(module)
    for finding in findings(module):
        size = f"  ({bytes_(finding.bytes)})" if finding.bytes else ""
        text = (
            f"{finding.code}: {finding.message}{size}",
            f"    {finding.advice}",
            f"    at {and_more(finding.where, 5)}",
        )
        lines += [*map(safe, text), ""]
    if findings(module):
        return lines
    codes = {notice.code for notice in notices(module) if notice.serious}
    if NOT_OPTIMISED in codes:
        return [*lines, "no findings among the few that a module before XLA's passes can show"]
    return [*lines, "no findings" + (" in what was read" if codes else "")]


def barriers_text(module: Module) -> list[str]:
    """Return a line for each pair of kernels that share an array but are not fused, the most bytes first."""
    rows = barriers(module)
    lines = notices_text(module)
    if rows:
        table = Table((*pick(BARRIERS, "bytes", "producer", "consumer"), column("why not fused", at("why"))), rows)
        return [*lines, *text_lines(table, indent="")]
    codes = {notice.code for notice in notices(module) if notice.serious}
    if NOT_OPTIMISED in codes:
        return [*lines, "unknown: before XLA's passes nothing is fused, and nothing is kept apart"]
    return [*lines, "no barriers" + (" in what was read" if codes else "")]


def memory_text(module: Module, picture: MemoryPicture | None) -> list[str]:
    """Return the peak of memory, and what is alive there."""
    from jaxprof.report.memory import memory_lines  # imports the session modules, which only this view needs

    lines = [line.removeprefix("  ") for line in memory_lines(picture)]
    why = "unknown: the module is not scheduled, or has no instructions"
    return [*notices_text(module), *(lines or [why])]


def flame_text(module: Module, machine: Machine | None, run: Run | None) -> list[str]:
    """Return the flame graph of the kernels by named scope, with a note on what its shares are of."""
    from jaxprof.report.flame import graph_lines

    graph = HloProgram(module, machine=machine, run=run).flame
    return [*notices_text(module), *(graph_lines(graph) if graph.tree.total else [graph.remark or "no kernels"])]


def tree_text(kernel: Kernel) -> list[str]:
    """Return the tree of a kernel from its root to its parameters, its launches, and its source lines."""
    lines = text_tree(tree(kernel.instruction))
    places = [f"{place.file}:{place.line}" + ("" if place.is_own else "  (a package)") for place in kernel.sources]
    launched = ["", ", ".join(kernel.launches.parts)] if kernel.launches is not None else []
    origin = [f"{'' if number else 'from':<4} {place}" for number, place in enumerate(places)]
    return [safe(line) for line in (*lines, *launched, *(["", *origin] if origin else []))]


@dataclass(frozen=True, slots=True)
class _DeviceCost:
    """Cost of a module on a device that it was compiled for."""

    label: str
    kernels: int
    totals: ModuleTotals
    step: StepTime
    memory: str


def devices_table(rows: Sequence[tuple[str, Module, Machine, Run | None]]) -> list[str]:
    """Return one line for each target device: kernels, FLOPs, bytes, lower bound and estimate of a run, memory.

    `rows`: label of the device, the module compiled for it, its machine, and the run that compiled it.
    """
    from jaxprof.devices.targets import step_time

    costs = [
        _DeviceCost(label, len(kernels(module)), totals(module), step_time(module, machine), _memory_text(run, machine))
        for label, module, machine, run in rows
    ]
    on_gpu = any(machine.device.vendor != "Google" for _, _, machine, _ in rows)
    return [*text_lines(Table(_DEVICES, costs), indent=""), "", *_WHAT_STEPS_ARE, *([_ON_A_GPU] if on_gpu else [])]


def _needed_bytes(run: Run | None) -> int | None:
    from jaxprof.analysis.memory import peak_memory  # imports the session modules, which HLO from a file does not need

    return peak_memory(run)


def _memory_text(run: Run | None, machine: Machine) -> str:
    needed, available = _needed_bytes(run), machine.device.memory_bytes
    too_large = needed is not None and needed > available
    return f"{bytes_(needed)} of {bytes_(available)}{'  does not fit' if too_large else ''}"


_DEVICES: Final[tuple[Fact[_DeviceCost], ...]] = (
    column("device", at("label")),
    column("kernels", at("kernels"), right=True),
    column("FLOPs", lambda row: row.totals.cost.flops if row.totals.complete else None, scaled),
    column("bytes", lambda row: row.totals.bytes if row.totals.sized else None, bytes_),
    column("at least", at("step.bound_seconds"), seconds),
    column("bound by", at("step.limit")),
    column("estimate", at("step.estimate_seconds"), seconds),
    column("memory", at("memory")),
)
_WHAT_STEPS_ARE = (
    "at least: lower bound, kernels in this order at the device's ceilings, and links; asynchronous work overlaps.",
    "estimate: the same, with collectives timed as a ring or a tree; kernels are still at their ceilings.",
)
_ON_A_GPU = (
    "GPUs: no lower bound where arrays stay in a cache. XLA chooses tiles and splits of products by trying them on the "
    "device, which is not here: --autotune-results FILE takes what it chose on one."
)


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """A collective with its exchange over the links."""

    collective: Collective
    exchange: Exchange


COLLECTIVES: Final[tuple[Fact[CollectiveRow], ...]] = (
    Fact("name", TEXT, "Name of the HLO instruction", at("collective.kernel.name"), "collective"),
    Fact("opcode", TEXT, "The HLO operation", at("collective.opcode"), "opcode"),
    Fact("devices", COUNT, "Devices that take part", at("collective.group_size"), "devices"),
    Fact("bytes", BYTES, "Size of what is exchanged", at("collective.bytes"), "bytes"),
    Fact("least_seconds", SECONDS, "Lower bound of one execution", at("exchange.bound_seconds"), "at least"),
    Fact("link", TEXT, "The link that sets it", at("exchange.link"), "over"),
    Fact("estimate_seconds", SECONDS, "Estimate of one execution", at("exchange.estimate_seconds"), "estimate"),
    Fact("algorithm", TEXT, "ring, tree or direct", at("exchange.way"), "as a"),
)


def _collective_rows(program: HloProgram) -> list[CollectiveRow]:
    from jaxprof.devices.targets import exchanges

    assert program.machine is not None
    over = exchanges(program.module, program.machine)
    return [
        CollectiveRow(collective, over[collective.kernel.computation, collective.kernel.name])
        for collective in collectives(program.module)
    ]


def collectives_text(module: Module, machine: Machine) -> list[str]:
    """Return each collective with its bytes, the devices that take part, and its lower bound and estimate over the
    links."""
    rows = _collective_rows(HloProgram(module, machine=machine))
    lines = list(text_lines(Table(COLLECTIVES, rows), indent=""))
    documents = [safe(f"{level.name}: {level.document}") for level in machine.levels]
    return [*lines, "", *documents] if lines else []
