"""Comparison of two runs by their exact facts: what the two programs are, not how long they took.

Exact facts have no noise: two runs of the same program have the same kernels, FLOPs, bytes and peak, whenever and next
to whatever they ran. A fact that one run does not know is None, and differs from nothing. Times of stages and kernels
are given as recorded; `stats.compare` and `compare_apart` say what they prove.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from jaxprof.analysis.difference import FACTS, FigureDifference, exact_facts, figures
from jaxprof.analysis.measured import MeasuredKernel, measured, stage_times
from jaxprof.analysis.memory import ASSIGNMENT, KINDS, SCHEDULE, MemoryPicture, buffers_of
from jaxprof.analysis.opener import read_module
from jaxprof.analysis.run_result import RunCost, module_cost, run_cost
from jaxprof.grouping import Pair, pairs
from jaxprof.session import Run, Session

if TYPE_CHECKING:
    from jaxprof.analysis.kernel_difference import KernelDifferences
    from jaxprof.finding import Finding
    from jaxprof.hlo.analysis.collectives import Collective
    from jaxprof.hlo.analysis.liveness import LiveValue
    from jaxprof.hlo.model import Module


@dataclass(frozen=True, slots=True)
class CollectiveDifference:
    """Collectives of one kind, over groups of one size, in one call."""

    opcode: str
    group_size: int | None
    """Number of devices that exchange with each other; None if the HLO does not say, and for a permute."""
    before_count: int | None
    """Number of executions; None if a loop's trip count is unknown."""
    after_count: int | None
    before_bytes: int | None
    """Bytes of the whole arrays that are exchanged."""
    after_bytes: int | None

    @property
    def differs(self) -> bool | None:
        """Whether the number or bytes differ; None if a number of executions is unknown."""
        if None in (self.before_count, self.after_count):
            return None
        return (self.before_count, self.before_bytes) != (self.after_count, self.after_bytes)


@dataclass(frozen=True, slots=True)
class ModuleDifference:
    """Comparison of two HLO modules. If a side has no readable HLO, everything is None or empty."""

    kernels: KernelDifferences | None
    facts: tuple[FigureDifference, ...]
    collectives: tuple[CollectiveDifference, ...] | None
    findings: tuple[Pair[Finding], ...] | None


@dataclass(frozen=True, slots=True)
class RunDifference(ModuleDifference):
    """Comparison of two runs; None means unknown on a side. The kernels are those of the modules, or of two captures;
    the facts are all of `FACTS` that at least one side knows."""

    before: Run
    after: Run
    unlike: tuple[str, ...]
    """Reasons why the runs do not measure the same thing: another size, device kind, dtype or precision."""
    passes: tuple[FigureDifference, ...] | None
    """Seconds of XLA's stages over all threads; None if the compilation of a side was not captured."""
    buffers: tuple[Pair[LiveValue], ...] | None
    """Buffers, largest difference first; None unless both sides know their buffers from the same source."""

    def fact(self, code: str) -> FigureDifference | None:
        """Return the figure of a code; None if neither side knows it."""
        return next((fact for fact in self.facts if fact.code == code), None)

    @property
    def differs(self) -> bool | None:
        """Whether any exact fact differs; None if no difference is known and something is unknown."""
        answers = [
            self.kernels.differ if self.kernels is not None else None,
            *(difference.differs for difference in self.facts),
        ]
        answers += [difference.differs for difference in self.collectives or ()]
        return True if True in answers else None if None in answers else False


