"""One JAX variant, from its inputs to its transfer out: compiled as one program, or op by op.

The steady run calls what users call, `jit(f)(*args)`, and waits at every call until the outputs are ready. Dispatch
(the time until a call returns) and pipelined calls (only the last is awaited) are separate series.

A figure includes as little as possible of the waiting itself. Walking a tree of results costs 0.6 µs more than the
method of one array, and 0.13 µs for each array in it (measured with arrays that were ready): `(y,)` would appear slower
than `y`, and sixty results some percent slower than they are. The results of one compiled program become ready
together, so one of them is awaited; `is_ready` of the others verifies that on calls that are not timed. Results
computed op by op come from several programs, so all of them are awaited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial, reduce
from itertools import repeat
from operator import getitem
from typing import Any

import jax

from jaxprof.base.errors import DoesNotFitError
from jaxprof.base.units import bytes_
from jaxprof.base.values import frozen
from jaxprof.engine.measure import pitfalls
from jaxprof.engine.measure.control import Reporter
from jaxprof.engine.measure.jax_devices import describe
from jaxprof.engine.measure.preflight import available_host_bytes, warn_of_few_samples
from jaxprof.engine.measure.sampling import MOST_SAMPLES, CallSampler, Plan, Trial
from jaxprof.engine.measure.stages import StagedProgram, compile_ledger, compile_stages, settings
from jaxprof.engine.measure.static_leaves import as_jitted
from jaxprof.engine.measure.transfer import Arguments, address, output_bytes, passes_through, transfer_in, transfer_out
from jaxprof.engine.measure.trials import active as active_trial
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import BuffersReported, CompileObserved, MemoryReported, PhaseEnded
from jaxprof.workloads.model import Variant

Loop = Callable[[Iterable[tuple[Any, ...]]], None]
"""Makes calls with these sets of arguments, and waits at each of them."""
CHECKED_CALLS = 3  # in one call all may be ready together by chance


def waiting_loop(
    function: Callable[..., Any], output: Any, arguments: tuple[Any, ...], *, one_program: bool, may_call: bool
) -> Loop:
    """Return the loop for `function`, whose result has the form of `output`.

    `one_program`: the result comes from one compiled program. `may_call=False` if the verification must not make calls:
    for calls that consume their arguments, and for long ones, in which the waiting is negligible.
    """

    def one_array(sets: Iterable[tuple[Any, ...]]) -> None:
        for arguments in sets:
            function(*arguments).block_until_ready()

    def few_arrays(sets: Iterable[tuple[Any, ...]]) -> None:
        for arguments in sets:
            for result in function(*arguments):
                result.block_until_ready()

    wait: Callable[[Any], Any] = jax.block_until_ready

    def tree(sets: Iterable[tuple[Any, ...]]) -> None:
        for arguments in sets:
            wait(function(*arguments))

    if isinstance(output, jax.Array):
        return one_array
    if one_program and may_call:
        way = _way_to_one(output, {address(leaf) for leaf in jax.tree.leaves(arguments)})
        if way and _become_ready_together(function, arguments, way):
            first, *rest = way

            def loop(sets: Iterable[tuple[Any, ...]]) -> None:
                for arguments in sets:
                    function(*arguments)[first].block_until_ready()

            def loop_deeper(sets: Iterable[tuple[Any, ...]]) -> None:
                for arguments in sets:
                    result = function(*arguments)[first]
                    for key in rest:
                        result = result[key]
                    result.block_until_ready()

            return loop_deeper if rest else loop
    # Up to four arrays, calling the method of each costs less than walking a tree.
    if (
        isinstance(output, (tuple, list))
        and len(output) <= 4
        and all(isinstance(result, jax.Array) for result in output)
    ):
        return few_arrays
    return tree


def _way_to_one(output: Any, given: set[int | None]) -> tuple[Any, ...]:
    """Return indices and keys to the last array that is not an argument passed through; empty if there is none, or if
    a container of an unknown kind holds it."""
    if isinstance(output, dict):
        branches: list[tuple[Any, Any]] = list(output.items())
    elif isinstance(output, (tuple, list)):
        branches = list(enumerate(output))
    else:
        return ()
    for key, branch in reversed(branches):
        if isinstance(branch, jax.Array):
            at = address(branch)
            if at is not None and at not in given:
                return (key,)
        elif way := _way_to_one(branch, given):
            return (key, *way)
    return ()


def _become_ready_together(function: Callable[..., Any], arguments: tuple[Any, ...], way: tuple[Any, ...]) -> bool:
    for _ in range(CHECKED_CALLS):
        output = function(*arguments)
        reduce(getitem, way, output).block_until_ready()
        arrays: list[Any] = [leaf for leaf in jax.tree.leaves(output) if isinstance(leaf, jax.Array)]
        # A random key does not say whether it is ready, so whatever comes with one is awaited whole.
        together = all(hasattr(array, "is_ready") and array.is_ready() for array in arrays)
        jax.block_until_ready(output)
        if not together:
            return False
    return True


SIDE_SHARE = 0.1
"""Share of the budget for dispatch and for pipelined calls each, at most `SIDE_SECONDS`."""
SIDE_SECONDS = 0.5
PIPELINE_DEPTH = 16
SHORT_SECONDS = 0.05
"""A first call shorter than this is repeated a few times to find the cheapest way of waiting for it."""
_PIPELINE_MEMORY_SHARE = 0.1
"""Share of the free memory that the results of unfinished calls may take together."""


@frozen
class Calls:
    """A function with its arguments, ready to be called repeatedly."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    fresh: Callable[[], tuple[Any, ...]] | None = None
    """Makes new arguments, if a call consumes them; else None."""

    def sets(self, calls: int) -> Iterable[tuple[Any, ...]]:
        """Return the arguments for this many calls."""
        if self.fresh is None:
            return repeat(self.arguments, calls)
        return [self.fresh() for _ in range(calls)]

    def once(self) -> None:
        """Make one call, and wait for its result."""
        (arguments,) = self.sets(1)
        jax.block_until_ready(self.function(*arguments))


