"""One JAX variant, from its inputs to its transfer out: compiled as one program, or op by op.

The steady run calls what users call, `jit(f)(*args)`, and waits at every call until the outputs are ready. Dispatch
(until the call returned) and pipelined calls (of which the last is awaited) are series of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import jax

from jaxprof.errors import JaxprofError
from jaxprof.events import BuffersReported, CompileObserved, MemoryReported
from jaxprof.measure import findings
from jaxprof.measure.compile_ledger import compile_ledger
from jaxprof.measure.devices import describe
from jaxprof.measure.forecast import available_host_bytes
from jaxprof.measure.recorder import Recorder
from jaxprof.measure.sampling import MOST_SAMPLES, Plan, Sampler, Trial
from jaxprof.measure.stages import Program, as_jitted, compile_stages, settings
from jaxprof.measure.transfer import Arguments, output_bytes, transfer_in, transfer_out
from jaxprof.units import bytes_
from jaxprof.workloads.model import Variant

if TYPE_CHECKING:
    from jaxprof.engine.request import RunRequest

SIDE_SHARE = 0.1
"""Of the budget, for dispatch and for pipelined calls each, and at most `SIDE_SECONDS`."""
SIDE_SECONDS = 0.5
PIPELINE_DEPTH = 16
_PIPELINE_MEMORY_SHARE = 0.1
"""Of the memory that is left: the most that the results of calls under way may take together."""


@dataclass(frozen=True, slots=True)
class Calls:
    """A function with its arguments, ready to be called again and again."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    fresh: Callable[[], tuple[Any, ...]] | None = None
    """Where a call consumes its arguments: makes new ones."""

    def sets(self, calls: int) -> Iterable[tuple[Any, ...]]:
        """The arguments of so many calls."""
        if self.fresh is None:
            return repeat(self.arguments, calls)
        return [self.fresh() for _ in range(calls)]


def run_jax(
    recorder: Recorder, sampler: Sampler, variant: Variant, request: RunRequest, host: tuple[Any, ...], device: Any
) -> Any:
    """Measures `variant` with the host inputs `host` on `device`; gives the first call's result."""
    function = variant.build(request.parameters)
    for warning in findings.narrowed_inputs(host):
        recorder.emit(warning)
    with settings(device, variant.precision, compilation_cache_on=request.compilation_cache):
        return _measure(recorder, sampler, variant, request, function, host, device)


def attribute_jax(
    recorder: Recorder, variant: Variant, request: RunRequest, host: tuple[Any, ...], device: Any
) -> None:
    """A capture of the same calls and nothing else, of kind `attribution`. The caller's process has the flags for it.

    Neither compile nor calls are a headline: the program may be another one than the default's.
    """
    from jaxprof.measure.capture import capture_run

    function = as_jitted(variant.build(request.parameters))
    arguments = Arguments.of(host)
    with settings(device, variant.precision, compilation_cache_on=request.compilation_cache):
        placed = arguments.fresh(device) if variant.inputs == "device" else host
        donates = bool(function.lower(*placed).donate_argnums)
        calls = Calls(function, placed, (lambda: arguments.fresh(device)) if donates else None)
        for _ in range(2):  # the first one compiles
            (given,) = calls.sets(1)
            began = time.perf_counter()
            jax.block_until_ready(function(*given))
            call_seconds = time.perf_counter() - began

        def call() -> None:
            (given,) = calls.sets(1)
            jax.block_until_ready(function(*given))

        capture_run(recorder, call, call_seconds, kind="attribution")