def run_difference(session_a: Session, run_a: Run, session_b: Session, run_b: Run) -> RunDifference:
    """Return the exact facts of two runs, the first being the baseline. Reads the HLO of both, so call it in a thread.
    Raises FileRefusedError if a text of a session is damaged."""
    before, after = read_module(session_a, run_a), read_module(session_b, run_b)
    modules = module_difference(before, after, _measured(session_a, run_a), _measured(session_b, run_b))
    asked = _product_facts(session_a, run_a), _product_facts(session_b, run_b)
    memory = buffers_of(session_a, run_a.id), buffers_of(session_b, run_b.id)
    return RunDifference(
        before=run_a,
        after=run_b,
        unlike=unlike(run_a, run_b),
        kernels=modules.kernels,
        facts=_facts((session_a, run_a), (session_b, run_b), memory, (*modules.facts, *exact_facts(*asked))),
        collectives=modules.collectives,
        findings=modules.findings,
        passes=_passes(run_a, run_b),
        buffers=_buffers(*memory),
    )


def facts_of(session: Session, run: Run) -> dict[str, float | None]:
    """Return the exact facts of one run in one call, by code: all of `FACTS`, with None for unknown. Raises
    FileRefusedError if a text of the session is damaged."""
    sources = [_module_facts(read_module(session, run)), _run_facts(run), _cost_facts(run_cost(session, run))]
    sources += [_product_facts(session, run), _memory_facts(buffers_of(session, run.id))]
    known = {code: value for source in sources for code, value in source.items() if value is not None}
    return {code: known.get(code) for code in FACTS}


def arguments_of(session: Session, run: Run) -> tuple[str, ...]:
    """Return dtype and shape of the arguments of a run's compiled program, such as `f32[64,256]`; empty without
    readable HLO. Unused arguments are no parameters of the program, and are missing here."""
    module = read_module(session, run)
    entry = module.entry if module is not None else None
    return tuple(str(parameter.shape.without_layout()) for parameter in entry.parameters) if entry is not None else ()


def module_difference(
    before: Module | None,
    after: Module | None,
    before_measured: Sequence[MeasuredKernel] | None = None,
    after_measured: Sequence[MeasuredKernel] | None = None,
) -> ModuleDifference:
    """Compare two HLO modules, with the times of their kernels if both were captured."""
    from jaxprof.analysis.kernel_difference import kernel_differences
    from jaxprof.hlo.analysis.findings import findings

    kernels = kernel_differences(before, after, before_measured, after_measured)
    facts = exact_facts(_module_facts(before), _module_facts(after))
    if before is None or after is None:
        return ModuleDifference(kernels, facts, None, None)
    return ModuleDifference(kernels, facts, _collectives(before, after), _findings(findings(before), findings(after)))


def unlike(run_a: Run, run_b: Run) -> tuple[str, ...]:
    """Return why the times of two runs must not be compared, a few words each; empty if they may be."""
    built_in = not (run_a.plan.target or run_b.plan.target) and run_a.plan.how not in ("imported", "program")
    if built_in and run_a.plan.workload != run_b.plan.workload:
        return (f"another workload ({run_a.plan.workload}, {run_b.plan.workload})",)
    reasons: list[str] = []
    if (kinds := (run_a.device_kind, run_b.device_kind))[0] != kinds[1]:
        reasons.append(f"another kind of device ({kinds[0]}, {kinds[1]})")
    ours, theirs = run_a.plan.parameters, run_b.plan.parameters
    if run_a.plan.how != "imported":  # the parameters of a profile's program are its ids
        reasons += [
            f"another {name} ({ours.get(name, '-')}, {theirs.get(name, '-')})"
            for name in dict.fromkeys((*ours, *theirs))
            if ours.get(name) != theirs.get(name)
        ]
    if run_a.plan.arguments != run_b.plan.arguments:
        reasons.append(f"other arguments ({', '.join(run_a.plan.arguments)}; {', '.join(run_b.plan.arguments)})")
    if run_a.plan.precision != run_b.plan.precision:
        reasons.append(f"another precision ({run_a.plan.precision or 'default'}, {run_b.plan.precision or 'default'})")
    return tuple(reasons)


def measurement(run: Run) -> Hashable:
    """Return a key that runs share if they measure the same thing; `unlike` describes differences."""
    plan = run.plan
    parameters = () if plan.how == "imported" else tuple(sorted(plan.parameters.items()))
    return plan.variant, plan.how, run.device_kind, parameters, plan.arguments, plan.precision


