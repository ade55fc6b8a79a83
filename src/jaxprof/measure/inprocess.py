"""Measuring a function in the caller's own process: what `jaxprof.profile` is made of.

The caller's jax, devices and settings are used as they are and left as they were. What a fresh process would give is
not to be had here (a cold import, a clean peak of memory); a compile is cold all the same unless the function was
compiled by its owner before, which is then said.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jaxprof.engine.request import RunRequest
from jaxprof.events import Event, RunClosed, RunFinished, RunPlanned, SamplesTaken, SessionClosed, TextRecorded
from jaxprof.measure.recorder import Emit
from jaxprof.measure.run import measure_workload
from jaxprof.session.texts import split
from jaxprof.stats import summarise
from jaxprof.workloads.function import workload_of
from jaxprof.workloads.model import Variant, Workload


def profile_function(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    emit: Emit,
    *,
    name: str = "",
    static_argnums: int | tuple[int, ...] = (),
    baseline: Callable[..., Any] | None = None,
    op_by_op: bool = False,
    budget_seconds: float = 2.0,
    max_seconds: float | None = None,
    keep_constants: bool = False,
) -> None:
    """Measures `fn(*args)`, one run for each variant that is asked for, and emits all of a session's events.

    A failure of `fn` is a failed run. The order is: the NumPy twin `baseline`, op by op, compiled; the first of them
    is what the others are compared with.
    """
    workload = _workload(fn, args, name, static_argnums, baseline, op_by_op=op_by_op)
    device = _device_name(args)
    for number, variant in enumerate(workload.variants, start=1):
        request = RunRequest(
            run=f"r{number}",
            workload=workload.name,
            variant=variant.name,
            device="cpu:0" if variant.how == "numpy" else device,
            budget_seconds=budget_seconds,
            max_seconds=max_seconds,
            keep_constants=keep_constants,
            compilation_cache=True,  # the caller's own setting
            check=len(workload.variants) > 1,
        )
        _one_run(workload, variant, request, emit, baseline="" if number == 1 else "r1")
    emit(SessionClosed(monotonic_seconds=time.monotonic()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a function, compiled, to be measured as a run among others."""

    run: str
    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    device: str = ""
    """Empty: where the arguments are."""
    target: str = ""
    """As in `RunPlanned`."""
    specs: tuple[str, ...] = ()
    keep_constants: bool = False


def measure_call(call: Call, emit: Emit) -> None:
    """Emits the run of `call`. The persistent compilation cache is off for it, so that its compile is one."""
    workload = _workload(call.function, call.arguments, call.name, (), None, op_by_op=False)
    request = RunRequest(
        run=call.run,
        workload=call.name,
        variant="jit",
        device=call.device or _device_name(call.arguments),
        keep_constants=call.keep_constants,
        check=False,
    )
    _one_run(workload, workload.variant("jit"), request, emit, target=call.target, specs=call.specs)


def _one_run(
    workload: Workload,
    variant: Variant,
    request: RunRequest,
    emit: Emit,
    *,
    baseline: str = "",
    target: str = "",
    specs: tuple[str, ...] = (),
) -> None:
    began = time.monotonic()
    samples: list[float] = []
    finished = RunFinished(status="failed")

    def stamped(event: Event) -> None:
        nonlocal finished
        event = replace(event, run=request.run, monotonic_seconds=time.monotonic())
        if isinstance(event, SamplesTaken) and event.series == "run":
            samples.extend(event.seconds)
        if isinstance(event, RunFinished):
            finished = event
        if isinstance(event, TextRecorded) and event.text:
            for part in split(event.name, event.text, event.run, event.monotonic_seconds):
                emit(part)
        else:
            emit(event)

    stamped(
        RunPlanned(
            workload=workload.name,
            variant=variant.name,
            how=variant.how,
            device=request.device,
            baseline=baseline,
            budget_seconds=request.budget_seconds,
            max_seconds=request.max_seconds,
            target=target,
            arguments=list(specs),
        )
    )
    measure_workload(workload, variant, request, stamped)
    summary = summarise(samples)
    stamped(
        RunClosed(
            workload=workload.name,
            variant=variant.name,
            device=request.device,
            status=finished.status,
            error=finished.error,
            advice=finished.advice,
            median_seconds=summary.median if summary else None,
            ci95_seconds=list(summary.ci95) if summary and summary.ci95 else None,
            wall_seconds=time.monotonic() - began,
        )
    )


def _workload(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    name: str,
    static_argnums: int | tuple[int, ...],
    baseline: Callable[..., Any] | None,
    *,
    op_by_op: bool,
) -> Workload:
    """`fn` with these very arguments as a declaration."""
    called = name or str(getattr(fn, "__name__", type(fn).__name__))
    described = workload_of(fn, origin=called, name=called, companion=lambda: args)
    variants = [
        variant for variant in described.variants if variant.name == "jit" or (variant.name == "jax" and op_by_op)
    ]
    variants = [replace(item, build=_jitted(item, static_argnums)) if item.how == "jit" else item for item in variants]
    if baseline is not None:
        twin = baseline
        variants.insert(0, Variant(name="numpy", how="numpy", build=lambda parameters: twin, adapt=_as_numpy))
    return replace(
        described,
        variants=tuple(variants),
        baseline=variants[0].name,
        expected=None if baseline is not None else described.expected,
        against="numpy twin" if baseline is not None else described.against,
    )


def _jitted(variant: Variant, static_argnums: int | tuple[int, ...]) -> Callable[..., Callable[..., Any]]:
    """Builds what is compiled. A plain function gets a wrapper of its own, so that JAX has not seen it before."""

    def build(parameters: Any) -> Callable[..., Any]:
        import jax

        function = variant.build(parameters)
        if isinstance(function, jax.stages.Wrapped):
            return function

        @functools.wraps(function)
        def unseen(*arguments: Any) -> Any:
            return function(*arguments)

        jitted: Callable[..., Any] = jax.jit(unseen, static_argnums=static_argnums)
        return jitted

    return functools.update_wrapper(build, variant.build, updated=())


def _as_numpy(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    import jax

    fetched: tuple[Any, ...] = jax.tree.map(
        lambda leaf: jax.device_get(leaf) if isinstance(leaf, jax.Array) else leaf, inputs
    )
    return fetched


def _device_name(args: tuple[Any, ...]) -> str:
    """Where the calls will run: where the first JAX array among the arguments is, else JAX's default."""
    import jax

    from jaxprof.measure.devices import device_name

    for leaf in jax.tree.leaves(args):
        if isinstance(leaf, jax.Array):
            return device_name(min(leaf.devices(), key=lambda device: device.id))
    default = getattr(jax.config, "jax_default_device", None)
    return device_name(default if isinstance(default, jax.Device) else jax.local_devices()[0])
