"""Captures that JAX makes here and now, what jaxprof says against them, and what JAX's own reader finds in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxprof.events import TrustReported
from jaxprof.trace.summary import summarise

Verdicts = dict[str, tuple[str, str]]
Spans = list[tuple[float, float]]
MORE_WORK = (1, 4, 16, 64)
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


def by_jax(folder: Path) -> tuple[Spans, Spans]:
    """Begin and end in ns of each step, and of the stretches in which at least one HLO op ran."""
    from jax.profiler import ProfileData

    (file,) = folder.rglob("*.xplane.pb")
    marked: Spans = []
    ops: Spans = []
    for plane in ProfileData.from_file(str(file)).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "step_num" in stats:
                    marked.append((event.start_ns, event.start_ns + event.duration_ns))
                if "hlo_op" in stats and not event.name.startswith("end: "):
                    ops.append((event.start_ns, event.start_ns + event.duration_ns))
    busy: Spans = []
    for begin, end in sorted(ops):
        if busy and begin <= busy[-1][1]:
            busy[-1] = (busy[-1][0], max(busy[-1][1], end))
        else:
            busy.append((begin, end))
    return sorted(marked), busy


def length(spans: Spans) -> float:
    return sum(end - begin for begin, end in spans)


def outside(spans: Spans, windows: Spans) -> float:
    """How much of the spans is in none of the windows, neither of which overlap themselves."""
    inside = (max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in spans for b in windows)
    return length(spans) - sum(inside)
