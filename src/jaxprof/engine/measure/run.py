"""One run from its request to its last event, whatever happens in between.

It covers start-up, the memory that is needed, the inputs, the measurement, the check, and every way in which these can
end. numpy and jax are imported only after start-up has shown that they are installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

from jaxprof.base.errors import unknown_name
from jaxprof.base.files import read_source
from jaxprof.engine.measure.control import CapReached, Emit, Reporter, RunControl
from jaxprof.engine.measure.failure import conclude, is_out_of_memory
from jaxprof.engine.measure.sampling import MOST_SAMPLES, CallSampler, Execute, Plan, Trial, here
from jaxprof.engine.measure.startup import settle_allocator, start_jax, start_numpy
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import ESTIMATED_BY, CostReported, RunSpec, Scalar, SourcesRead, TextRecorded
from jaxprof.workloads.model import Variant, Workload


def measure_request(request: RunRequest, emit: Emit, control: RunControl, execute: Execute) -> None:
    """Find the workload of `request` and measure it. Emits one `RunFinished` at the end, and raises none of the run's
    errors.

    `execute` makes the timed calls and imports the user's module.
    """
    reporter = Reporter(emit, control)

    def work() -> None:
        from jaxprof.workloads.find import find

        settle_allocator()
        spec = request.spec
        if spec.trial:
            from jaxprof.engine.measure.trials import begin

            execute(partial(begin, spec.trial, spec.trial_at))
        workload = execute(partial(find, spec.target, spec.arguments, spec.argv, spec.inputs_from))
        variant = workload.variant(request.spec.variant)
        complete = replace(request, spec=replace(request.spec, parameters=_complete(workload, request.spec.parameters)))
        _start_and_measure(reporter, workload, variant, complete, execute)

    conclude(reporter, work, BaseException, request.spec.max_seconds)


def measure_workload(
    workload: Workload, variant: Variant, request: RunRequest, emit: Emit, control: RunControl | None = None
) -> None:
    """Measure a workload that the caller has, with the events of `measure_request`. The process may be the user's, so
    an interrupt is raised."""
    reporter = Reporter(emit, control or RunControl())
    conclude(
        reporter,
        lambda: _start_and_measure(reporter, workload, variant, request, here),
        max_seconds=request.spec.max_seconds,
    )


def _complete(workload: Workload, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return a run's parameters; those that a request does not set come from the first preset. Raises UsageError."""
    names = {parameter.name for parameter in workload.parameters}
    for name in given:
        if name not in names:
            raise unknown_name(f"parameter of {workload.name}", name, names)
    return {**next(iter(workload.presets.values()), {}), **given}


def _start_and_measure(
    reporter: Reporter, workload: Workload, variant: Variant, request: RunRequest, execute: Execute
) -> None:
    """Start JAX (or NumPy alone), measure, and report the load of the machine before and after."""
    device: Any = None
    beside: list[Any] = []
    if variant.how == "numpy":
        start_numpy(reporter)
    else:
        device = start_jax(reporter, request.spec.device)
        import jax

        beside = jax.local_devices(backend=device.client.platform)
    reporter.control.start_clock(request.spec.max_seconds)

    from jaxprof.engine.measure.environment import HostLoadMeter, load_average, read_environment

    load, environment = HostLoadMeter(), read_environment(beside)
    reporter.control.on_wait = load.wait
    reporter.emit(environment)
    try:
        _measure(reporter, CallSampler(reporter, execute=execute), workload, variant, request, device)
    finally:
        after = {"load_average_after": load_average(), "other_busy_cores": load.other_busy_cores()}
        reporter.emit(replace(environment, settings={**environment.settings, **after}))


