"""Programs as text and as data: kernels with their roofline, findings, barriers, a kernel's tree, a table of devices.

Least times come from ceilings and links, and are called lower bounds; what follows a model is called an estimate.
Nothing here was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jaxprof.facts import at
from jaxprof.hlo.analysis.barriers import barriers
from jaxprof.hlo.analysis.collectives import collectives
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.kernel import Kernel
from jaxprof.hlo.analysis.kernels import kernels, totals
from jaxprof.hlo.analysis.notices import NOT_OPTIMISED, notices
from jaxprof.hlo.analysis.origin import place_of
from jaxprof.hlo.analysis.platform import platform_of
from jaxprof.hlo.analysis.tree import text_tree, tree
from jaxprof.hlo.frames import is_own
from jaxprof.hlo.problems import problems
from jaxprof.report.kernel_list import LARGE, KernelOptions, rows_of
from jaxprof.report.kernels import row_json
from jaxprof.report.renderers import records, text_lines
from jaxprof.report.table import Column, Table
from jaxprof.text import safe
from jaxprof.units import bytes_, integer, scaled, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jaxprof.analysis.memory import MemoryPicture
    from jaxprof.devices.targets import Exchange, Machine, StepTime
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.collectives import Collective
    from jaxprof.hlo.analysis.findings.finding import HloFinding
    from jaxprof.hlo.analysis.kernels import ModuleTotals
    from jaxprof.hlo.analysis.notices import Notice
    from jaxprof.hlo.model import Instruction, Module
    from jaxprof.session import Run


def module_json(module: Module, rows: Iterator[dict[str, Any]], view: str | None = None) -> dict[str, Any]:
    """The module's computations with their instructions, its kernels (`rows`), and what of it could not be read; of one
    view (`kernels`, `barriers`, `findings`) only that. What may be long is an iterator."""
    data: dict[str, Any] = {"module": module.name}
    if view is None:
        data["computations"] = _computations(module)
    data["platform"] = platform_of(module) or None
    if view in (None, "kernels"):
        data["kernels"] = rows
    if view in (None, "barriers"):
        data["barriers"] = _later(lambda: map(_barrier, barriers(module)))
    if view in (None, "findings"):
        data["findings"] = _later(lambda: map(_finding, findings(module)))
    data["notices"] = _later(lambda: map(_notice, notices(module)))
    data["problems"] = _later(
        lambda: ({"line": problem.line, "message": problem.message} for problem in problems(module))
    )
    return data


def _later(make: Callable[[], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """An iterator that is created when its first item is requested."""
    yield from make()


def _computations(module: Module) -> Iterator[dict[str, Any]]:
    entry = module.entry
    large = len(module.text) > LARGE
    for computation in module.computations.values():
        yield {
            "name": computation.name,
            "entry": computation is entry,
            "instructions": map(_instruction, computation.instructions),
        }
        if large and computation is not entry:
            computation.forget()


def _barrier(barrier: Barrier) -> dict[str, Any]:
    return {
        "producer": barrier.producer,
        "consumer": barrier.consumer,
        "reason": barrier.reason,
        "words": barrier.words,
        "bytes": barrier.bytes,
    }


def _finding(finding: HloFinding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "message": finding.message,
        "advice": finding.advice,
        "where": list(finding.where),
        "bytes": finding.bytes,
    }


def _notice(notice: Notice) -> dict[str, Any]:
    return {"code": notice.code, "message": notice.message, "hint": notice.hint or None, "serious": notice.serious}


def _instruction(instruction: Instruction) -> dict[str, Any]:
    place = place_of(instruction.stack)
    return {
        "name": instruction.name,
        "opcode": instruction.opcode,
        "shape": str(instruction.shape),
        "operands": list(instruction.operands),
        "called": list(instruction.called),
        "op_name": instruction.metadata.op_name or None,
        "source": {"file": place.file, "line": place.line} if place is not None else None,
    }


def notices_text(module: Module) -> list[str]:
    """The gaps of the module, a line each and an empty one; they stand before everything about the rest."""
    lines = [safe(str(notice)) for notice in notices(module)]
    return [*lines, ""] if lines else []


def findings_text(module: Module) -> list[str]:
    """Each finding with its advice and its kernels."""
    lines = notices_text(module)
    for finding in findings(module):
        where = ", ".join(finding.where[:5]) + (f" and {len(finding.where) - 5} more" if len(finding.where) > 5 else "")
        size = f"  ({bytes_(finding.bytes)})" if finding.bytes else ""
        lines += [
            safe(f"{finding.code}: {finding.message}{size}"),
            safe(f"    {finding.advice}"),
            safe(f"    at {where}"),
            "",
        ]
    if findings(module):
        return lines
    codes = {notice.code for notice in notices(module) if notice.serious}
    if NOT_OPTIMISED in codes:
        return [*lines, "no findings among the few that a module before XLA's passes can show"]
    return [*lines, "no findings" + (" in what was read" if codes else "")]


def barriers_text(module: Module) -> list[str]:
    """A line for each pair of kernels that share an array and are not one, the most bytes first."""
    rows = barriers(module)
    if rows:
        return [*notices_text(module), *text_lines(Table(_BARRIERS, rows), indent="")]
    codes = {notice.code for notice in notices(module) if notice.serious}
    if NOT_OPTIMISED in codes:
        return [*notices_text(module), "not known: nothing is fused before XLA's passes, and nothing kept apart"]
    return [*notices_text(module), "no barriers" + (" in what was read" if codes else "")]


def memory_text(module: Module, picture: MemoryPicture | None) -> list[str]:
    """The peak of memory, and what is alive there."""
    from jaxprof.report.memory import memory_lines  # and what it knows of sessions: only for this view

    lines = [line.removeprefix("  ") for line in memory_lines(picture)]
    why = "not known: the order of the instructions is not that of execution, or there are none"
    return [*notices_text(module), *(lines or [why])]


def module_memory_json(picture: MemoryPicture | None) -> dict[str, Any] | None:
    """The same, as `report.memory.memory_json` has it."""
    from jaxprof.report.memory import memory_json

    return memory_json(picture)


def flame_text(module: Module, machine: Machine | None, run: Run | None) -> list[str]:
    """The kernels by named scope, with the weights that shares are of."""
    from jaxprof.report.flame.rows import graph_lines, module_flame  # only for this view

    graph = module_flame(module, machine, run)
    return [*notices_text(module), *(graph_lines(graph) if graph.tree.total else [graph.remark or "no kernels"])]


def flame_json(module: Module, machine: Machine | None, run: Run | None) -> dict[str, Any]:
    """The same frames, those with most first, and what their amounts are."""
    from jaxprof.report.flame.rows import FLAME, graph_json, graph_rows, module_flame

    graph = module_flame(module, machine, run)
    return {"flame": _later(lambda: records(Table(FLAME, graph_rows(graph)))), **graph_json(graph)}


def tree_text(kernel: Kernel) -> list[str]:
    """The tree of a kernel, from its root to its parameters, and all source lines that it came from."""
    lines = text_tree(tree(kernel.instruction))
    places = [
        f"{place.file}:{place.line}" + ("" if is_own(place.file) else "  (a package)") for place in kernel.sources
    ]
    return [safe(line) for line in (*lines, *(["", "from", *places] if places else []))]


@dataclass(frozen=True, slots=True)
class _DeviceCost:
    """What a module costs on a device that it was compiled for."""

    label: str
    kernels: int
    totals: ModuleTotals
    step: StepTime
    memory: str


def devices_table(rows: Sequence[tuple[str, Module, Machine, Run | None]]) -> list[str]:
    """One line a device that was compiled for: kernels, FLOPs, bytes, a run's bound and estimate, memory."""
    from jaxprof.devices.targets import step_time

    costs = [
        _DeviceCost(label, len(kernels(module)), totals(module), step_time(module, machine), _memory(run, machine))
        for label, module, machine, run in rows
    ]
    on_gpu = any(machine.device.vendor != "Google" for _, _, machine, _ in rows)
    return [*text_lines(Table(_DEVICES, costs), indent=""), "", *_WHAT_STEPS_ARE, *([_ON_A_GPU] if on_gpu else [])]