def _measure(
    recorder: Recorder,
    sampler: Sampler,
    variant: Variant,
    request: RunRequest,
    function: Callable[..., Any],
    host: tuple[Any, ...],
    device: Any,
) -> Any:
    arguments = Arguments.of(host)
    if variant.inputs == "device":
        placed = transfer_in(recorder, sampler, arguments, device, request.budget_seconds)
    else:
        placed = host
    program: Program | None = None
    if variant.how == "jit":
        program = compile_stages(recorder, function, placed, keep_constants=request.keep_constants)
        for warning in findings.program_findings(program):
            recorder.emit(warning)
        _refuse_what_does_not_fit(recorder, program, device)
        fresh = (lambda: arguments.fresh(device)) if program.donates else None
        calls = Calls(program.jitted, placed, fresh)
        output, first_seconds = _first_run(recorder, calls)
    else:
        calls = Calls(function, placed)
        output, first_seconds = _first_run_op_by_op(recorder, calls)
    call_seconds = _steady(recorder, sampler, calls, output, request.budget_seconds, first_seconds)
    _report_memory(recorder, program, device)
    transfer_out(recorder, sampler, output, request.budget_seconds)
    for warning in findings.zero_copies(recorder.shared_transfers):
        recorder.emit(warning)
    if request.capture:
        _capture(recorder, calls, program, call_seconds, request.keep_trace)
    return output


def _capture(recorder: Recorder, calls: Calls, program: Program | None, call_seconds: float, keep: str) -> None:
    """The passes under the profiler: some more calls, and of a compiled program one more cold compile."""
    from jaxprof.measure.capture import capture_compile, capture_run

    def call() -> None:
        (arguments,) = calls.sets(1)
        jax.block_until_ready(calls.function(*arguments))

    capture_run(recorder, call, call_seconds, keep=keep)
    if program is not None:
        stages: Any = program.jitted
        capture_compile(recorder, lambda: stages.trace(*calls.arguments).lower().compile(), program.compile_seconds)


def _first_run(recorder: Recorder, calls: Calls) -> tuple[Any, float]:
    (arguments,) = calls.sets(1)
    with compile_ledger() as ledger, recorder.phase("first_run") as phase:
        began = time.perf_counter()
        output = jax.block_until_ready(calls.function(*arguments))
        phase.seconds = time.perf_counter() - began
    for warning in findings.recompiled(ledger, "at the first call, although the program was compiled before"):
        recorder.emit(warning)
    return output, phase.seconds or 0.0


def _first_run_op_by_op(recorder: Recorder, calls: Calls) -> tuple[Any, float]:
    """The first call, split by what JAX announced of its compilations; what is left is the run."""
    with compile_ledger() as ledger, recorder.phase("first_run") as phase:
        began = time.perf_counter()
        output = jax.block_until_ready(calls.function(*calls.arguments))
        whole = time.perf_counter() - began
        stages = ledger.seconds_by_stage()
        phase.seconds = max(0.0, whole - sum(stages.values()))
        for stage in ("trace", "lower", "compile"):
            if stage in stages:
                recorder.ended(stage, stages[stage])
        phase.note = "the first call, without its compilations"
    for span in ledger.spans:
        recorder.emit(CompileObserved(function=span.function, stage=span.stage, seconds=span.seconds))
    return output, phase.seconds


