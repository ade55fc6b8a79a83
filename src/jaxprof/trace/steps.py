"""Where the time of each step went: kernels, copies, collectives, gaps, idle. The parts of a step add up to it.

Each moment of a step on a device belongs to the first part that applies: a kernel ran; a collective ran and no kernel
(exposed); a copy ran and neither; a program was being executed but nothing ran (a gap between launches); nothing was
being executed (idle). A collective that ran beside a kernel is overlapped, and is not one of the parts.

Which ops communicate with other devices is found by the opcode in the module that the profile holds. JAX names an
instruction after its primitive (`psum.14`, `ppermute`), and XLA's fusions and asynchronous pairs have names of their
own, so a name proves nothing. Only if the module is missing does a name count, and only a complete one: an opcode, one
of JAX's primitives, or NCCL's kernel.

An idle moment counts as waiting for the host if a thread that calls programs did something in it: what the runtime's
own threads do meanwhile keeps no device waiting. If the launch of the kernel that ends a pause is recorded,
the time after it belongs to the launch. Each other moment belongs to the first of these that such a thread was in:
compiling, copying to or from the device, waiting for the device, calling a program. What remains is the host's own work
if an annotation or, with the Python tracer, a function names it; otherwise the cause is unknown. Garbage collection
leaves no event. A TPU's ops are timed by its own clock, which drifts against the host's: causes there are unknown.

A CPU is device and host at once, and not everything that it runs is an op. Its pauses count only from the moment at
which the runtime says that an execution is complete; until then the host waits. The way of a call to the threads that
execute it belongs to the launch. Several CPU devices share these threads: causes there are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jaxprof.base.errors import HloError
from jaxprof.base.text import whole_number
from jaxprof.base.values import frozen
from jaxprof.events import IdleCause, StepParts, StepsDevice, StepTimes
from jaxprof.hlo.kernels import COLLECTIVES, PRODUCTS
from jaxprof.hlo.text.proto import module_message
from jaxprof.hlo.text.wire import Message
from jaxprof.trace.executions import (
    Annotations,
    Executions,
    Windows,
    annotations_in,
    executions_on,
    steps_of_annotations,
)
from jaxprof.trace.intervals import Coverage, Spans, holds_others, join, positions_in
from jaxprof.trace.launch import clock_fault, copies_of, launches_on
from jaxprof.trace.model import (
    ABSENT,
    LONGEST_PS,
    NO_OP,
    PS,
    Flags,
    Ints,
    Lane,
    ProgramProto,
    Trace,
    program_proto,
    span_of,
)

_LAUNCH = re.compile(
    r"PjitFunction\(|ParseArguments$|PJRT_LoadedExecutable_Execute|(\w+::)*\w*Executable::Execute\w*|"
    r"(\w+::)*(ExecuteHelper|ExecutePrepare|ExecuteThunks)\w*|(cu|cuda|hip)\w*Launch(Kernel|Cooperative\w*|Graph)?\w*$"
)
_NAMES = (
    (
        "compile",
        re.compile(
            r"(\$(compiler|pxla|pjit|partial_eval|mlir|dispatch|stages)\.py:\d+ )?"
            r"(backend_compile\w*|trace_to_jaxpr\w*|jaxpr_to_mlir\w*|lower_jaxpr\w*|compile_or_get_cached)\b|"
            r"(\w+::)*\w*XlaCompile\w*|(\w+::)*\w*Client::Compile(AndLoad)?\b"
        ),
    ),
    (
        "copy",
        re.compile(
            r"(\$\w+\.py:\d+ )?(device_put|device_get)$|DevicePut|np\.asarray\(jax\.Array\)|MakeArrayFromHost|"
            r"(\w+::)*(BufferFromHost\w*|Copy(To|From)(Host|Device|Literal|MemorySpace|Remote)\w*|CopyRaw\w*|"
            r"Transfer(To|From)(Host|Device|Infeed|Outfeed|Literal|Server)\w*|ToLiteral\w*|Linearize\w*)|"
            r"PCIe/Memcpy|(cu|cuda|hip)Memcpy"
        ),
    ),
    (
        "wait",
        re.compile(
            r"(\$\w+\.py:\d+ )?block_until_ready$|(\w+::)*BlockHostUntilReady|(\w+::)*\w*(Buffer|Future|Array)::Await|"
            r"(cu|cuda|hip)(Stream|Event|Ctx|Device)Synchronize"
        ),
    ),
    ("launch", _LAUNCH),
)
"""Purpose of the host's events, by the beginnings of the names that Python, JAX's runtimes, CUDA and HIP give them."""
_COMPLETE = re.compile(r"ThunkExecutor::Execute|\w*Buffer::Await$")
"""Events that end when a CPU has executed a program, and when a thread that waited for it goes on."""
_OWN_TASK = re.compile(r"ThenExecuteCallback|BufferSequencingEvent::")
"""Events of the runtime's own tasks, which are not the call's work even within a call."""
_POOL = re.compile(r"tf_|tfrt|pjrt|py_xla|EventFD|switchto")
"""Names that the runtime gives to its own threads."""
_FUNCTION = re.compile(r"\$\S+:\d+ ")
"""Names that the Python tracer gives to functions with a line, `$train.py:3 load_batch`; others are `$time sleep`."""
_NAMING_SHARE = 0.5
"""Share of the host's own work that an event must hold to name it."""
_WITNESSED_SHARE = 0.5
"""Share of a CPU's idle time that must follow a complete execution: less of it may be work that is not recorded."""
_LEAST_SHARE = 0.01
"""Share of the steps below which idle time is not examined."""


