"""Comparison of two sessions: which runs belong together, what differs between their environments and their programs,
and what their times prove.

Exact facts have no noise: two runs of the same program have the same kernels, FLOPs, bytes and peak, whenever and next
to whatever they ran. A fact that one run does not know is None, and differs from nothing. Sessions were measured at
different times. Whatever differed between these times is in every ratio of theirs, so the verdict is `inconclusive`;
only runs of one session, which took turns, can have another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from jaxprof.analysis.kernels import MeasuredKernel, read_module
from jaxprof.analysis.kernels.measured import measure_kernels, stage_times
from jaxprof.analysis.kernels.memory import KINDS, SCHEDULE, MemoryPicture, memory_of_run
from jaxprof.analysis.runs.run_result import RunCost, cost_of_call, module_cost, result
from jaxprof.analysis.runs.speedup import AbVersus, compare_once, compare_times, side_versus
from jaxprof.base.grouping import Pair, pair_up, pairs
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.findings.compare import Difference, FigureDifference, environments, exact_facts, figures
from jaxprof.hlo.kernels import PRODUCTS
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.session import Run, Session
from jaxprof.stats.comparison import TimeComparison, compare_apart, refuse
from jaxprof.workloads import names

if TYPE_CHECKING:
    from jaxprof.analysis.runs.ab import AbResult
    from jaxprof.findings.compare.kernel_difference import KernelDifferences
    from jaxprof.findings.compare.program_difference import ProgramDifference
    from jaxprof.hlo.kernels.collectives import Collective
    from jaxprof.hlo.kernels.liveness import LiveValue
    from jaxprof.hlo.text.model import Module

_VERSIONS = frozenset({"python", "jax", "jaxlib", "numpy", "blas"})
"""Entries of the environment that come with an interpreter."""
_MOMENTARY = ("load_average_before", "load_average_after", "other_busy_cores")
"""Settings that describe the moment, not the environment: they always differ."""


@frozen(kw_only=True)
class PhaseDifference(FigureDifference):
    """A phase of both runs: seconds per call, or per launch for a phase that happens once."""

    times: TimeComparison
    """What the samples of both prove, the first being the baseline."""


@frozen
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


@frozen
class ModuleDifference:
    """Comparison of two HLO modules. If a side has no readable HLO, all but the facts is None."""

    kernels: KernelDifferences | None
    collectives: tuple[CollectiveDifference, ...] | None
    findings: tuple[Pair[Finding], ...] | None
    facts: Mapping[str, FigureDifference]
    """Exact facts that at least one side knows, by code."""


@frozen(kw_only=True)
class RunDifference(ModuleDifference):
    """Comparison of two runs; None means unknown on a side. The kernels are of the modules, or of two captures."""

    before: Run
    after: Run
    unlike: tuple[str, ...]
    """Reasons why the runs do not measure the same thing: another size, device kind, dtype or precision."""
    passes: tuple[FigureDifference, ...] | None
    """Seconds of XLA's stages over all threads; None if the compilation of a side was not captured."""
    buffers: tuple[Pair[LiveValue], ...] | None
    """Buffers, largest difference first; None unless both sides know their buffers from the same source."""
    phases: tuple[PhaseDifference, ...] = ()
    """Times of the phases; empty where only exact facts were compared."""
    program: ProgramDifference | None = None
    """Comparison of the programs, if both runs are recorded programs."""
    side: AbVersus | None = None
    """How the two compare, if they were measured in turns as sides of a comparison."""

    @property
    def differs(self) -> bool | None:
        """Whether any exact fact differs; None if no difference is known and something is unknown."""
        answers = [
            self.kernels.differ if self.kernels is not None else None,
            *(difference.differs for difference in self.facts.values()),
        ]
        answers += [difference.differs for difference in self.collectives or ()]
        if True in answers:
            return True
        return None if None in answers else False


@frozen
class SessionDifference:
    """Comparison of two sessions."""

    before: Session
    after: Session
    environment: tuple[Difference[str], ...]
    """Differences of the environment first, then equal entries."""
    runs: tuple[RunDifference, ...]
    only_before: tuple[Run, ...]
    """Runs without a counterpart in the other session."""
    only_after: tuple[Run, ...]


