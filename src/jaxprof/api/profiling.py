"""`jaxprof.profile`: a function measured in the caller's own process, with their jax, devices and settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxprof.api.session import Session
from jaxprof.errors import UsageError
from jaxprof.store import new_header


def profile(
    fn: Callable[..., Any],
    *args: Any,
    name: str = "",
    static_argnums: int | tuple[int, ...] = (),
    baseline: Callable[..., Any] | None = None,
    op_by_op: bool = False,
    budget_seconds: float = 2.0,
    max_seconds: float | None = None,
    keep_constants: bool = False,
) -> Session:
    """Measures `fn(*args)` phase by phase in this process, compiled by `jax.jit` if it is not already.

    `args` are what `fn` takes: arrays, scalars, and nested tuples, lists and dicts of them. `static_argnums` is passed
    on to `jax.jit`. With `baseline` (a NumPy twin, called with the same arguments as NumPy arrays) the session has a
    speed-up and checks the result; with `op_by_op` the function is also timed without jit. Times are in seconds.

    A failure of `fn` is a failed run of the session, with its traceback, and is not raised. Raises UsageError for
    something that is not callable, or a budget that is not above 0.
    """
    from jaxprof.measure.inprocess import profile_function

    if not callable(fn):
        raise UsageError(f"profile wants a function, not {type(fn).__name__}", "jaxprof.profile(fn, *args)")
    if budget_seconds <= 0 or (max_seconds is not None and max_seconds <= 0):
        raise UsageError("a time budget must be above 0 seconds", "budget_seconds=2.0 is the default.")
    session = Session(new_header(header_environment(), command=[]))
    profile_function(
        fn,
        args,
        session.apply,
        name=name,
        static_argnums=static_argnums,
        baseline=baseline,
        op_by_op=op_by_op,
        budget_seconds=budget_seconds,
        max_seconds=max_seconds,
        keep_constants=keep_constants,
    )
    return session


def header_environment() -> dict[str, Any]:
    """What the header of a session that begins here says of the machine."""
    from jaxprof.telemetry.environment import environment_facts

    return dict(environment_facts())