def idle_causes(trace: Trace, device: str, starts: Ints, ends: Ints, active: Coverage) -> list[IdleCause]:
    """Return the causes of a device's idle time in the windows from `starts` to `ends`, longest first; empty if there
    is hardly any idle time, or its causes cannot be known. `active` covers the time when something was being executed.
    Picoseconds."""
    windows = Coverage.of(starts, ends)
    on_cpu = device.startswith("cpu")
    if not len(windows.starts) or not (on_cpu or device.startswith("gpu")):
        return []
    if on_cpu and len({lane.device for lane in trace.op_lanes()}) > 1:
        return []
    idle = windows - active
    if idle.total < _LEAST_SHARE * windows.total:
        return []
    # The threads that call programs; if no call is recorded, all but the runtime's own.
    lanes = [lane for lane in trace.threads if not _POOL.match(lane.name)]
    lanes = [lane for lane in lanes if any(map(_LAUNCH.match, lane.names))] or lanes
    if not lanes or clock_fault(trace):
        return []
    seconds: dict[str, int] = {}
    if on_cpu:
        complete, launched = _pauses_of_cpu(trace, lanes, idle)
        if complete.total < _WITNESSED_SHARE * idle.total:
            return []
        seconds["wait"] = idle.total - complete.total
        idle = complete
    else:
        # From the launch of each kernel that ends a pause to the kernel, if both are recorded.
        ids, moments, _ = launches_on(trace)
        began: list[Ints] = []
        reached: list[Ints] = []
        for lane in trace.on_device(device) if len(ids) else ():
            at, known = positions_in(lane.correlations, ids)
            first = known & (lane.op_of != NO_OP) & np.isin(lane.starts, active.starts)
            began.append(moments[at[first]])
            reached.append(lane.starts[first])
        launched = idle & Coverage.of(join(began), join(reached))
    seconds["launch"] = launched.total
    left = idle - launched
    for cause, pattern in _NAMES:
        named = _time_in(lanes, pattern)
        covered = left & (named - _time_in(lanes, _OWN_TASK) if cause == "launch" else named)
        seconds[cause] = seconds.get(cause, 0) + covered.total
        left = left - covered
    name = _most_specific(lanes, left) if left.total else ""
    seconds["host" if name else "unknown"] = left.total
    causes = [
        IdleCause(cause=cause, seconds=took * PS, name=name if cause == "host" else "")
        for cause, took in seconds.items()
        if took
    ]
    return sorted(causes, key=lambda idle_cause: -idle_cause.seconds)


def _pauses_of_cpu(trace: Trace, lanes: list[Lane], idle: Coverage) -> tuple[Coverage, Coverage]:
    """Return the part of a CPU's pauses in which the execution before was complete, if one of these lanes then called
    a program; and of that the end, in which the last such call was on its way to the threads that execute it."""
    calls = [lane.select(lane.matching(_LAUNCH.match)) for lane in lanes]
    called = _first_from(idle.starts, join(lane.starts for lane in calls))
    complete = _last_until(called, join(lane.ends[lane.matching(_COMPLETE.match)] for lane in trace.threads))
    returned = _last_until(idle.ends, join(lane.ends for lane in calls))
    known = (called < idle.ends) & (complete >= idle.starts)
    handed = known & (returned >= called)
    return Coverage.of(complete[known], idle.ends[known]), Coverage.of(returned[handed], idle.ends[handed])