def _measured(session: Session, run: Run) -> Sequence[MeasuredKernel] | None:
    capture = measured(session, run.id)
    return capture.kernels if capture is not None else None


_Facts: TypeAlias = dict[str, float | None]


def _module_facts(module: Module | None) -> _Facts:
    """Return the facts of one run of a module. FLOPs and counts are None if a loop's trip count is unknown."""
    if module is None:
        return {}
    from jaxprof.hlo.analysis.collectives import collectives
    from jaxprof.hlo.analysis.kernels import kernels

    listed = kernels(module)
    counts = [kernel.count for kernel in listed if kernel.count is not None]
    executions, moved = _exchanged(collectives(module))
    return {
        "kernels": len(listed),
        "launches": sum(counts) if len(counts) == len(listed) else None,
        **_cost_facts(module_cost(module)),
        "constant": _constant_bytes(module),
        "collectives": executions,
        "collective_bytes": moved,
    }


def _product_facts(session: Session, run: Run) -> _Facts:
    """Return the bytes of all operands of the products in the module before optimisation; empty without it, or if the
    number of executions is unknown."""
    module = read_module(session, run, "hlo_before")
    if module is None or module.entry is None:
        return {}
    from jaxprof.hlo.analysis.kernels import kernels
    from jaxprof.hlo.analysis.opcodes import PRODUCTS

    operand_bytes = 0
    for kernel in kernels(module):
        if kernel.instruction.opcode not in PRODUCTS:
            continue
        shapes = [operand.shape for operand in kernel.instruction.operand_instructions()[:2]]
        if kernel.total_flops is None or kernel.count is None or not all(shape.known for shape in shapes):
            return {}
        operand_bytes += kernel.count * sum(shape.bytes for shape in shapes)
    return {"product_bytes": operand_bytes}


def _constant_bytes(module: Module) -> int:
    """Return the bytes of constants that have a place in memory; constants in fusions are part of the code. Memory
    analyses of absent devices do not include this figure."""
    from jaxprof.hlo.analysis.kernels import analysis_of

    running = (module.get(name) for name in analysis_of(module).execution.post_order)
    instructions = (instruction for each in running if each is not None for instruction in each.instructions)
    return sum(instruction.shape.bytes for instruction in instructions if instruction.opcode == "constant")


def _facts(
    before: tuple[Session, Run],
    after: tuple[Session, Run],
    memory: tuple[MemoryPicture | None, MemoryPicture | None],
    of_modules: Sequence[FigureDifference],
) -> tuple[FigureDifference, ...]:
    """Return the facts of both runs. Cost and memory are compared only if both sides have them from the same source."""
    facts = {fact.code: fact for fact in of_modules}
    facts |= {fact.code: fact for fact in exact_facts(_run_facts(before[1]), _run_facts(after[1]))}
    costs = run_cost(*before), run_cost(*after)
    if costs[0].source == costs[1].source or not (costs[0].source and costs[1].source):
        facts |= {fact.code: fact for fact in exact_facts(*map(_cost_facts, costs))}
    if len({picture.source for picture in memory if picture is not None}) == 1:
        estimate = any(picture is not None and picture.is_estimate for picture in memory)
        known = exact_facts(_memory_facts(memory[0]), _memory_facts(memory[1]), estimate=estimate)
        facts |= {fact.code: fact for fact in known}
    return tuple(facts[code] for code in FACTS if code in facts)


def _run_facts(run: Run) -> _Facts:
    memory = run.memory
    return {
        "donated": memory.alias_bytes if memory is not None else None,
        "code": memory.generated_code_bytes if memory is not None else None,
        "compiles": _compiles(run),
    }


