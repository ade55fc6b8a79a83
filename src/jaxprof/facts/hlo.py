"""Facts of the programs of an HLO target: kernels, barriers, findings, collectives, memory, and their device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.kernels.ranking import KernelOptions, release_each, rows_of
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.facts import SENTENCE, Fact, Facts, optional, within
from jaxprof.facts.kernels import KERNELS, KernelRow
from jaxprof.facts.memory import MEMORY
from jaxprof.facts.units import BYTE_RATE, BYTES, COUNT, INDEX, LIST, OBJECT, ROWS, SECONDS, TEXT, TRUTH
from jaxprof.findings.hlo import findings
from jaxprof.hlo.kernels.collectives import Collective, collectives
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.kernels.notices import Notice, notices, problems

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.hlo_program import HloProgram
    from jaxprof.devices.absent.least_time import Exchange
    from jaxprof.hlo.kernels.barriers import Barrier

BARRIERS: Facts[Barrier] = (
    Fact("producer", TEXT, "The kernel that writes the data", title="producer", widest=40),
    Fact("consumer", TEXT, "The kernel that reads the data", title="consumer", widest=40),
    Fact("reason", TEXT, "Why the two are not one kernel, as the documents list it"),
    Fact("words", TEXT, "Why the two are not one kernel, in words", title="why not fused"),
    Fact("bytes", BYTES, "What fusing would save", title="bytes"),
)
FINDINGS: Facts[Finding] = (
    *SENTENCE,
    Fact("place", TEXT, "file:line to change", "where.text"),
    Fact("kernels", LIST, "Kernels that it is about"),
    Fact("seconds", SECONDS, "Time of these kernels in a call, or in the recorded program; null if unknown"),
    Fact("bytes", BYTES, "Traffic of one call that it accounts for"),
)
_NOTICES: Facts[Notice] = (
    Fact("code", TEXT, "What kind it is"),
    Fact("message", TEXT, "What of the module was not seen"),
    Fact("hint", TEXT, "What would show it"),
    Fact("serious", TRUTH, "Whether it makes conclusions doubtful"),
)
_PROBLEMS: Facts[Any] = (Fact("line", INDEX, "Line of the text"), Fact("message", TEXT, "What could not be read"))
_DEVICE: Facts[HloProgram] = (
    Fact("name", TEXT, "Name of the device", "machine.device.name"),
    Fact("estimate", TRUTH, "Whether this machine lacks the device, so that nothing was measured on it",
         "elsewhere"),
    Fact("memory_bytes", BYTES, "Its memory", "machine.device.memory_bytes"),
    Fact("memory_needed_bytes", BYTES, "What the program needs of it"),
    *within("step", (
        Fact("least_seconds", SECONDS, "Lower bound of one call", "bound_seconds"),
        Fact("bound", TEXT, "What sets the lower bound", "limit"),
    )),
    Fact("source", TEXT, "Where its ceilings come from", "machine.device.source"),
    Fact("links", ROWS, "Its links to other devices", "machine.levels", inside=(
        Fact("name", TEXT, "Name of the link"),
        Fact("devices", COUNT, "Devices of a unit"),
        Fact("bytes_per_second", BYTE_RATE, "Bandwidth of the link", "bandwidth"),
        Fact("source", TEXT, "The document that says so", "document"),
    )),
)  # fmt: skip


@frozen
class CollectiveRow:
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


def collective_rows(program: HloProgram) -> list[CollectiveRow]:
    """Return the collectives of a program over the links of its device, which is known."""
    from jaxprof.devices.absent.least_time import exchanges

    machine = program.machine
    assert machine is not None
    over = exchanges(program.hlo, machine)
    return [
        CollectiveRow(collective, over[collective.kernel.computation, collective.kernel.name])
        for collective in collectives(program.hlo)
    ]


def _lazy_rows(make: Callable[[HloProgram], Iterable[Any]]) -> Callable[[HloProgram], Iterator[Any]]:
    """Return a version of `make` that derives the rows only when the first one is printed."""

    def rows(program: HloProgram) -> Iterator[Any]:
        yield from make(program)

    return rows


def _barriers(program: HloProgram) -> Iterator[Barrier]:
    from jaxprof.hlo.kernels.barriers import barriers  # reads the rules of fusion, which a list of kernels needs not

    yield from barriers(program.hlo)


def _findings(program: HloProgram) -> Iterator[Finding]:
    # reads all checks of HLO

    yield from findings_of(program)


def kernels_of_program(program: HloProgram, choice: KernelOptions, *, keep: bool = False) -> Iterator[KernelRow]:
    """Yield the kernels that `choice` selects, each with what a capture measured of it."""
    rows = release_each(rows_of(program.hlo, program.machine, choice, measured=program.measured, keep=keep))
    yield from (KernelRow(row.kernel.name, row, row.measured) for row in rows)


_VIEWS_WITH: Mapping[str, tuple[str | None, ...]] = {
    "kernels": (None, "kernels"),
    "barriers": (None, "barriers"),
    "findings": (None, "findings"),
    "device": (None, "kernels"),
    "collectives": (None, "kernels"),
    "memory": ("memory",),
}
"""Views that have a fact, None for the whole program. Every view has a fact that is not here."""


def facts_of_program(view: str | None = None, choice: KernelOptions = KernelOptions()) -> Facts[HloProgram]:
    """Return the facts of a program in JSON, or of one view of it. Long lists are derived while printed."""
    facts: Facts[HloProgram] = (
        optional("run", TEXT, "Id of its run", "run.id"),
        Fact("label", TEXT, "Name of its run for people, or of the module"),
        Fact("module", TEXT, "Name of the HLO module", "hlo.name"),
        Fact("platform", TEXT, "cpu, gpu, tpu", lambda program: platform_of(program.hlo)),
        Fact("kernels", ROWS, "Its kernels", partial(kernels_of_program, choice=choice, keep=view is None),
             inside=KERNELS),
        Fact("barriers", ROWS, "Kernels that share an array and are not one, the most bytes first",
             _barriers, inside=BARRIERS),
        Fact("findings", ROWS, "What is worth changing", _findings, inside=FINDINGS),
        Fact("notices", ROWS, "What of the module was not seen", _lazy_rows(lambda program: notices(program.hlo)),
             inside=_NOTICES),
        Fact("problems", ROWS, "Lines that could not be read", _lazy_rows(lambda program: problems(program.hlo)),
             inside=_PROBLEMS),
        Fact("device", OBJECT, "The device that it is compared with", lambda program: program, inside=_DEVICE,
             when="machine"),
        Fact("collectives", ROWS, "Its collectives over the links", collective_rows, inside=COLLECTIVES,
             when="machine"),
        Fact("memory", OBJECT, "Its memory; null for a module that is not scheduled", inside=MEMORY),
    )  # fmt: skip
    return tuple(fact for fact in facts if view in _VIEWS_WITH.get(fact.key, (view,)))


STAGE: Facts[Any] = (
    Fact("label", TEXT, "Name of the program"),
    Fact("stage", TEXT, "Which of its texts"),
    Fact("lines", LIST, "Lines of the text"),
)


def findings_of(program: HloProgram) -> Sequence[Finding]:
    """Return the findings of a compiled program; for a run of a session, those of its explanation."""
    if program.session is None or program.run is None:
        return findings(program.hlo)
    from jaxprof.findings.modules import findings_of_run  # loads what is measured, which a module of a file has not

    return findings_of_run(program.session, program.run, program.hlo)