def _first_from(moments: Ints, events: Ints) -> Ints:
    """Return the first event at or after each moment; far in the future if there is none."""
    ordered = np.append(np.sort(events), LONGEST_PS)
    first: Ints = ordered[np.searchsorted(ordered[:-1], moments)]
    return first


def _last_until(moments: Ints, events: Ints) -> Ints:
    """Return the last event at or before each moment; far in the past if there is none."""
    return -_first_from(-moments, -events)


def _time_in(lanes: list[Lane], pattern: re.Pattern[str]) -> Coverage:
    return Coverage.over(lane.select(lane.matching(pattern.match)) for lane in lanes)


def _most_specific(lanes: list[Lane], work: Coverage) -> str:
    """Return the name of the shortest events that hold most of the work, and beside a function of Python without a line
    that of the shortest one with a line; empty if none do. Step annotations do not count."""
    found: list[tuple[float, str]] = []
    for lane in lanes:
        held = work.within(lane.starts, lane.ends)
        if lane.step is not None:
            held[lane.step != ABSENT] = 0
        of_names = np.bincount(lane.name_of, weights=held, minlength=len(lane.names))
        for number in np.flatnonzero(of_names >= _NAMING_SHARE * work.total).tolist():
            named = lane.select((lane.name_of == number) & (held > 0))
            if (work & Coverage.over([named])).total >= _NAMING_SHARE * work.total:
                found.append((float(np.median(named.durations)), lane.names[number]))
    names = [name for _, name in sorted(found)]
    callers = [name for name in names if _FUNCTION.match(name)]
    if callers and names[0].startswith("$") and names[0] not in callers:
        return f"{names[0]} in {callers[0]}"
    return names[0] if names else ""


_BETWEEN_DEVICES = COLLECTIVES | {"send", "recv"}
_HALF = re.compile(r"-(start|update|done)$")
_DEEPEST = 9  # a damaged module may call itself
_ANY = re.compile("|".join(sorted(_BETWEEN_DEVICES)).encode())
_BY_NAME = re.compile(
    r"(all[-_]reduce|all[-_]gather|reduce[-_]scatter|(ragged[-_])?all[-_]to[-_]all|collective[-_](permute|broadcast)|send|recv|"
    r"psum|psum_scatter|psum_invariant|pmax|pmin|ppermute|pbroadcast|all_gather_invariant)([-_](start|done))?(\.\d+)*(\.remat\d*|\.clone)*$"
)
KERNEL_OF_COLLECTIVE = re.compile(r"(void )?(nccl|rccl)", re.IGNORECASE)
"""Names of the kernels of NCCL and RCCL, which may belong to no op."""


def collective_ops(trace: Trace) -> Flags:
    """Return which of the trace's ops are collectives or wait for one, and a last False for `NO_OP`."""
    programs, of_op = trace.programs_of_ops()
    held = [program_proto(trace, *program) for program in programs]
    named = [None if proto is None else collective_names(proto) for proto in held]
    is_collective = np.zeros(len(trace.ops) + 1, np.bool_)
    for index, (op, program) in enumerate(zip(trace.ops, of_op.tolist(), strict=True)):
        names = named[program]
        is_collective[index] = op.name in names if names is not None else bool(_BY_NAME.match(op.name))
    return is_collective


def collective_names(held: ProgramProto) -> frozenset[str] | None:
    """Return the names of the module's instructions that are collectives; None if the module cannot be read."""
    if not _ANY.search(held.proto):
        return frozenset()  # the usual case, without reading the module
    try:
        computations = {
            computation.number(5): computation.messages(2) for computation in module_message(held.proto).messages(3)
        }
    except HloError:
        return None
    found: set[str] = set()
    for instructions in computations.values():
        names = {instruction.number(35): instruction.text(1) for instruction in instructions}
        for instruction in instructions:
            base = _base(instruction)
            # A send or receive that is a host transfer (field 47) goes to no other device.
            exchanging = base in _BETWEEN_DEVICES and not instruction.number(47)
            if base in ("async", "fusion"):
                inside = _opcodes_in(computations, instruction)
                exchanging = bool(inside & _BETWEEN_DEVICES) and not (base == "fusion" and inside & PRODUCTS)
            if base == "async":
                exchanging = exchanging or any(names.get(operand) in found for operand in instruction.numbers(36))
            if exchanging:
                found.add(instruction.text(1))
    return frozenset(found)