@frozen
class RunOutput:
    """What a run passes to its check."""

    output: Any
    """Result of the first call."""
    elementwise: Callable[[], bool]
    """Returns whether no number of the result depends on a sum over others; called once the timing is over."""


def measure_jax(
    reporter: Reporter, sampler: CallSampler, variant: Variant, request: RunRequest, host: tuple[Any, ...], device: Any
) -> RunOutput:
    trial = active_trial()
    function = variant.build(request.spec.parameters)
    for warning in pitfalls.dtype_warnings(host):
        reporter.emit(warning)
    with settings(device, variant.precision, compilation_cache_on=request.spec.compilation_cache):
        arguments = Arguments.of(host)
        if variant.inputs == "device":
            budget = request.spec.timing_seconds if _has_side_series(request) else 0.0
            placed = transfer_in(reporter, sampler, arguments, device, budget)
        else:
            placed = host
        program: StagedProgram | None = None
        if variant.how == "jit":
            function = function if trial is None else trial.donating(function, placed)
            program = compile_stages(reporter, function, placed, keep_constants=request.spec.keep_constants)
            for warning in pitfalls.of_program(program):
                reporter.emit(warning)
            _refuse_what_does_not_fit(reporter, program, device)
            fresh = (lambda: arguments.fresh(device)) if program.donates else None
            calls = Calls(program.jitted, placed, fresh)
        else:
            calls = Calls(function, placed)
        output, first_seconds = _first_run(reporter, calls, compiled=program is not None)
        if trial is not None:
            reporter.emit(trial.report_reach())
        shared = calls.fresh is None and passes_through(calls.arguments, output)
        call_seconds = _steady(
            reporter,
            sampler,
            calls,
            output,
            request,
            first_seconds,
            compiled=program is not None,
            moves_nothing=shared,
        )
        if request.launch == 1:
            _report_memory(reporter, program, device)
            if _has_side_series(request):
                transfer_out(reporter, sampler, output, request.spec.timing_seconds)
            for warning in pitfalls.zero_copies(reporter.shared_transfers, calls=shared):
                reporter.emit(warning)
            if request.spec.capture:
                _capture(reporter, calls, program, call_seconds)
        if program is not None:
            return RunOutput(output, partial(pitfalls.is_elementwise, program.jaxpr))
        return RunOutput(output, partial(pitfalls.traced_is_elementwise, function, calls.arguments))