def session_difference(
    before: Session, after: Session, *, run_before: str | None = None, run_after: str | None = None
) -> SessionDifference:
    """Compare two sessions run by run, the first being the baseline; with run ids, only these runs, whatever they
    measure. Reads the HLO of all runs, so call it in a thread. Raises KeyError for an unknown run id."""
    ours = [before.runs[run_before]] if run_before is not None else list(before.runs.values())
    theirs = [after.runs[run_after]] if run_after is not None else list(after.runs.values())
    if run_before is not None and run_after is not None:
        pairs: list[tuple[Run | None, Run | None]] = [(ours[0], theirs[0])]
    else:
        keys: list[Callable[[Run], Hashable]] = [lambda run: (run.plan.workload, run.plan.side, measurement(run))]
        if any(run.plan.side for side in (ours, theirs) for run in side):
            keys.append(lambda run: (run.plan.workload, measurement(run)))
        # A single program of each session is the same program; likewise a single function of the user, in any file.
        if all(sum(run.is_program for run in side) == 1 for side in (ours, theirs)):
            keys.append(lambda run: "program" if run.is_program else None)
        if all(len({run.plan.workload for run in side if run.plan.target}) == 1 for side in (ours, theirs)):
            keys.append(lambda run: (run.plan.side, measurement(run)) if run.plan.target else None)
        pairs = pair_up(ours, theirs, keys)
    runs: list[RunDifference] = []
    for first, second in pairs:
        if first is None or second is None:
            continue
        program = None
        if first.is_program and second.is_program:
            from jaxprof.findings.compare.program_difference import program_difference
            from jaxprof.findings.program_result import program_result

            program = program_difference(program_result(before, first.id), program_result(after, second.id))
        runs.append(
            replace(
                run_difference(before, first, after, second),
                phases=_phases(before, first, after, second),
                program=program,
                side=side_versus(before, first, second) if before is after else None,
            )
        )
    return SessionDifference(
        before,
        after,
        environments(environment_facts(_reporting_run(ours)), environment_facts(_reporting_run(theirs))),
        tuple(runs),
        tuple(first for first, second in pairs if first is not None and second is None),
        tuple(second for first, second in pairs if first is None and second is not None),
    )


def ab_difference(compared: AbResult, versus: AbVersus) -> SessionDifference:
    """Return all differences of a side to A but the times, exact facts first; A is `before`. Reads the HLO of both."""
    baseline = compared.baseline.id
    return session_difference(compared.session, compared.session, run_before=baseline, run_after=versus.run.id)


def compilers_between(difference: SessionDifference, pair: RunDifference) -> tuple[Difference[str], ...]:
    """Return the versions of jax and jaxlib that a pair of the difference was compiled by, if they differ and nothing
    else does that a user has changed: one program, with the same arguments and settings. Empty if something else
    differs, or if its code is not known of both."""
    from jaxprof.findings.compare.program_difference import COMPILERS, source_changes

    differing = [row for row in difference.environment if row.differs]
    plans = pair.before.plan, pair.after.plan
    is_built_in = not any(plan.target for plan in plans) and plans[0].workload in names()
    planned = pair.before.comparison
    variables = {side.label: side.environment for side in (planned.sides if planned is not None else ())}
    changes = {row.code for row in pair.program.changes} if pair.program is not None else set()
    same = (
        {row.code for row in differing} <= _VERSIONS
        and changes <= {*COMPILERS}
        and not pair.unlike
        and plans[0].workload == plans[1].workload
        and plans[0].trial == plans[1].trial
        and len({frozenset(variables.get(plan.side, {}).items()) for plan in plans}) == 1
        and (is_built_in or source_changes(pair.before, pair.after) == ())
    )
    return tuple(row for row in differing if row.code in COMPILERS) if same else ()


def run_difference(session_a: Session, run_a: Run, session_b: Session, run_b: Run) -> RunDifference:
    """Return the exact facts of two runs, the first being the baseline. Reads the HLO of both, so call it in a thread.
    Raises FileRefusedError if a text of a session is damaged."""
    memory = memory_of_run(session_a, run_a.id), memory_of_run(session_b, run_b.id)
    facts: dict[str, FigureDifference] = {}
    known = _facts_by_source(session_a, run_a, memory[0]), _facts_by_source(session_b, run_b, memory[1])
    for (source, ours), (other, theirs) in zip(*known, strict=True):
        if source == other or not (source and other):
            facts |= exact_facts(ours, theirs, estimate=SCHEDULE in (source, other))
    modules = read_module(session_a, run_a), read_module(session_b, run_b)
    captures = measure_kernels(session_a, run_a.id), measure_kernels(session_b, run_b.id)
    trees = [run.compile_passes.tree for run in (run_a, run_b) if run.compile_passes is not None]
    passes = None
    if len(trees) == 2:
        passes = figures(*({stage.stage: stage.seconds for stage in stage_times(tree)} for tree in trees))
    buffers = None
    old, new = memory
    if old is not None and new is not None and old.source == new.source and old.buffers and new.buffers:
        found = pairs(
            list(old.buffers),
            list(new.buffers),
            [
                lambda buffer: (buffer.kind, buffer.instruction, buffer.shape, buffer.bytes),
                lambda buffer: (buffer.kind, buffer.op_name, buffer.shape, buffer.bytes),
                lambda buffer: (buffer.kind, buffer.shape, buffer.bytes),
                lambda buffer: (buffer.kind, buffer.op_name) if buffer.op_name else None,
                lambda buffer: (buffer.kind, buffer.instruction) if buffer.instruction else None,
            ],
            lambda buffer: (buffer.bytes, buffer.shape),
        )
        buffers = tuple(sorted(found, key=lambda pair: (-abs(pair.part("bytes")), pair.status == "same")))
    of_modules = _of_modules(
        *modules, facts, *(capture.kernels if capture is not None else None for capture in captures)
    )
    return RunDifference(
        of_modules.kernels,
        of_modules.collectives,
        of_modules.findings,
        facts=facts,
        before=run_a,
        after=run_b,
        unlike=unlike(run_a, run_b),
        passes=passes,
        buffers=buffers,
    )


