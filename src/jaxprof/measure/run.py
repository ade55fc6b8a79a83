"""One run from its request to its last word, whatever happens in between.

Start-up, what is said beforehand, inputs, the measuring itself, the check; and every way in which that can end.
Imports of numpy and jax come after start-up has shown that they are there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxprof.errors import JaxprofError, unknown_name
from jaxprof.events import BuffersReported, CostReported, RunFinished, TextRecorded
from jaxprof.measure.control import Cancelled, CapReached, RunControl
from jaxprof.measure.failure import explain
from jaxprof.measure.recorder import Emit, Recorder
from jaxprof.measure.sampling import Execute, Sampler, here
from jaxprof.measure.startup import start_jax, start_numpy
from jaxprof.units import bytes_, seconds
from jaxprof.workloads.model import Estimate, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxprof.engine.request import RunRequest
    from jaxprof.events import EnvironmentRead, Scalar
    from jaxprof.measure.environment import HostLoad

ESTIMATED_BY = "workload's own estimate"
"""The source of a cost that XLA has not counted."""


def measure_request(
    request: RunRequest, emit: Emit, control: RunControl | None = None, execute: Execute = here
) -> None:
    """Finds what `request` names and measures it. Ends with one `RunFinished`, and raises nothing of the run's.

    `execute` is where timed calls are made, and where a user's module is imported.
    """
    control = control or RunControl()

    def work(recorder: Recorder) -> None:
        from jaxprof.workloads.find import find

        workload = execute(partial(find, request.workload, request.arguments))
        variant = workload.variant(request.variant)
        complete = replace(request, parameters=_complete(workload, request.parameters))
        _run(recorder, workload, variant, complete, execute)

    _conclude(Recorder(emit, control), request, work)


def measure_workload(
    workload: Workload, variant: Variant, request: RunRequest, emit: Emit, control: RunControl | None = None
) -> None:
    """As `measure_request`, for a declaration that is at hand: also in a process that is somebody else's."""
    _conclude(
        Recorder(emit, control or RunControl()),
        request,
        lambda recorder: _run(recorder, workload, variant, request, here),
    )


