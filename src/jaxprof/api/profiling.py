"""`jaxprof.profile`: a function measured in the caller's own process, with their jax, devices and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxprof.api.session import Session
from jaxprof.errors import UsageError
from jaxprof.operating_system import refuse_to_run
from jaxprof.session.log import new_header


def profile(
    fn: Callable[..., Any],
    *args: Any,
    name: str = "",
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    baseline: Callable[..., Any] | None = None,
    op_by_op: bool = False,
    budget_seconds: float = 2.0,
    max_seconds: float | None = None,
    keep_constants: bool = False,
    **kwargs: Any,
) -> Session:
    """Measure `fn(*args, **kwargs)` phase by phase in this process, compiled by `jax.jit` unless it already is.

    `args` and `kwargs` are what `fn` takes: arrays, scalars, and nested tuples, lists and dicts of them; to
    pass an argument that is named like an option of this function, use `functools.partial`. `static_argnums` and
    `static_argnames` are those of `jax.jit`. With `baseline` (a NumPy twin, called with the same arguments as NumPy
    arrays) the session has a speed-up and checks the result; with `op_by_op` the function is also timed without
    jit. Times are in seconds.

    If `fn` fails, the session has a failed run with the traceback, and nothing is raised. Raises UsageError for an
    object that is not callable, a static argument that `fn` does not have, or a budget that is not above 0.
    """
    from jaxprof.engine.measure.inprocess import measure_variants, place_call
    from jaxprof.events import RunSpec

    if not callable(fn):
        raise UsageError(f"profile needs a function, not {type(fn).__name__}", "jaxprof.profile(fn, *args, **kwargs)")
    if budget_seconds <= 0 or (max_seconds is not None and max_seconds <= 0):
        raise UsageError("a time budget must be above 0 seconds", "budget_seconds=2.0 is the default.")
    refuse_to_run("jaxprof.profile")
    call = place_call(
        fn,
        args,
        kwargs,
        name=name,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        baseline=baseline,
    )
    limits = RunSpec(
        workload=call.name,
        variant="",
        how="",
        device="",
        budget_seconds=budget_seconds,
        max_seconds=max_seconds,
        keep_constants=keep_constants,
    )
    session = Session(new_header(header_environment(), command=[]))
    measure_variants(call, limits, session.apply, op_by_op=op_by_op)
    return session


def header_environment() -> dict[str, Any]:
    """What the session's header records about the machine."""
    from jaxprof.devices.inventory.environment import environment_facts

    return dict(environment_facts())
