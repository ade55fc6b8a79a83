"""Measures or compiles a function in the caller's own process, for `jaxprof.profile` and the pytest fixture.

The caller's jax, devices and settings are used as they are and left as they were. Whatever only a fresh process can
give is missing here (a cold import, a clean peak of memory). A compile is cold all the same, unless the function's
owner compiled it before, which is then reported.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxprof.base.errors import unknown_name
from jaxprof.base.values import frozen
from jaxprof.engine.measure.control import Emit, Reporter, RunControl
from jaxprof.engine.measure.failure import conclude
from jaxprof.engine.measure.run import measure_workload
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import Event, RunClosed, RunFinished, RunPlanned, RunSpec, SamplesTaken
from jaxprof.events.runs import in_pieces
from jaxprof.stats.summary import summarise_run
from jaxprof.workloads.callables import arguments_by_name, in_order, last_by_name, signature_of
from jaxprof.workloads.decorator import VARIANTS, Declaration, declaration_of
from jaxprof.workloads.function import workload_of
from jaxprof.workloads.model import Workload


@frozen
class PlacedCall:
    """A call with all arguments by position, as it is timed."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    static: tuple[int, ...]


def lay_out_call(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    name: str = "",
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> PlacedCall:
    """Return the call with as many arguments as possible by position. Static keyword-only arguments are
    bound (a compiled function knows its own), and the others follow the positional ones.

    Raises UsageError for a static argument that does not exist.
    """
    import jax

    static_names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    signature = signature_of(fn)
    if signature is not None and not any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
        for key in static_names:
            if key not in signature.parameters:
                raise unknown_name("static argument", key, signature.parameters)
    placed, named = in_order(fn, args, dict(kwargs))
    compiled = isinstance(fn, jax.stages.Wrapped)
    bound = {} if compiled else {key: value for key, value in named.items() if key in static_names}
    given = {key: value for key, value in named.items() if key not in bound}
    parameters = list(arguments_by_name(fn))
    static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)
    static |= {
        parameters.index(key) for key in static_names if key in parameters and parameters.index(key) < len(placed)
    }
    positional_only = last_by_name(functools.partial(fn, **bound) if bound else fn, tuple(given))
    name = name or str(getattr(fn, "__name__", type(fn).__name__))
    return PlacedCall(name, positional_only, (*placed, *given.values()), tuple(sorted(static)))


def measure_call(
    run: str,
    spec: RunSpec,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    emit: Emit,
    static: tuple[int, ...] = (),
) -> None:
    """Emit the run of one call of `function`, compiled, with these arguments static: one run among others. A failure of
    the function is a failed run. The persistent compilation cache is off for it unless `spec` says otherwise, so that
    its compile is cold."""
    workload = _workload(function, arguments, spec.workload, static)
    request = RunRequest(run=run, spec=spec)
    _one_run(run, spec, lambda send: measure_workload(workload, workload.variant("jit"), request, send), emit)


def compile_call(
    run: str, spec: RunSpec, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], emit: Emit
) -> None:
    """Emit the run of the program of `function(*args, **kwargs)`, which is compiled and not called.

    `function` is compiled by `jax.jit`, or by a wrapper around it that can be lowered (equinox's `filter_jit`). Shapes
    may take the place of arrays. A compile that fails is a failed run.
    """

    def compile_it(reporter: Reporter) -> None:
        import jax

        from jaxprof.engine.measure.environment import read_environment
        from jaxprof.engine.measure.stages import compile_traced

        reporter.emit(read_environment(jax.local_devices()))
        with reporter.phase("trace"):
            jitted, traced = _trace(function, args, kwargs)
        compile_traced(reporter, jitted, traced, keep_constants=spec.keep_constants)

    def work(emit: Emit) -> None:
        reporter = Reporter(emit, RunControl())
        conclude(reporter, lambda: compile_it(reporter))

    _one_run(run, spec, work, emit)


def _trace(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the jitted function and the stage of its trace: for JAX's own jit, of an earlier call."""
    if type(function).__module__.startswith("jax"):
        return function, function.trace(*args, **kwargs)
    from jaxprof.engine.measure.portable import program_of, trace

    def call(positional: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        return function(*positional, **named)

    call.__name__ = str(getattr(function, "__name__", "call"))
    call.lower = function.lower  # type: ignore[attr-defined] # as what is jitted already
    traced = trace(call, (args, dict(kwargs)))
    program = program_of(traced, traced.in_shardings, annotated=True)
    jitted = program.jitted
    return jitted, jitted.trace(*program.shapes)


def _one_run(run: str, spec: RunSpec, work: Callable[[Emit], None], emit: Emit) -> None:
    """Emit the events of one run around those that `work` emits: its plan before, its summary after."""
    began = time.monotonic()
    samples: list[float] = []
    calls = 1
    finished = RunFinished(status="failed")

    def send(event: Event) -> None:
        nonlocal finished, calls
        event = replace(event, run=run, monotonic_seconds=time.monotonic())
        if isinstance(event, SamplesTaken) and event.series == "run":
            samples.extend(event.seconds)
            calls = event.calls_per_sample
        if isinstance(event, RunFinished):
            finished = event
        for part in in_pieces(event):
            emit(part)

    send(RunPlanned(spec=spec))
    work(send)
    summary = summarise_run(samples, calls_per_sample=calls)
    send(
        RunClosed.of(
            run,
            spec,
            finished,
            median_seconds=summary.median if summary else None,
            ci95_seconds=list(summary.ci95) if summary and summary.ci95 else None,
            wall_seconds=time.monotonic() - began,
        )
    )


def _workload(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    name: str,
    static_argnums: tuple[int, ...],
) -> Workload:
    """Return `fn` with these very arguments, as a workload. Of its own declaration it has what holds for any call: not
    the inputs, parameters and variants of `jaxprof run`."""
    import jax

    declared = declaration_of(fn) or Declaration()
    compares = callable(declared.expected) and not declared.parameters
    described = workload_of(
        fn,
        origin=name,
        name=name,
        declared=Declaration(
            title=declared.title,
            description=declared.description,
            inputs=lambda: args,
            variants=(VARIANTS["jit"],),
            expected=declared.expected if compares else None,
            against=declared.against if compares else "",
            noisy_answer=declared.noisy_answer and compares,
            tolerance=declared.tolerance,
            matrix_products=declared.matrix_products,
        ),
    )
    (variant,) = described.variants
    function = variant.build({})
    if isinstance(function, jax.stages.Wrapped):
        return described

    @functools.wraps(function)  # a new wrapper of a plain function, which JAX has not seen yet
    def unseen(*arguments: Any) -> Any:
        return function(*arguments)

    return replace(described, variants=(replace(variant, function=jax.jit(unseen, static_argnums=static_argnums)),))


def device_of(args: Any) -> str:
    """Return the device of the calls: that of the first JAX array among the arguments, otherwise JAX's default."""
    import jax

    from jaxprof.engine.measure.jax_devices import default_device, device_name

    for leaf in jax.tree.leaves(args):
        if isinstance(leaf, jax.Array):
            return device_name(min(leaf.devices(), key=lambda device: device.id))
    return device_name(default_device())