def _measure(
    reporter: Reporter, sampler: CallSampler, workload: Workload, variant: Variant, request: RunRequest, device: Any
) -> None:
    """Report what is known without a call, make the inputs, time the variant, and check its result."""
    from jaxprof.engine.measure.check import check_result, make_inputs, precision_of_products
    from jaxprof.engine.measure.preflight import refuse_what_cannot_fit

    estimate = workload.estimate(request.spec.parameters)
    refuse_what_cannot_fit(reporter, variant, request, estimate, device)
    # XLA counts the cost of a program that it compiles as a whole; the workload estimates that of others.
    known = estimate.flops is not None or estimate.traffic_bytes is not None
    if known and variant.how != "jit" and not request.attribution:
        reporter.emit(CostReported(flops=estimate.flops, bytes_accessed=estimate.traffic_bytes, source=ESTIMATED_BY))
    if variant.source:
        reporter.emit(TextRecorded(name="source", text=variant.source, bytes=len(variant.source.encode())))
    file = request.spec.target.rpartition(":")[0]
    if digest := read_source(file)[1] if file.endswith(".py") else "":
        reporter.emit(SourcesRead.of({os.path.abspath(file): digest}))
    with reporter.phase("inputs"):
        inputs = make_inputs(workload, request.spec.parameters, request.spec.seed)
        arguments = variant.arguments(inputs)
    if request.attribution:
        from jaxprof.engine.measure.jax_run import attribute_jax

        attribute_jax(reporter, variant, request, arguments, device)
        return
    precision = words = ""
    elementwise = False
    if variant.how == "numpy":
        output = measure_numpy(reporter, sampler, variant, request, arguments)
    else:
        from jaxprof.engine.measure.jax_run import measure_jax

        try:
            outcome = measure_jax(reporter, sampler, variant, request, arguments, device)
        except Exception as error:
            is_alone = request.launch == 1 and not request.spec.side and sampler.is_own_process
            if variant.how == "jit" and is_alone and is_out_of_memory(error):
                with suppress(CapReached):  # memory is what the run ended by
                    _try_remedies(reporter, variant, request, arguments, device)
            raise
        output = outcome.output
        if request.spec.check and request.launch == 1:
            elementwise = outcome.elementwise()
            precision, words = precision_of_products(workload, variant, arguments, device, elementwise=elementwise)
    if request.keep_output and request.launch == 1:
        from jaxprof.engine.measure.kept_arrays import keep

        try:
            keep(request.keep_output, output)
        except (OSError, TypeError, ValueError) as error:
            reporter.warn("result_not_kept", error=str(error))
    if request.spec.check and request.launch == 1:
        check_result(
            reporter,
            workload,
            variant,
            request.spec.parameters,
            inputs,
            output,
            precision=precision or "float32",
            precision_in_words=words,
            elementwise=elementwise and not workload.noisy_answer,
        )


def inputs_of(spec: RunSpec) -> tuple[Any, ...]:
    """Return the arguments of a run of `spec`, on the host. Raises what the user's file raises."""
    from jaxprof.engine.measure.check import make_inputs
    from jaxprof.workloads.find import find
    from jaxprof.workloads.function import refuse_borrowed_misfit

    workload = find(spec.target, spec.arguments, spec.argv, spec.inputs_from)
    parameters, variant = _complete(workload, spec.parameters), workload.variant(spec.variant)
    arguments = variant.arguments(make_inputs(workload, parameters, spec.seed))
    refuse_borrowed_misfit(workload, variant, parameters, arguments)
    return arguments


def _try_remedies(reporter: Reporter, variant: Variant, request: RunRequest, arguments: Any, device: Any) -> None:
    from jaxprof.engine.measure.ahead_of_time import abstract
    from jaxprof.engine.measure.remedies import try_remedies
    from jaxprof.engine.measure.stages import compile_stages, settings

    compile_changed = partial(compile_stages, keep_constants=False)
    with settings(device, variant.precision, compilation_cache_on=False):
        try_remedies(reporter, variant.build(request.spec.parameters), abstract(arguments), compile_changed)


def measure_numpy(
    reporter: Reporter, sampler: CallSampler, variant: Variant, request: RunRequest, inputs: tuple[Any, ...]
) -> Any:
    """Measure `variant` on `inputs`; return the result of the warm-up call."""
    from jaxprof.engine.measure.preflight import warn_of_few_samples

    function = variant.build(request.spec.parameters)

    def loop(sets: Iterable[tuple[Any, ...]]) -> None:
        for arguments in sets:
            function(*arguments)

    kept: list[Any] = []
    with reporter.phase("run") as phase:
        first = sampler.take(Trial(prepare=lambda calls: inputs, make=lambda given: kept.append(function(*given))))
        warn_of_few_samples(reporter, request, first)
        plan = Plan(
            series="run",
            budget_seconds=request.steady_seconds,
            most_samples=MOST_SAMPLES,
            show_progress=True,
            in_turns=request.in_turns,
        )
        sampler.sample(Trial(prepare=lambda calls: repeat(inputs, calls), make=loop), plan, first)
        sampler.describe(phase)
    return kept[0]