def attribute_jax(
    reporter: Reporter, variant: Variant, request: RunRequest, host: tuple[Any, ...], device: Any
) -> None:
    """Capture the same calls and nothing else, as kind `attribution`, in a process started with the flags for it.

    Neither the compile nor the calls are a headline: the program may differ from the default one.
    """
    from jaxprof.engine.measure.capture import capture_run

    arguments = Arguments.of(host)
    with settings(device, variant.precision, compilation_cache_on=request.spec.compilation_cache):
        placed = arguments.fresh(device) if variant.inputs == "device" else host
        function = as_jitted(variant.build(request.spec.parameters), placed)
        lowered = function.lower(*placed)
        donates = bool(getattr(lowered, "lowered", lowered).donate_argnums)
        calls = Calls(function, placed, (lambda: arguments.fresh(device)) if donates else None)
        for _ in range(2):  # the first one compiles
            began = time.perf_counter()
            calls.once()
            call_seconds = time.perf_counter() - began
        capture_run(reporter, calls.once, call_seconds, kind="attribution")


def _capture(reporter: Reporter, calls: Calls, program: StagedProgram | None, call_seconds: float) -> None:
    """Capture under the profiler: some more calls, and for a compiled program one more cold compile."""
    from jaxprof.engine.measure.capture import capture_compile, capture_run

    capture_run(reporter, calls.once, call_seconds)
    if program is not None:
        stages: Any = program.jitted
        capture_compile(reporter, lambda: stages.lower(*calls.arguments).compile(), program.compile_seconds)


def _first_run(reporter: Reporter, calls: Calls, *, compiled: bool) -> tuple[Any, float]:
    """Make the first call; return its result and its seconds. Op by op, the compilations that JAX announces are phases
    of their own, and the rest is the run."""
    (arguments,) = calls.sets(1)
    with compile_ledger() as ledger, reporter.phase("first_run") as phase:
        began = time.perf_counter()
        output = jax.block_until_ready(calls.function(*arguments))
        seconds = phase.seconds = time.perf_counter() - began
        if not compiled:
            stages = ledger.seconds_by_stage()
            seconds = phase.seconds = max(0.0, seconds - sum(stages.values()))
            for stage in ("trace", "lower", "compile"):
                if stage in stages:
                    reporter.emit(PhaseEnded(phase=stage, seconds=stages[stage]))
            phase.note = "first call, compilations excluded"
    if compiled:
        for warning in pitfalls.recompile_warnings(ledger, "first_call"):
            reporter.emit(warning)
    else:
        for span in ledger.spans:
            reporter.emit(CompileObserved(function=span.function, stage=span.stage, seconds=span.seconds))
    return output, seconds


