"""Captures that JAX makes here and now, what jaxprof says against them, and what JAX's own reader finds in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxprof.events import TrustReported
from jaxprof.trace.summary import summarise

Verdicts = dict[str, tuple[str, str]]
"""What holds a capture up takes some milliseconds, however long it is: soon enough that is not what decides."""


@contextmanager
def profiler(folder: Path, *, python: int = 0, hlo: bool = True, host: int = 2) -> Iterator[None]:
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = python
    options.enable_hlo_proto = hlo
    options.host_tracer_level = host
    jax.profiler.start_trace(str(folder), profiler_options=options)
    try:
        yield
    finally:
        jax.profiler.stop_trace()


def compiled_step() -> Callable[[int], None]:
    """A compiled step whose work grows with its argument."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def work(x: Any, times: Any) -> Any:
        return jax.lax.fori_loop(0, times, lambda _, value: jnp.tanh(value @ value), x)

    x = jnp.ones((96, 96))
    work(x, 1).block_until_ready()
    return lambda times: work(x, times).block_until_ready()


def steps(step: Callable[[int], None], *sizes: int) -> None:
    import jax

    for number, size in enumerate(sizes):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step(size)


def trust(folder: Path, kind: str = "imported", **more: Any) -> Verdicts:
    (event,) = [one for one in summarise(folder, kind, **more) if isinstance(one, TrustReported)]
    return {row.code: (row.verdict, row.message) for row in event.rows}