def _complete(workload: Workload, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The parameters of a run: those of the first preset where a request does not say. Raises UsageError."""
    known = {parameter.name for parameter in workload.parameters}
    for name in given:
        if name not in known:
            raise unknown_name(f"parameter of {workload.name}", name, known)
    first = next(iter(workload.presets.values()), {})
    return {**first, **given}


def _conclude(recorder: Recorder, request: RunRequest, work: Any) -> None:
    """Does `work`, and turns however it ends into the run's last event."""
    try:
        work(recorder)
        recorder.emit(RunFinished(status="ok"))
    except Cancelled:
        recorder.emit(RunFinished(status="cancelled", error=_where("cancelled", recorder)))
    except CapReached:
        _capped(recorder, request)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the measured function raises is the run's result
        failure = explain(error)
        recorder.emit(
            RunFinished(status="failed", error=failure.error, advice=failure.advice, traceback=failure.traceback)
        )
    finally:
        recorder.control.stop_clock()


def _capped(recorder: Recorder, request: RunRequest) -> None:
    """The hard cap was met: with samples there is a result, only not all of it."""
    text = f"stopped at the hard cap of {seconds(request.max_seconds)}"
    advice = "Give a larger --max-seconds, or choose a smaller size."
    if recorder.samples:
        recorder.warn("max_seconds_reached", _where(text, recorder) + ": what follows was not measured", advice)
        recorder.emit(RunFinished(status="ok"))
    else:
        recorder.emit(RunFinished(status="failed", error=_where(text, recorder), advice=advice))


def _where(text: str, recorder: Recorder) -> str:
    return f"{text} in phase {recorder.current_phase}" if recorder.current_phase else text


def _run(recorder: Recorder, workload: Workload, variant: Variant, request: RunRequest, execute: Execute) -> None:
    device: Any = None
    if variant.how == "numpy":
        start_numpy(recorder)
    else:
        device = start_jax(recorder, request.device)
    recorder.control.start_clock(request.max_seconds)

    from jaxprof.measure.environment import HostLoad

    before, environment = HostLoad.now(), _environment(device)
    recorder.emit(environment)
    try:
        _measured(recorder, Sampler(recorder, execute=execute), workload, variant, request, device)
    finally:
        recorder.emit(_with_load(environment, before))


def _measured(
    recorder: Recorder, sampler: Sampler, workload: Workload, variant: Variant, request: RunRequest, device: Any
) -> None:
    from jaxprof.measure.host_arrays import make_inputs

    estimate = workload.estimate(request.parameters)
    expected_seconds = _foretell(recorder, workload, variant, request, estimate, device)
    if variant.how != "jit" and not request.attribution:
        _report_estimate(recorder, estimate)
    if variant.source:
        recorder.emit(TextRecorded(name="source", text=variant.source, bytes=len(variant.source.encode())))
    with recorder.phase("inputs"):
        inputs = make_inputs(workload, request.parameters, request.seed)
        arguments = variant.arguments(inputs)
    if request.attribution:
        from jaxprof.measure.jax_run import attribute_jax

        attribute_jax(recorder, variant, request, arguments, device)
        return
    precision = words = ""
    if variant.how == "numpy":
        from jaxprof.measure.numpy_run import run_numpy

        output = run_numpy(recorder, sampler, variant, request, arguments)
    else:
        from jaxprof.measure.jax_run import run_jax

        output = run_jax(recorder, sampler, variant, request, arguments, device)
        precision, words = _precision(workload, variant, arguments, device)
    if request.check:
        from jaxprof.measure.check import check_result

        check_result(
            recorder,
            workload,
            variant,
            request.parameters,
            inputs,
            output,
            precision=precision or "float32",
            precision_in_words=words,
            twin_seconds=expected_seconds,
        )


def _report_estimate(recorder: Recorder, estimate: Estimate) -> None:
    """The cost of a variant that XLA does not compile whole, and so does not count: that of the definition."""
    if estimate.flops is not None or estimate.traffic_bytes is not None:
        recorder.emit(CostReported(flops=estimate.flops, bytes_accessed=estimate.traffic_bytes, source=ESTIMATED_BY))


def _foretell(
    recorder: Recorder, workload: Workload, variant: Variant, request: RunRequest, estimate: Estimate, device: Any
) -> float | None:
    """Says what does not fit (raising JaxprofError) or takes long; gives the least time of a call on the host."""
    from jaxprof.measure.forecast import available_host_bytes, expected_call_seconds

    # What a compiled program keeps alive is known only after its compile: till then the least, inputs and outputs.
    needed = estimate.traffic_bytes if variant.how == "jit" else estimate.memory_bytes
    on_host = device is None or device.platform == "cpu"
    if on_host:
        place, free = "this machine", available_host_bytes()
    else:
        from jaxprof.measure.devices import describe

        place, free = request.device, describe(device)["memory_limit_bytes"]
    if needed is not None and free is not None and needed > free:
        recorder.emit(BuffersReported(source="request", asked_bytes=int(needed)))
        raise JaxprofError(
            f"not run: one call needs about {bytes_(needed)}, {place} has {bytes_(free)}",
            "Choose a smaller size: --set, or another --preset.",
        )
    least = expected_call_seconds(estimate, has_dots=workload.has_dots)
    if on_host and least is not None and least > request.budget_seconds:
        recorder.warn(
            "over_budget",
            f"one call is expected to take at least {seconds(least)}, more than the budget of "
            f"{seconds(request.budget_seconds)}: one warm-up and three timed calls",
            "A smaller size, or a larger --budget, gives more samples; --max-seconds is the hard cap.",
        )
    return least


def _precision(workload: Workload, variant: Variant, arguments: tuple[Any, ...], device: Any) -> tuple[str, str]:
    """The effective precision of the products, as a tolerance's name and in words; empty where there are none."""
    if not workload.has_dots:
        return "", ""
    import jax

    from jaxprof.measure.precision import effective_precision, in_words, tolerance_key
    from jaxprof.measure.stages import configured
    from jaxprof.workloads.check import is_key

    dtypes = {
        str(jax.dtypes.canonicalize_dtype(leaf.dtype))
        for leaf in jax.tree.leaves(arguments)
        if hasattr(leaf, "dtype") and not is_key(leaf)
    }
    asked = variant.precision or str(configured("jax_default_matmul_precision") or "")
    found = effective_precision(device, asked, dtypes)
    return tolerance_key(found), in_words(found, str(device.platform))


def _environment(device: Any) -> EnvironmentRead:
    from jaxprof.measure.environment import load_average, read_environment

    devices: list[dict[str, Any]] = []
    if device is not None:
        import jax

        from jaxprof.measure.devices import describe

        devices = [describe(found) for found in jax.local_devices(backend=device.client.platform)]
    return read_environment(devices, load_average())


def _with_load(environment: EnvironmentRead, before: HostLoad) -> EnvironmentRead:
    """The environment again, with what the machine did meanwhile."""
    from jaxprof.measure.environment import HostLoad, load_average

    after = {"load_average_after": load_average(), "other_busy_cores": before.other_busy_cores(HostLoad.now())}
    return replace(environment, settings={**environment.settings, **after})
