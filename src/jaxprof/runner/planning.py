"""Turn targets and options into the list of runs: every variant on every device at every size, the baseline first; and
say how long they take."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

from jaxprof.analysis.target import Target, wrong_kind
from jaxprof.base.errors import UsageError, not_found, unknown_name
from jaxprof.base.units import seconds
from jaxprof.base.values import frozen
from jaxprof.devices.absent import AbsentDevices
from jaxprof.engine.protocol.request import OpenTraceRequest
from jaxprof.events import DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES, ComparisonPlanned, RunSpec, Scalar
from jaxprof.runner.interpreter import Interpreter
from jaxprof.session import Run
from jaxprof.stats.turns import ALONE_SECONDS, ALONE_SHARE, PROBE_SECONDS, PROBES
from jaxprof.workloads import CATALOGUE, load_built_in
from jaxprof.workloads.model import Parameter, VariantInfo, WorkloadInfo, workload_info, worth_running
from jaxprof.workloads.specs import split_shard

HOST = "cpu:0"
SWEEP_LIMIT = 64


@frozen(kw_only=True, eq=False)
class PlannedRun:
    """One run to be made. Plans with equal fields are different runs: identity distinguishes them."""

    spec: RunSpec
    baseline: PlannedRun | None = None
    """The run that this one is compared with; None for the baseline itself."""
    compile_only: bool = False
    elsewhere: AbsentDevices | None = None
    """Devices not on this machine for which it is compiled; `spec.device` is then their label."""
    mesh: Mapping[str, int] = field(default_factory=dict)
    """Names and sizes of the mesh axes over the devices of `elsewhere`, which become the program's context; empty: the
    program's own."""
    shard: tuple[str, ...] = ()
    """`ARGUMENT=SPEC`: how inputs are split over the devices of `elsewhere`."""
    profile: OpenTraceRequest | None = None
    """Profile recorded elsewhere that is read; nothing is run. The id of its run is not set yet."""
    interpreter: Interpreter | None = None
    """Interpreter whose jax is measured; None: that of the queue."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for its processes, laid over those that its device needs."""
    keep_output: str = ""
    """File to which its result is written; empty: none."""
    comparison: ComparisonPlanned | None = None
    """The comparison that starts with this run; None unless it is the first side of one."""
    stays_at: str = ""
    """Where its target is found later, if `spec.target` is a temporary copy; empty: `spec.target` itself."""
    group_seconds: float | None = None
    """Seconds for measuring it together with the runs compared with it: no launch begins that would not end in time,
    and no block after it; None: as long as its launches take."""