def _base(instruction: Message) -> str:
    return _HALF.sub("", instruction.text(2))


def _opcodes_in(computations: Mapping[int, list[Message]], caller: Message, depth: int = 0) -> set[str]:
    opcodes: set[str] = set()
    for number in caller.numbers(38) if depth < _DEEPEST else ():
        for instruction in computations.get(number, ()):
            opcodes |= {_base(instruction), *_opcodes_in(computations, instruction, depth + 1)}
    return opcodes


STEPS_KEPT = 4096
"""Most steps that are recorded one by one."""
_CLEARLY = 0.9
"""Share of the ops of every other step below which the first or last step is incomplete."""
_COPY_OP = re.compile(r"(copy|slice|dynamic-update-slice)-(start|done)\b|async-copy|(in|out)feed\b")


@frozen
class Steps:
    """All steps of a profile, and how they were found."""

    found_by: str
    """How the steps were found, as in `StepsMeasured.found_by`."""
    devices: list[StepsDevice]
    """Devices with their steps, as in `StepsMeasured.devices`."""
    rows: list[StepTimes]
    total: int
    """Number of all steps; the rows are the first of them."""
    outside_seconds: float
    """Device time outside all steps."""
    inside_seconds: float
    """Device time inside steps."""
    unlinked: dict[str, int]
    """Number of step annotations on each device whose work cannot be linked to them."""


@frozen
class _Activity:
    kernels: Coverage
    collectives: Coverage
    copies: Coverage
    holders: Coverage
    """While loops and other ops that contain ops: their time without the ops inside is the program's own."""
    executing: Coverage


def steps_of(trace: Trace) -> Steps:
    """Return the steps on every device that ran HLO ops."""
    per_device: list[StepsDevice] = []
    rows: list[StepTimes] = []
    unlinked: dict[str, int] = {}
    is_collective = collective_ops(trace)
    inside, busy_all = 0, 0
    span = trace.span_ps or (0, 0)
    devices = {lane.device: lane.device.rpartition(":") for lane in trace.op_lanes()}
    # By their numbers: `gpu:2` before `gpu:10`.
    for device in sorted(devices, key=lambda name: (devices[name][0], whole_number(devices[name][2]) or 0)):
        executing = executions_on(trace, device)
        annotations = annotations_in(trace)
        how, windows = _windows(trace, device, executing, annotations)
        if how != "annotation" and len(annotations.starts):
            unlinked[device] = len(annotations.starts)
        activity = _activity(trace, device, Coverage.over(executing), is_collective)
        busy = activity.kernels | activity.collectives | activity.copies | activity.holders
        busy_ps = busy.total
        busy_all += busy_ps
        per_device.append(
            StepsDevice(
                device=device,
                found_by=how,
                steps=len(windows.starts),
                span_seconds=(span[1] - span[0]) * PS,
                busy_seconds=busy_ps * PS,
                idle_seconds=(span[1] - span[0] - busy_ps) * PS,
                idle_causes=tuple(
                    idle_causes(trace, device, windows.starts, windows.ends, busy | activity.executing)
                    if how != "whole"
                    else ()
                ),
            )
        )
        op_starts = np.sort(np.concatenate([lane.starts for lane in trace.op_lanes() if lane.device == device]))
        in_device = _rows(device, windows, activity, busy, op_starts)
        if windows.open_end and len(in_device) == len(windows.starts) > 1:
            in_device[-1] = replace(in_device[-1], to_next=False)
        rows += in_device
        in_steps = Coverage.of(windows.starts, windows.ends)
        inside += int(busy.within(in_steps.starts, in_steps.ends).sum())
    how = per_device[0].found_by if per_device else ""
    total = sum(item.steps or 0 for item in per_device)
    return Steps(how, per_device, rows, total, (busy_all - inside) * PS, inside * PS, unlinked)