def facts_of(session: Session, run: Run) -> dict[str, float]:
    """Return the exact facts that are known of one run in one call, by code. Raises FileRefusedError if a text of the
    session is damaged."""
    sources = _facts_by_source(session, run, memory_of_run(session, run.id))
    return {code: value for _, facts in sources for code, value in facts.items() if value is not None}


def arguments_of(session: Session, run: Run) -> tuple[str, ...]:
    """Return dtype and shape of the arguments of a run's compiled program, such as `f32[64,256]`; empty without
    readable HLO. Unused arguments are no parameters of the program, and are missing here."""
    module = read_module(session, run)
    entry = module.entry if module is not None else None
    return tuple(str(parameter.shape.without_layout()) for parameter in entry.parameters) if entry is not None else ()


def module_difference(before: Module, after: Module) -> ModuleDifference:
    return _of_modules(before, after, exact_facts(_module_facts(before), _module_facts(after)))


def _of_modules(
    before: Module | None,
    after: Module | None,
    facts: Mapping[str, FigureDifference],
    before_measured: Sequence[MeasuredKernel] | None = None,
    after_measured: Sequence[MeasuredKernel] | None = None,
) -> ModuleDifference:
    """Compare the kernels of two modules, with their times if both were captured, the collectives and the findings."""
    from jaxprof.findings.compare.kernel_difference import kernel_differences
    from jaxprof.findings.hlo import findings
    from jaxprof.hlo.kernels.collectives import collectives

    kernels = kernel_differences(before, after, before_measured, after_measured)
    if before is None or after is None:
        return ModuleDifference(kernels, None, None, facts)
    groups: dict[tuple[str, int | None], tuple[list[Collective], list[Collective]]] = {}
    for side, module in enumerate((before, after)):
        for collective in collectives(module):
            groups.setdefault((collective.opcode, collective.group_size), ([], []))[side].append(collective)
    differences: list[CollectiveDifference] = []
    for kind, sides in groups.items():
        (before_count, before_bytes), (after_count, after_bytes) = map(_collective_traffic, sides)
        differences.append(CollectiveDifference(*kind, before_count, after_count, before_bytes, after_bytes))
    # A module has one finding of each code; the order is that of the first module.
    then = findings(before)
    order = {finding.code: number for number, finding in enumerate(then)}
    found = pairs(then, findings(after), [lambda each: each.code], lambda each: (each.message, len(each.kernels)))
    found.sort(key=lambda pair: order.get(pair.either.code, len(order)))
    return ModuleDifference(kernels, tuple(differences), tuple(found), facts)


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


_Facts: TypeAlias = dict[str, float | None]


def _facts_by_source(session: Session, run: Run, memory: MemoryPicture | None) -> list[tuple[str, _Facts]]:
    """Return the facts of a run from each source, later ones in place of earlier ones. Sources with a name count in
    ways of their own: facts of two names are not compared."""
    counted = _module_facts(read_module(session, run)) | _product_facts(session, run)
    if run.memory is not None:
        counted |= {"alias_bytes": run.memory.alias_bytes, "generated_code_bytes": run.memory.generated_code_bytes}
    counted["compiles"] = _compiles(run)
    cost = cost_of_call(session, run)
    sizes: _Facts = {}
    if memory is not None and memory.peak_bytes is not None:
        sizes = {"peak_bytes": memory.peak_bytes, **{f"{kind}_bytes": memory.part(kind) for kind in KINDS}}
    return [("", counted), (cost.source, _cost_facts(cost)), (memory.source if memory is not None else "", sizes)]


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