@frozen(kw_only=True)
class PlanOptions:
    """Options that apply to all runs of a plan."""

    preset: str = "quick"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Values of parameters that the user set, as text."""
    variants: Sequence[str] = ()
    """Names of the variants to measure; empty for all. The baseline is always timed."""
    devices: Sequence[str] = (HOST,)
    sweep: str = ""
    """The sweep as text: `n=1e3..1e7`, `n=1e3..1e7:12` (points) or `n=100,200,400`; empty for none."""
    budget_seconds: float = DEFAULT_BUDGET_SECONDS
    max_seconds: float | None = None
    arguments: Sequence[str] = ()
    keep_constants: bool = False
    compilation_cache: bool = False
    capture: bool = True
    """Whether kernels and compile passes are captured, apart from the timed calls."""
    seed: int = 0
    launches: int = DEFAULT_LAUNCHES


def plan_all(infos: Sequence[WorkloadInfo], choice: PlanOptions) -> tuple[list[PlannedRun], list[str]]:
    """Return the runs of all these workloads, and notes on what was left out. Each of several takes the variants and
    settings that it has; a name that none of them has raises UsageError with similar names."""
    variants = {variant.name for info in infos for variant in info.variants}
    for name in choice.variants:
        if name not in variants:
            raise unknown_name("variant", name, variants)
    parameters = {parameter.name for info in infos for parameter in info.parameters}
    for name in choice.settings:
        if name not in parameters:
            raise unknown_name("parameter", name, parameters)
    planned: list[PlannedRun] = []
    notes: list[str] = []
    for info in infos:
        kept = [name for name in choice.variants if name in {variant.name for variant in info.variants}]
        if choice.variants and not kept:
            notes.append(f"{info.name} has no variant {' or '.join(choice.variants)}: left out")
            continue
        accepted = {parameter.name for parameter in info.parameters}
        settings = {name: text for name, text in choice.settings.items() if name in accepted}
        planned += plan_runs(info, replace(choice, variants=kept, settings=settings))
    return planned, notes


def plan_runs(info: WorkloadInfo, choice: PlanOptions) -> list[PlannedRun]:
    """Plan the runs of a workload, by size, variant and device, the baseline first. Raises UsageError for a wrong name
    or value. A NumPy variant runs on the host whatever the devices are, and is planned once."""
    if choice.budget_seconds <= 0 or (choice.max_seconds is not None and choice.max_seconds <= 0):
        raise UsageError("a time budget must be above 0 seconds", "--budget 2 is the default.")
    if not choice.devices:
        raise UsageError("no device is chosen", "jaxprof devices lists them.")
    baseline = info.variant(info.baseline)
    wanted = [info.variant(name) for name in choice.variants] if choice.variants else list(info.variants)
    chosen = [baseline, *(variant for variant in info.variants if variant in wanted and variant is not baseline)]
    sizes = [info.resolve(choice.preset, choice.settings)]
    if choice.sweep:
        name, values = read_sweep(choice.sweep, info.parameters)
        sizes = [{**sizes[0], name: value} for value in values]
    plans: list[PlannedRun] = []
    for parameters in sizes:
        first: PlannedRun | None = None  # of this size: the baseline of the others
        for variant in chosen:
            for device in [HOST] if variant.how == "numpy" else dict.fromkeys(choice.devices):
                if variant.name not in choice.variants and not worth_running(variant, device.partition(":")[0]):
                    continue
                spec = replace(
                    _spec(info, variant, parameters, choice),
                    device=device,
                    budget_seconds=choice.budget_seconds,
                    max_seconds=choice.max_seconds,
                    compilation_cache=choice.compilation_cache,
                    capture=choice.capture,
                    launches=choice.launches,
                )
                planned = PlannedRun(spec=spec, baseline=first)
                plans.append(planned)
                first = first or planned
    return plans


def plan_compiles(
    info: WorkloadInfo,
    variant: str,
    choice: PlanOptions,
    for_devices: Sequence[AbsentDevices],
    shard: Sequence[str] = (),
    mesh: Mapping[str, int] | None = None,
) -> list[PlannedRun]:
    """Plan compiling one variant, here or for each of `for_devices`. `variant`: empty for the first that is compiled as
    a whole. Raises UsageError for a wrong name or value, a variant that NumPy runs, a mesh that does not use all the
    devices, and a split that names no argument."""
    for text in shard:
        split_shard(text)
    for absent in for_devices:
        if mesh and math.prod(mesh.values()) != absent.devices:
            axes = ",".join(f"{name}={size}" for name, size in mesh.items())
            raise UsageError(
                f"the mesh {axes} has {math.prod(mesh.values())} devices, but {absent.label} has {absent.devices}",
                "The product of the sizes is the number of devices.",
            )
    if variant:
        chosen = info.variant(variant)
    else:  # what runs op by op can be compiled as a whole, too
        jax_variants = [each for how in ("jit", "eager") for each in info.variants if each.how == how]
        if not jax_variants:
            raise UsageError(f"{info.name} has no JAX variant to compile", "Its variants are all NumPy.")
        chosen = jax_variants[0]
    if chosen.how == "numpy":
        raise UsageError(f"{info.name} {chosen.name} is NumPy: there is nothing to compile", "Choose a jit variant.")
    parameters = info.resolve(choice.preset, choice.settings)
    spec = replace(_spec(info, chosen, parameters, choice), how="compile", device=choice.devices[0])
    if not for_devices:
        return [PlannedRun(spec=spec, compile_only=True)]
    return [
        PlannedRun(
            spec=replace(spec, device=absent.label),
            compile_only=True,
            elsewhere=absent,
            shard=tuple(shard),
            mesh=dict(mesh or {}),
        )
        for absent in for_devices
    ]


def find_workloads(
    targets: Sequence[Target],
    interpreter: Interpreter,
    arguments: Sequence[str],
    devices: int = 1,
    variables: Mapping[str, str] | None = None,
    inputs_from: str = "",
) -> list[WorkloadInfo]:
    """Return the workloads of the targets, in order, without repeats. A child process describes a function, so that the
    user's code never runs in this process.

    `devices`: how many CPU devices a user's file sees while it is imported, and `variables` what is laid over its
    environment. `inputs_from`: the target whose inputs those without any take. Raises UsageError for what is no code,
    for a target that cannot be imported, and for a file or module with several functions.
    """
    from jaxprof.runner.engine_questions import describe

    for target in targets:
        if not target.is_code:
            error = wrong_kind(target, "a function or a workload")
            raise error or not_found("workload", target.word, CATALOGUE)
    own = list(dict.fromkeys(target.word for target in targets if target.is_own))
    if arguments and not own:
        raise UsageError("--arg is for your own functions", "Sizes of built-in workloads are set with --set n=4000.")
    described: list[WorkloadInfo] = []
    if own:
        described = describe(interpreter, own, arguments, devices, variables=variables, inputs_from=inputs_from)
    unique: dict[str, WorkloadInfo] = {}
    for target in targets:
        if not target.is_own:
            unique.setdefault(target.function, workload_info(load_built_in(target.function), sources=False))
            continue
        word = target.word
        of_target = [info for info in described if info.origin == word or info.origin.startswith(f"{word}:")]
        if len(of_target) > 1:
            functions = [info.origin.rpartition(":")[2] for info in of_target]
            raise UsageError(
                f"{word} has {len(functions)} functions: {', '.join(functions)}",
                f"Name one: {of_target[0].origin}. jaxprof run --describe {word} lists them.",
            )
        unique |= {info.origin: info for info in of_target}
    return list(unique.values())


def read_settings(items: Sequence[str]) -> dict[str, str]:
    """Return `n=4000` items as name → text; the last item of a name counts. Raises UsageError."""
    settings: dict[str, str] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise UsageError(f"cannot read --set {item!r}", "Write it as --set n=4000.")
        settings[name.strip()] = text.strip()
    return settings


def read_sweep(text: str, parameters: Sequence[Parameter]) -> tuple[str, Sequence[Scalar]]:
    """Return the parameter and its values, in ascending order, of the sweep that `text` describes. Raises UsageError
    naming what is wrong."""
    name, equals, span = text.partition("=")
    by_name = {parameter.name: parameter for parameter in parameters}
    example = "A sweep looks like n=1e3..1e7, n=1e3..1e7:12 (points) or n=100,200,400."
    if not equals or not span:
        raise UsageError(f"cannot read the sweep {text!r}", example)
    if name not in by_name:
        raise UsageError(f"no parameter {name!r} to sweep", f"There are: {', '.join(by_name) or 'none'}.")
    parameter = by_name[name]
    if ".." not in span:
        listed = {parameter.read(item.strip()) for item in span.split(",")}
        return name, sorted(listed, key=lambda value: (isinstance(value, str), value))
    low_text, _, rest = span.partition("..")
    high_text, _, points_text = rest.partition(":")
    low, high = parameter.read(low_text), parameter.read(high_text)
    if isinstance(low, str) or isinstance(high, str):
        raise UsageError(f"{name} has no range to sweep", f"Name the values: {name}={','.join(parameter.choices)}.")
    try:
        points = int(points_text) if points_text else 9
    except ValueError:
        raise UsageError(f"{points_text!r} is not a number of points", example) from None
    if not 2 <= points <= SWEEP_LIMIT or low <= 0 or high <= low:
        raise UsageError(f"cannot sweep {span!r}", f"Give 0 < low < high and 2 to {SWEEP_LIMIT} points. {example}")
    steps = [low * (high / low) ** (index / (points - 1)) for index in range(points)]
    return name, sorted({round(step) for step in steps} if parameter.kind == "int" else set(steps))


def _spec(info: WorkloadInfo, variant: VariantInfo, parameters: Mapping[str, Scalar], choice: PlanOptions) -> RunSpec:
    return RunSpec(
        target=info.target,
        workload=info.name,
        variant=variant.name,
        how=variant.how,
        device=HOST,
        parameters=dict(parameters),
        preset=choice.preset,
        precision=variant.precision,
        arguments=tuple(choice.arguments),
        keep_constants=choice.keep_constants,
        seed=choice.seed,
    )


_START_SECONDS, _START_SECONDS_NUMPY = 1.3, 0.3
"""Time from the start of a process to its first turn, with the end of the one before it: the import, a first compile,
and the warm-up. Measured on two cores with a short function, as all times here."""
_SIDE_SHARE, _MOST_SIDE_SECONDS = 0.4, 2.0
"""Share of the budget for the series besides the steady run: both transfers, dispatch, pipelined calls."""


def estimate_time(planned: Sequence[PlannedRun]) -> str:
    """Return what the runs take with short calls and compilations, which are unknown before: `about 23 s or more`."""
    specs = [plan.spec for plan in planned]
    if any(spec.how not in ("numpy", "eager", "jit") or spec.side for spec in specs):
        return "time unknown"
    whole = 0.0
    for spec in specs:
        whole += spec.launches * (_START_SECONDS_NUMPY if spec.how == "numpy" else _START_SECONDS)
        work = spec.timing_seconds
        if len(specs) > 1:  # in turns
            alone = min(ALONE_SECONDS, ALONE_SHARE * spec.timing_seconds / spec.launches)
            work += spec.launches * alone + PROBES * PROBE_SECONDS
        if spec.how != "numpy":
            work += min(_MOST_SIDE_SECONDS, _SIDE_SHARE * spec.timing_seconds)
            # Both captures of a run, and its check.
            work += 0.6 if spec.capture else 0.0
        whole += min(work, math.inf if spec.max_seconds is None else spec.max_seconds)
    return f"about {seconds(whole, 2)} or more"


def left_in_words(runs: Collection[Run], now_seconds: float) -> str:
    """Return `≈ 25 s left`, at a monotonic time: from what the turns of these runs have taken, rounded as coarsely as
    an estimate deserves; empty if it is unknown, as while others wait that are not measured together with them."""
    begun = {run.plan.baseline or run.id for run in runs if run.started_seconds is not None}
    going = [run for run in runs if not run.over]
    left = [
        run.remaining_seconds - (now_seconds - run.progress_seconds)
        for run in going
        if run.remaining_seconds is not None and run.progress_seconds is not None
    ]
    most = max(left, default=0.0)
    if most <= 0 or any((run.plan.baseline or run.id) not in begun for run in going):
        return ""
    if most > 110:
        return f"≈ {math.ceil(most / 60)} min left"
    step = next(step for step, limit in ((1, 10), (5, 60), (10, 110)) if most <= limit)
    return f"≈ {math.ceil(most / step) * step} s left"