def _steady(
    recorder: Recorder, sampler: Sampler, calls: Calls, output: Any, budget_seconds: float, first_seconds: float
) -> float:
    """The steady run, then the two side series; gives the seconds of a call."""
    blocked = Trial(prepare=calls.sets, make=_blocked_loop(calls.function, output))
    plan = Plan(
        series="run",
        budget_seconds=budget_seconds,
        most_samples=MOST_SAMPLES,
        show_progress=True,
        calls_per_sample=None if calls.fresh is None else 1,
    )
    with compile_ledger() as ledger:
        with recorder.phase("run"):
            samples = sampler.sample(blocked, plan, first_seconds)
        call_seconds = sorted(samples)[len(samples) // 2]
        side = min(SIDE_SECONDS, SIDE_SHARE * budget_seconds)
        if call_seconds < side:
            with recorder.phase("dispatch"):
                plan = Plan(series="dispatch", budget_seconds=side, calls_per_sample=1)
                sampler.sample(_dispatch_trial(calls), plan, call_seconds)
        if PIPELINE_DEPTH * call_seconds < side and calls.fresh is None and _pipeline_fits(output):
            with recorder.phase("pipelined"):
                plan = replace(plan, series="pipelined", calls_per_sample=PIPELINE_DEPTH)
                sampler.sample(_pipelined_trial(calls), plan, call_seconds)
    for warning in findings.recompiled(ledger, "during the steady run"):
        recorder.emit(warning)
    return call_seconds


def _blocked_loop(function: Callable[..., Any], output: Any) -> Callable[[Iterable[tuple[Any, ...]]], None]:
    """Calls that are each waited for. The method of a single array is several times cheaper than walking a tree."""
    if isinstance(output, jax.Array):

        def loop(sets: Iterable[tuple[Any, ...]]) -> None:
            for arguments in sets:
                function(*arguments).block_until_ready()

        return loop
    wait: Callable[[Any], Any] = jax.block_until_ready

    def loop_over_trees(sets: Iterable[tuple[Any, ...]]) -> None:
        for arguments in sets:
            wait(function(*arguments))

    return loop_over_trees


def _dispatch_trial(calls: Calls) -> Trial:
    """The time until a call returned; its result is awaited after the clock has stopped."""
    kept: list[Any] = []
    function = calls.function

    def dispatch(sets: Iterable[tuple[Any, ...]]) -> None:
        kept.extend(function(*arguments) for arguments in sets)

    def clear() -> None:
        jax.block_until_ready(kept)
        kept.clear()

    return Trial(prepare=calls.sets, make=dispatch, clear=clear)


def _pipelined_trial(calls: Calls) -> Trial:
    """Calls one after the other without waiting, but for the last one. Results are dropped as the next ones come."""
    function = calls.function
    wait: Callable[[Any], Any] = jax.block_until_ready

    def pipelined(sets: Iterable[tuple[Any, ...]]) -> None:
        result = None
        for arguments in sets:
            result = function(*arguments)
        wait(result)

    return Trial(prepare=calls.sets, make=pipelined)


def _pipeline_fits(output: Any) -> bool:
    wanted = PIPELINE_DEPTH * output_bytes(output)
    device = next((leaf.device for leaf in jax.tree.leaves(output) if isinstance(leaf, jax.Array)), None)
    free = _free_bytes(device)
    return free is None or wanted <= _PIPELINE_MEMORY_SHARE * free


def _refuse_what_does_not_fit(recorder: Recorder, program: Program, device: Any) -> None:
    """Raises JaxprofError where XLA says that the program needs more memory than there is; tells how much that is."""
    memory, free = program.memory, _free_bytes(device)
    if memory is None or free is None:
        return
    needed = (memory.output_bytes or 0) + (memory.temporary_bytes or 0) - (memory.alias_bytes or 0)
    if needed > free:
        known = program.buffers or BuffersReported(source="memory analysis")
        recorder.emit(replace(known, asked_bytes=needed))
        raise JaxprofError(
            f"not run: the compiled program needs {bytes_(needed)} for its results and intermediates, "
            f"{bytes_(free)} are free",
            "Choose a smaller size, or free memory.",
        )


def _free_bytes(device: Any) -> int | None:
    """Memory that programs on `device` may still take; None where it is unknown."""
    if device is None or getattr(device, "platform", "cpu") == "cpu":
        return available_host_bytes()
    described = describe(device)
    limit, used = described["memory_limit_bytes"], described["memory_in_use_bytes"]
    return None if limit is None else int(limit) - int(used or 0)


def _report_memory(recorder: Recorder, program: Program | None, device: Any) -> None:
    """The allocator's peak, beside XLA's own figures; nothing where the allocator keeps no count (CPU)."""
    described = describe(device)
    peak, limit = described["memory_peak_bytes"], described["memory_limit_bytes"]
    if peak is None and limit is None:
        return
    known = program.memory if program is not None and program.memory is not None else MemoryReported()
    recorder.emit(replace(known, allocator_peak_bytes=peak, allocator_limit_bytes=limit))