def _module_facts(module: Module | None) -> _Facts:
    """Return the facts of one call of a module. FLOPs and counts are None if a loop's trip count is unknown."""
    if module is None:
        return {}
    from jaxprof.hlo.kernels.collectives import collectives
    from jaxprof.hlo.kernels.kernels import kernels

    listed = kernels(module)
    counts = [kernel.count for kernel in listed if kernel.count is not None]
    executions, moved = _collective_traffic(collectives(module))
    running = (module.get(name) for name in module.once(Execution).post_order)
    instructions = (instruction for each in running if each is not None for instruction in each.instructions)
    return {
        "kernels": len(listed),
        "kernel_launches": sum(counts) if len(counts) == len(listed) else None,
        **_cost_facts(module_cost(module)),
        # Constants in fusions are part of the code. Memory analyses of absent devices do not include this figure.
        "constant_bytes": sum(one.shape.bytes for one in instructions if one.opcode == "constant"),
        "collectives": executions,
        "collective_bytes": moved,
    }


def _product_facts(session: Session, run: Run) -> _Facts:
    """Return the bytes of all operands of the products in the module before optimisation; empty without it, or if the
    number of executions is unknown."""
    module = read_module(session, run, "hlo_before")
    if module is None or module.entry is None:
        return {}
    from jaxprof.hlo.kernels.kernels import kernels

    operand_bytes = 0
    for kernel in kernels(module):
        if kernel.instruction.opcode not in PRODUCTS:
            continue
        shapes = [operand.shape for operand in kernel.instruction.operand_instructions()[:2]]
        if kernel.total_flops is None or kernel.count is None or not all(shape.known for shape in shapes):
            return {}
        operand_bytes += kernel.count * sum(shape.bytes for shape in shapes)
    return {"product_bytes": operand_bytes}


def _cost_facts(cost: RunCost) -> _Facts:
    return {"flops": cost.flops, "accessed_bytes": cost.bytes_accessed, "transcendentals": cost.transcendentals}


def _collective_traffic(found: Sequence[Collective]) -> tuple[int | None, int | None]:
    """Return the executions of collectives and the bytes that they exchange; None if a trip count is unknown."""
    counts = [each.kernel.count for each in found if each.kernel.count is not None]
    if len(counts) < len(found):
        return None, None
    return sum(counts), sum(count * each.bytes for count, each in zip(counts, found, strict=True))


def _phases(session_a: Session, run_a: Run, session_b: Session, run_b: Run) -> tuple[PhaseDifference, ...]:
    ours, theirs = result(session_a, run_a.id).phase_seconds, result(session_b, run_b.id).phase_seconds
    phases: list[PhaseDifference] = []
    reasons: list[str] = []
    """Why the times of a side mean nothing, or cannot be compared."""
    for side, run in (("the first", run_a), ("the second", run_b)):
        if run.check is not None and run.check.passed is False:
            reasons.append(f"{side} result is wrong")
        elif run.status != "ok":
            reasons.append(f"{side} run {run.status if run.over else 'did not end'}")
    if not (run_a.plan.side and run_b.plan.side):  # sides differ on purpose, such as in size or precision
        reasons += unlike(run_a, run_b)
    in_one_group = session_a is session_b and (run_a.plan.baseline or run_a.id) == (run_b.plan.baseline or run_b.id)
    once_times = compare_once(run_a, run_b, {*ours, *theirs}) if in_one_group else {}
    for phase in dict.fromkeys((*ours, *theirs)):
        before, after = ours.get(phase), theirs.get(phase)
        if before is None and after is None:
            continue
        if phase == "run" and session_a is session_b:
            times = compare_times(session_a, run_a, run_b)
        elif phase in once_times:
            times = once_times[phase]
        else:
            times = compare_apart(before, after)
        if reasons:
            times = refuse(times, reasons[0])
        phases.append(PhaseDifference(phase, before, after, times=times))
    return tuple(phases)


def _reporting_run(runs: Sequence[Run]) -> Run | None:
    """Return the first run whose process has jax; without one, the first that reported an environment."""
    reported = [run for run in runs if run.environment is not None]
    return next(
        (run for run in reported if run.environment and run.environment.jax is not None),
        reported[0] if reported else None,
    )


def environment_facts(run: Run | None) -> dict[str, str]:
    """Return versions, devices, settings and the git commit of a run as text, by name, without unknown values."""
    if run is None:
        return {}
    facts: dict[str, object] = {}
    environment, revision = run.environment, run.revision
    if revision is not None:
        facts["git commit"] = f"{revision.commit} with changes" if revision.dirty else revision.commit
    if environment is not None:
        kinds = [str(device.get("kind") or device.get("platform") or "?") for device in environment.devices]
        facts |= {
            "python": environment.python,
            "jax": environment.jax,
            "jaxlib": environment.jaxlib,
            "numpy": environment.numpy,
            "devices": ", ".join(f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds)) or None,
            **{name: value for name, value in environment.settings.items() if name not in _MOMENTARY},
        }
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}