def _compiles(run: Run) -> int | None:
    """Return how many programs one launch, or a finished recorded program, compiled; None if unknown."""
    if run.program is not None:
        made = [row.count for row in run.program.compiled if row.compile_seconds is not None or row.cache is not None]
        return sum(made) if run.program.ended is not None else None
    announced = sum(compiled.stage == "compile" for compiled in run.compiles)
    if announced:
        launches = sum("compile" in launch.phases or "run" in launch.phases for launch in run.launches)
        return announced if launches < 2 else None
    return 1 if "compile" in run.phases and run.phases["compile"].seconds is not None else None


def _cost_facts(cost: RunCost) -> _Facts:
    return {"flops": cost.flops, "bytes": cost.bytes_accessed, "transcendentals": cost.transcendentals}


def _memory_facts(picture: MemoryPicture | None) -> _Facts:
    """Return the memory facts. An assignment and a schedule list all parts, so a missing part is empty; sums may lack
    one."""
    if picture is None or picture.peak_bytes is None:
        return {}
    missing = 0 if picture.source in (ASSIGNMENT, SCHEDULE) else None
    return {"peak": picture.peak_bytes, **{kind: picture.parts.get(kind, missing) for kind in KINDS}}


def _collectives(before: Module, after: Module) -> tuple[CollectiveDifference, ...]:
    from jaxprof.hlo.analysis.collectives import collectives

    groups: dict[tuple[str, int | None], tuple[list[Collective], list[Collective]]] = {}
    for side, module in enumerate((before, after)):
        for collective in collectives(module):
            groups.setdefault((collective.opcode, collective.group_size), ([], []))[side].append(collective)
    differences: list[CollectiveDifference] = []
    for kind, sides in groups.items():
        (before_count, before_bytes), (after_count, after_bytes) = map(_exchanged, sides)
        differences.append(CollectiveDifference(*kind, before_count, after_count, before_bytes, after_bytes))
    return tuple(differences)


def _exchanged(found: Sequence[Collective]) -> tuple[int | None, int | None]:
    """Return the executions of collectives and the bytes that they exchange; None if a trip count is unknown."""
    counts = [each.kernel.count for each in found if each.kernel.count is not None]
    if len(counts) < len(found):
        return None, None
    return sum(counts), sum(count * each.bytes for count, each in zip(counts, found, strict=True))


def _findings(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[Pair[Finding], ...]:
    """Pair the findings by code, of which a module has one each; the order is that of the first module."""
    ours = {finding.code: place for place, finding in enumerate(before)}
    found = pairs(before, after, [lambda each: each.code], lambda each: (each.message, len(each.kernels)))
    return tuple(sorted(found, key=lambda pair: ours.get(pair.either.code, len(ours))))


def _passes(run_a: Run, run_b: Run) -> tuple[FigureDifference, ...] | None:
    if run_a.compile_passes is None or run_b.compile_passes is None:
        return None
    before, after = (
        {stage.stage: stage.seconds for stage in stage_times(passes.tree)}
        for passes in (run_a.compile_passes, run_b.compile_passes)
    )
    return figures(before, after, "second")


def _buffers(before: MemoryPicture | None, after: MemoryPicture | None) -> tuple[Pair[LiveValue], ...] | None:
    if before is None or after is None or before.source != after.source or not (before.buffers and after.buffers):
        return None
    found = pairs(
        list(before.buffers),
        list(after.buffers),
        [
            lambda buffer: (buffer.kind, buffer.instruction, buffer.shape, buffer.bytes),
            lambda buffer: (buffer.kind, buffer.op_name, buffer.shape, buffer.bytes),
            lambda buffer: (buffer.kind, buffer.shape, buffer.bytes),
            lambda buffer: (buffer.kind, buffer.op_name) if buffer.op_name else None,
            lambda buffer: (buffer.kind, buffer.instruction) if buffer.instruction else None,
        ],
        lambda buffer: (buffer.bytes, buffer.shape),
    )
    return tuple(sorted(found, key=lambda pair: (-abs(pair.part("bytes")), pair.status == "same")))