def _steady(
    reporter: Reporter,
    sampler: CallSampler,
    calls: Calls,
    output: Any,
    request: RunRequest,
    first_seconds: float,
    *,
    compiled: bool,
    moves_nothing: bool,
) -> float:
    """Sample the steady run, and in the first launch the two side series; return the seconds of a call."""
    warn_of_few_samples(reporter, request, first_seconds)
    short = first_seconds < SHORT_SECONDS
    loop = waiting_loop(
        calls.function, output, calls.arguments, one_program=compiled, may_call=short and calls.fresh is None
    )
    blocked = Trial(prepare=calls.sets, make=loop)
    plan = Plan(
        series="run",
        budget_seconds=request.steady_seconds,
        most_samples=MOST_SAMPLES,
        show_progress=True,
        calls_per_sample=None if calls.fresh is None else 1,
        in_turns=request.in_turns,
    )
    with compile_ledger() as ledger:
        with reporter.phase("run") as phase:
            phase.zero_copy = moves_nothing
            samples = sampler.sample(blocked, plan, first_seconds)
            sampler.describe(phase)
        call_seconds = sorted(samples)[len(samples) // 2] if samples else first_seconds
        side = min(SIDE_SECONDS, SIDE_SHARE * request.spec.timing_seconds) if _has_side_series(request) else 0.0
        # Pipelined calls come first because they keep all threads busy. Once a process has paused for 0.1 s, each later
        # dispatch takes 28 µs instead of 18 (conv2d, two virtual cores); after pipelined calls it takes 18 µs again, as
        # in a loop by hand.
        if PIPELINE_DEPTH * call_seconds < side and calls.fresh is None and _pipeline_fits(output):
            with reporter.phase("pipelined"):
                plan = Plan(series="pipelined", budget_seconds=side, calls_per_sample=PIPELINE_DEPTH)
                sampler.sample(_pipeline_trial(calls), plan, call_seconds)
        if call_seconds < side:
            with reporter.phase("dispatch"):
                plan = Plan(series="dispatch", budget_seconds=side, calls_per_sample=1)
                dispatches = _dispatch_trial(calls)
                sampler.sample(dispatches, plan, call_seconds)
                dispatches.prepare(0)  # awaits the last call
    for warning in pitfalls.recompile_warnings(ledger, "steady_run"):
        reporter.emit(warning)
    return call_seconds


def _has_side_series(request: RunRequest) -> bool:
    """Whether dispatch, pipelined calls and copies are sampled: in the first launch, and for no comparison."""
    return request.launch == 1 and not request.spec.side


def _dispatch_trial(calls: Calls) -> Trial:
    """Return the trial for the time until a call returns. Each result is awaited right before the clock of the next
    call starts: XLA's threads go to sleep within a microsecond, and waking them costs a quarter of a dispatch of
    10 µs."""
    kept: list[Any] = []
    function, keep = calls.function, kept.append
    wait: Callable[[Any], Any] = jax.block_until_ready

    def prepare(count: int) -> Iterable[tuple[Any, ...]]:
        sets = calls.sets(count)
        wait(kept)
        kept.clear()
        return sets

    def dispatch(sets: Iterable[tuple[Any, ...]]) -> None:
        for arguments in sets:  # `extend` with a generator took 1 µs more, of 8 for a call
            keep(function(*arguments))

    return Trial(prepare=prepare, make=dispatch)


def _pipeline_trial(calls: Calls) -> Trial:
    """Return the trial for calls in a row; only the last one is awaited. Later results replace earlier ones."""
    function = calls.function
    wait: Callable[[Any], Any] = jax.block_until_ready

    def await_last(sets: Iterable[tuple[Any, ...]]) -> None:
        result = None
        for arguments in sets:
            result = function(*arguments)
        wait(result)

    return Trial(prepare=calls.sets, make=await_last)


def _pipeline_fits(output: Any) -> bool:
    wanted = PIPELINE_DEPTH * output_bytes(output)
    device = next((leaf.device for leaf in jax.tree.leaves(output) if isinstance(leaf, jax.Array)), None)
    free = _free_bytes(device)
    return free is None or wanted <= _PIPELINE_MEMORY_SHARE * free


def _refuse_what_does_not_fit(reporter: Reporter, program: StagedProgram, device: Any) -> None:
    """Raise DoesNotFitError if XLA reports that the program needs more memory than is free; report how much."""
    memory, free = program.memory, _free_bytes(device)
    if memory is None or free is None:
        return
    needed = (memory.output_bytes or 0) + (memory.temporary_bytes or 0) - (memory.alias_bytes or 0)
    if needed > free:
        buffers = program.buffers or BuffersReported(source="memory analysis")
        reporter.emit(replace(buffers, asked_bytes=needed, free_bytes=free))
        raise DoesNotFitError(
            f"not run: the compiled program needs {bytes_(needed)} for its results and intermediates, but "
            f"only {bytes_(free)} is free",
            "Choose a smaller size, or free memory.",
        )


def _free_bytes(device: Any) -> int | None:
    if device is None or getattr(device, "platform", "cpu") == "cpu":
        return available_host_bytes()
    described = describe(device)
    limit, used = described["memory_limit_bytes"], described["memory_in_use_bytes"]
    return None if limit is None else int(limit) - int(used or 0)


def _report_memory(reporter: Reporter, program: StagedProgram | None, device: Any) -> None:
    """Report the allocator's peak with XLA's own figures; nothing if the allocator keeps no count (CPU)."""
    described = describe(device)
    peak, limit = described["memory_peak_bytes"], described["memory_limit_bytes"]
    if peak is None and limit is None:
        return
    memory = program.memory if program is not None and program.memory is not None else MemoryReported()
    reporter.emit(replace(memory, allocator_peak_bytes=peak, allocator_limit_bytes=limit))