def _needed_bytes(run: Run | None) -> int | None:
    from jaxprof.analysis.memory import peak_memory  # knows sessions, which HLO of a file has none of

    return peak_memory(run)


def _memory(run: Run | None, machine: Machine) -> str:
    needed, available = _needed_bytes(run), machine.device.memory_bytes
    too_large = needed is not None and needed > available
    return f"{bytes_(needed)} of {bytes_(available)}{'  does not fit' if too_large else ''}"


_BARRIERS: Final[tuple[Column[Barrier], ...]] = (
    Column("bytes", "bytes", show=bytes_),
    Column("producer", "producer", widest=40),
    Column("consumer", "consumer", widest=40),
    Column("words", "why not fused"),
)
_DEVICES: Final[tuple[Column[_DeviceCost], ...]] = (
    Column("label", "device"),
    Column("kernels", "kernels", right=True),
    Column("", "FLOPs", lambda row: row.totals.cost.flops if row.totals.complete else None, scaled),
    Column("", "bytes", lambda row: row.totals.bytes if row.totals.sized else None, bytes_),
    Column("", "at least", at("step.bound_seconds"), seconds),
    Column("", "bound by", at("step.limit")),
    Column("", "estimate", at("step.estimate_seconds"), seconds),
    Column("memory", "memory"),
)
_WHAT_STEPS_ARE = (
    "at least: kernels at their ceilings in this order, and links; what is asynchronous overlaps.",
    "estimate: the same with collectives as a ring or tree takes them; kernels are at their ceilings in it, too.",
)
_ON_A_GPU = (
    "GPUs: no lower bound where arrays stay in a cache. XLA chooses tiles and splits of products by trying them on the "
    "device, which is not here: XLA_FLAGS=--xla_gpu_load_autotune_results_from=FILE takes the results of one."
)


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """A collective with its exchange over the links."""

    collective: Collective
    exchange: Exchange


