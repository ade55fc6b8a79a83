"""HLO programs as text and as data: kernels with their roofline, findings, barriers, memory, a device table.

Least times come from the ceilings and links of a device and are called lower bounds. Nothing here is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxprof.base.text import safe
from jaxprof.base.units import and_more, bytes_, scaled, seconds
from jaxprof.base.values import frozen
from jaxprof.facts import SENTENCE, Fact, Facts, column, optional, pick, within
from jaxprof.facts.memory import MEMORY
from jaxprof.facts.units import BYTE_RATE, BYTES, COUNT, INDEX, LIST, OBJECT, ROWS, SECONDS, TEXT, TRUTH
from jaxprof.hlo.findings import findings
from jaxprof.hlo.kernels.barriers import Barrier, barriers
from jaxprof.hlo.kernels.collectives import Collective, collectives
from jaxprof.hlo.kernels.kernels import kernels, totals
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.kernels.notices import NOT_OPTIMISED, Notice, notices, problems
from jaxprof.report.kernels import KERNEL, KernelOptions, released, rows_of
from jaxprof.report.renderers import WIDE, Table, report_lines, text_lines

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.hlo_program import HloProgram
    from jaxprof.analysis.kernels.ranking import Ranked
    from jaxprof.devices.absent.least_time import Exchange
    from jaxprof.finding import Finding


_EXECUTION_ORDER = KernelOptions()


def _lazy_rows(make: Callable[[HloProgram], Iterable[Any]]) -> Callable[[HloProgram], Iterator[Any]]:
    """Return a version of `make` that derives the rows only when the first one is printed."""

    def rows(program: HloProgram) -> Iterator[Any]:
        yield from make(program)

    return rows


BARRIERS: Facts[Barrier] = (
    Fact("producer", TEXT, "The kernel that writes the data", title="producer", widest=40),
    Fact("consumer", TEXT, "The kernel that reads the data", title="consumer", widest=40),
    Fact("reason", TEXT, "Why the two are not one kernel, as the documents list it"),
    Fact("words", TEXT, "Why the two are not one kernel, in words", title="why not fused"),
    Fact("bytes", BYTES, "What fusing would save", title="bytes"),
)
FINDINGS: Facts[Finding] = (
    *SENTENCE,
    Fact("kernels", LIST, "Kernels that it is about"),
    Fact("bytes", BYTES, "Traffic of one call that it accounts for"),
)
_NOTICES: Facts[Notice] = (
    Fact("code", TEXT, "What kind it is"),
    Fact("message", TEXT, "What of the module was not seen"),
    Fact("hint", TEXT, "What would show it"),
    Fact("serious", TRUTH, "Whether it makes conclusions doubtful"),
)
_PROBLEMS: Facts[Any] = (
    Fact("line", INDEX, "Line of the text"),
    Fact("message", TEXT, "What could not be read"),
)
_DEVICE: Facts[HloProgram] = (
    Fact("name", TEXT, "Name of the device", "machine.device.name"),
    Fact("estimate", TRUTH, "Whether this machine lacks the device, so that nothing was measured on it",
         "elsewhere"),
    Fact("memory_bytes", BYTES, "Its memory", "machine.device.memory_bytes"),
    Fact("memory_needed_bytes", BYTES, "What the program needs of it"),
    *within(
        "step",
        (
            Fact("least_seconds", SECONDS, "Lower bound of one run", "bound_seconds"),
            Fact("bound", TEXT, "What sets the lower bound", "limit"),
        ),
    ),
    Fact("source", TEXT, "Where its ceilings come from", "machine.device.source"),
    Fact("links", ROWS, "Its links to other devices", "machine.levels", inside=(
        Fact("name", TEXT, "Name of the link"),
        Fact("devices", COUNT, "Devices of a unit"),
        Fact("bytes_per_second", BYTE_RATE, "Bandwidth of the link", "bandwidth"),
        Fact("source", TEXT, "The document that says so", "document"),
    )),
)  # fmt: skip


_VIEWS_WITH: Mapping[str, tuple[str | None, ...]] = {
    "kernels": (None, "kernels"),
    "barriers": (None, "barriers"),
    "findings": (None, "findings"),
    "device": (None, "kernels"),
    "collectives": (None, "kernels"),
    "memory": ("memory",),
}
"""Views that have a fact, None for the whole program. Every view has a fact that is not here."""


def facts_of_program(view: str | None = None, choice: KernelOptions = _EXECUTION_ORDER) -> Facts[HloProgram]:
    """Return the facts of a program in JSON, or those of one view of it. Long lists are derived while they are
    printed."""
    facts: Facts[HloProgram] = (
        optional("run", TEXT, "Id of its run", "run.id"),
        Fact("label", TEXT, "Name of its run for people, or of the module"),
        Fact("module", TEXT, "Name of the HLO module", "hlo.name"),
        Fact("platform", TEXT, "cpu, gpu, tpu", lambda program: platform_of(program.hlo)),
        Fact("kernels", ROWS, "Its kernels", partial(_kernels, choice=choice, keep=view is None), inside=KERNEL),
        Fact("barriers", ROWS, "Kernels that share an array and are not one, the most bytes first",
             _lazy_rows(lambda program: barriers(program.hlo)), inside=BARRIERS),
        Fact("findings", ROWS, "What is worth changing", _lazy_rows(lambda program: findings(program.hlo)),
             inside=FINDINGS),
        Fact("notices", ROWS, "What of the module was not seen", _lazy_rows(lambda program: notices(program.hlo)),
             inside=_NOTICES),
        Fact("problems", ROWS, "Lines that could not be read", _lazy_rows(lambda program: problems(program.hlo)),
             inside=_PROBLEMS),
        Fact("device", OBJECT, "The device that it is compared with", lambda program: program, inside=_DEVICE,
             when="machine"),
        Fact("collectives", ROWS, "Its collectives over the links", _collective_rows, inside=COLLECTIVES,
             when="machine"),
        Fact("memory", OBJECT, "Its memory; null for a module that is not scheduled", inside=MEMORY),
    )  # fmt: skip
    return tuple(fact for fact in facts if view in _VIEWS_WITH.get(fact.key, (view,)))


def _kernels(program: HloProgram, *, choice: KernelOptions, keep: bool) -> Iterator[Ranked]:
    yield from released(rows_of(program.hlo, program.machine, choice, keep=keep))


def view_lines(program: HloProgram, view: str) -> Iterator[str]:
    """Yield the gaps of a program, which come before what is derived from the rest, and one of its views as text:
    findings, barriers or memory."""
    listed = notices(program.hlo)
    if listed:
        yield from (*(safe(str(notice)) for notice in listed), "")
    yield from _VIEWS[view](program)


def _findings_lines(program: HloProgram) -> Iterator[str]:
    """Yield each finding with its fix and its kernels."""
    for finding in findings(program.hlo):
        size = f"  ({bytes_(finding.bytes)})" if finding.bytes else ""
        yield safe(f"{finding.code}: {finding.message}{size}")
        yield safe(f"    {finding.fix}")
        yield safe(f"    at {and_more(finding.kernels, 5)}")
        yield ""
    if not findings(program.hlo):
        yield _nothing(program, "findings", "no findings among the few that a module before XLA's passes can show")


def _nothing(program: HloProgram, what: str, before_passes: str) -> str:
    """Return that a program has none of `what`, as far as it was read; `before_passes` of one that is not optimised."""
    codes = {notice.code for notice in notices(program.hlo) if notice.serious}
    if NOT_OPTIMISED in codes:
        return before_passes
    return f"no {what}" + (" in what was read" if codes else "")


def _barriers_lines(program: HloProgram) -> Iterator[str]:
    """Yield a line for each pair of kernels that share an array but are not fused, the most bytes first."""
    rows = barriers(program.hlo)
    columns = (*pick(BARRIERS, "bytes", "producer", "consumer"), column("why not fused", "why"))
    yield from text_lines(Table(columns, rows), indent="")
    if not rows:
        why = "unknown: before XLA's passes nothing is fused, and nothing is kept apart"
        yield _nothing(program, "barriers", why)


def _memory_lines(program: HloProgram) -> Iterator[str]:
    """Yield the peak of memory, and what is alive there."""
    from jaxprof.report.memory import memory_report  # imports the session modules, which only this view needs

    lines = [line.removeprefix("  ") for line in report_lines(memory_report(program.memory), WIDE)]
    yield from lines or ["unknown: the module is not scheduled, or has no instructions"]


_VIEWS = {
    "findings": _findings_lines,
    "barriers": _barriers_lines,
    "memory": _memory_lines,
}


def devices_table(programs: Sequence[HloProgram]) -> list[str]:
    """Return one line for each program, all with a known device: kernels, FLOPs, bytes, lower bound of a run,
    memory."""
    vendors = {program.device.vendor for program in programs if program.device is not None}
    on_gpu = [_ON_A_GPU] if vendors - {"Google"} else []
    return [*text_lines(Table(_DEVICES, programs), indent=""), "", *_WHAT_STEPS_ARE, *on_gpu]


def _flops(program: HloProgram) -> float | None:
    whole = totals(program.hlo)
    return None if whole.opaque else whole.flops


def _moved_bytes(program: HloProgram) -> float | None:
    whole = totals(program.hlo)
    return None if whole.unsized else whole.bytes


def _memory_text(program: HloProgram) -> str:
    needed, available = program.memory_needed_bytes, program.device.memory_bytes if program.device is not None else 0
    too_large = needed is not None and needed > available
    return f"{bytes_(needed)} of {bytes_(available)}{'  does not fit' if too_large else ''}"


_DEVICES: Facts[HloProgram] = (
    column("device", "device_label"),
    column("kernels", lambda program: len(kernels(program.hlo)), right=True),
    column("FLOPs", _flops, scaled),
    column("bytes", _moved_bytes, bytes_),
    column("at least", "step.bound_seconds", seconds),
    column("bound by", "step.limit"),
    column("memory", _memory_text),
)
_WHAT_STEPS_ARE = (
    "at least: lower bound, kernels in this order at the device's ceilings, and links; asynchronous work overlaps.",
)
_ON_A_GPU = (
    "GPUs: no lower bound where arrays stay in a cache. XLA tries kernels out on the device, which is not here: "
    "--autotune-results FILE takes what it chose on one (tiles, Triton or cuBLAS with its workspace)."
)


@frozen
class CollectiveRow:
    """A collective with its exchange over the links."""

    collective: Collective
    exchange: Exchange


COLLECTIVES: Facts[CollectiveRow] = (
    Fact("name", TEXT, "Name of the HLO instruction", "collective.kernel.name", "collective"),
    Fact("opcode", TEXT, "The HLO operation", "collective.opcode", "opcode"),
    Fact("group_size", COUNT, "Devices that take part", "collective.group_size", "devices"),
    Fact("bytes", BYTES, "Size of what is exchanged", "collective.bytes", "bytes"),
    Fact("least_seconds", SECONDS, "Lower bound of one execution", "exchange.bound_seconds", "at least"),
    Fact("link", TEXT, "The link that sets it", "exchange.link", "over"),
)


def _collective_rows(program: HloProgram) -> list[CollectiveRow]:
    from jaxprof.devices.absent.least_time import exchanges

    machine = program.machine
    assert machine is not None
    over = exchanges(program.hlo, machine)
    return [
        CollectiveRow(collective, over[collective.kernel.computation, collective.kernel.name])
        for collective in collectives(program.hlo)
    ]


def collectives_text(program: HloProgram) -> list[str]:
    """Return each collective with its bytes, the devices that take part, and its lower bound over the links."""
    lines = list(text_lines(Table(COLLECTIVES, _collective_rows(program)), indent=""))
    levels = program.machine.levels if program.machine is not None else ()
    return [*lines, "", *(safe(f"{level.name}: {level.document}") for level in levels)] if lines else []


STAGE: Facts[Any] = (
    Fact("label", TEXT, "Name of the program"),
    Fact("stage", TEXT, "Which of its texts"),
    Fact("lines", LIST, "Lines of the text"),
)
"""The facts of one of the texts of a program."""