def _windows(trace: Trace, device: str, executions: list[Executions], annotations: Annotations) -> tuple[str, Windows]:
    """Return the device's own `Steps` line, else what the host's annotations launched, else executions; and which it
    was."""
    for lane in trace.on_device(device):
        if lane.kind == "steps" and len(lane):
            order = np.argsort(lane.starts, kind="stable")
            names = [f"step {lane.names[number]}" for number in lane.name_of[order].tolist()]
            return "annotation", Windows(lane.starts[order], lane.ends[order], names)
    annotated = steps_of_annotations(trace, device, annotations, executions)
    if annotated is not None:
        return "annotation", annotated
    if executions:
        longest = executions[0]
        # A step ends where the next one begins, so it includes what the host does between two calls.
        until = np.concatenate([longest.starts[1:], longest.ends[-1:]])
        names = [f"{longest.program[0]} {number}" for number in range(len(until))]
        return "modules", Windows(longest.starts, until, names, open_end=True)
    begin, end = span_of(lane for lane in trace.op_lanes() if lane.device == device) or (0, 0)
    return "whole", Windows(np.array([begin]), np.array([end]), ["whole profile"])


def _activity(trace: Trace, device: str, executing: Coverage, is_collective: Flags) -> _Activity:
    is_copy = np.array([bool(_COPY_OP.match(op.name)) for op in trace.ops] + [False], np.bool_)
    parts: dict[str, list[Spans]] = {"kernels": [], "collectives": [], "copies": [], "holders": []}
    for lane in trace.on_device(device):
        if lane.kind not in ("stream", "ops", "thread", "async"):
            continue
        collective, copy = is_collective[lane.op_of], is_copy[lane.op_of]  # NO_OP is the last element: False
        if lane.kind == "stream":
            collective = collective | lane.matching(KERNEL_OF_COLLECTIVE.match)
            copy = copy | (copies_of(lane) & (lane.op_of == NO_OP))
        holder = np.zeros(len(lane), np.bool_)
        if lane.kind in ("ops", "thread"):
            holder = holds_others(lane.starts, lane.durations)
        elif lane.kind == "async":
            copy = ~collective
        ends = lane.ends
        for name, rows in (
            ("holders", holder),
            ("collectives", collective & ~holder),
            ("copies", copy & ~collective & ~holder),
            ("kernels", ~(collective | copy | holder)),
        ):
            parts[name].append(Spans(lane.starts[rows], ends[rows]))
    return _Activity(**{name: Coverage.over(spans) for name, spans in parts.items()}, executing=executing)


def _rows(device: str, windows: Windows, activity: _Activity, busy: Coverage, op_starts: Ints) -> list[StepTimes]:
    starts, ends = windows.starts[:STEPS_KEPT], windows.ends[:STEPS_KEPT]

    with_collectives = activity.kernels | activity.collectives
    with_copies = with_collectives | activity.copies
    in_kernels, in_collectives, in_copies, in_busy, in_active = (
        coverage.within(starts, ends)
        for coverage in (activity.kernels, with_collectives, with_copies, busy, busy | activity.executing)
    )
    kernels = in_kernels + in_busy - in_copies
    exposed = in_collectives - in_kernels
    copies = in_copies - in_collectives
    gaps = in_active - in_busy
    idle = (ends - starts) - in_active
    overlapped = activity.collectives.within(starts, ends) - exposed
    # A profile that began, or ended, in the middle of a step has clearly fewer ops in it than in every other step.
    complete = np.ones(len(windows.starts), np.bool_)
    if len(complete) > 2:
        ops = np.searchsorted(op_starts, windows.ends) - np.searchsorted(op_starts, windows.starts)
        complete[[0, -1]] = ops[[0, -1]] >= _CLEARLY * ops[1:-1].min()
    return [
        StepTimes(
            name=windows.names[index],
            device=device,
            start_seconds=int(starts[index]) * PS,
            seconds=int(ends[index] - starts[index]) * PS,
            complete=bool(complete[index]),
            parts=StepParts(
                kernels=int(kernels[index]) * PS,
                transfers=int(copies[index]) * PS,
                collectives_exposed=int(exposed[index]) * PS,
                launch_gaps=int(gaps[index]) * PS,
                idle=int(idle[index]) * PS,
            ),
            collectives_overlapped_seconds=int(overlapped[index]) * PS,
        )
        for index in range(len(starts))
    ]