_COLLECTIVES: Final[tuple[Column[CollectiveRow], ...]] = (
    Column("name", "collective", at("collective.kernel.name")),
    Column("opcode", "opcode", at("collective.opcode")),
    Column("devices", "devices", at("collective.group_size"), integer),
    Column("bytes", "bytes", at("collective.bytes"), bytes_),
    Column("least_seconds", "at least", at("exchange.bound_seconds"), seconds),
    Column("link", "over", lambda row: row.exchange.link or None),
    Column("estimate_seconds", "estimate", at("exchange.estimate_seconds"), seconds),
    Column("algorithm", "as a", lambda row: row.exchange.way or None),
)


def _collectives(module: Module, machine: Machine) -> Table[CollectiveRow]:
    from jaxprof.devices.targets import exchanges

    over = exchanges(module, machine)
    rows = [
        CollectiveRow(collective, over[collective.kernel.computation, collective.kernel.name])
        for collective in collectives(module)
    ]
    return Table(_COLLECTIVES, rows)


def collectives_text(module: Module, machine: Machine) -> list[str]:
    """Each collective with its bytes, the devices that take part, and its bound and estimate over the links."""
    lines = list(text_lines(_collectives(module, machine), indent=""))
    documents = [safe(f"{level.name}: {level.document}") for level in machine.levels]
    return [*lines, "", *documents] if lines else []


def program_json(
    module: Module,
    machine: Machine | None,
    run: Run | None,
    *,
    elsewhere: bool,
    view: str | None = None,
    choice: KernelOptions = KernelOptions(),  # noqa: B008  it is frozen
) -> dict[str, Any]:
    """The documented keys of one program (`docs/json.md`), or those of one view of it. What may be long is an iterator:
    it is worked out while it is printed."""
    rows = (row_json(row, has_ceilings=machine is not None) for row in rows_of(module, machine, choice))
    data = module_json(module, rows, view)
    if machine is not None and view in (None, "kernels"):
        from jaxprof.devices.targets import step_time

        device, step = machine.device, step_time(module, machine)
        data["device"] = {
            "name": device.name,
            "estimate": elsewhere,
            "memory_bytes": device.memory_bytes,
            "memory_needed_bytes": _needed_bytes(run),
            "least_seconds": step.bound_seconds,
            "bound": step.limit or None,
            "estimate_seconds": step.estimate_seconds,
            "source": device.source,
            "links": [
                {
                    "name": level.name,
                    "devices": level.devices,
                    "bytes_per_second": level.bandwidth,
                    "source": level.document,
                }
                for level in machine.levels
            ],
        }
        data["collectives"] = list(records(_collectives(module, machine)))
    return data
