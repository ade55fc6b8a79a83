"""Profiles that JAX records here and now, on CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jaxprof.hlo.read.parse import module
from jaxprof.trace.imported import text_of
from jaxprof.trace.ops import op_times
from jaxprof.trace.sources import read_profile
from jaxprof.trace.steps import steps_of

CALLS = 3


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three annotated calls of a program with a loop, a compile outside of the profile."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(x: Any) -> Any:
        def body(carry: Any, _: None) -> tuple[Any, None]:
            return jnp.tanh(carry @ carry.T), None

        return jnp.sort(jax.lax.scan(body, x, None, length=4)[0].sum(0))

    x = jnp.ones((64, 64))
    step(x).block_until_ready()
    folder = tmp_path_factory.mktemp("recorded")
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(folder), profiler_options=options)
    for number in range(CALLS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step(x).block_until_ready()
    jax.profiler.stop_trace()
    return folder


def events_by_jax(folder: Path) -> Iterator[tuple[str, str, float, float]]:
    """Thread, op, start and duration in ns, of each HLO op, as JAX's own reader gives them."""
    from jax.profiler import ProfileData

    (file,) = folder.rglob("*.xplane.pb")
    for plane in ProfileData.from_file(str(file)).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats and not event.name.startswith("end: "):
                    yield line.name, str(stats["hlo_op"]), event.start_ns, event.duration_ns


def test_totals_and_self_times_agree_with_a_sum_by_hand(recorded: Path) -> None:
    sums: dict[str, list[float]] = {}
    lines: dict[str, list[tuple[float, float]]] = {}
    for line, name, start, duration in events_by_jax(recorded):
        sums.setdefault(name, []).append(duration)
        lines.setdefault(line, []).append((start, start + duration))
    rows = {row.op.name: row for row in op_times(read_profile(recorded))}
    assert set(rows) == set(sums)
    for name, durations in sums.items():
        assert rows[name].count == len(durations)
        assert rows[name].total_seconds == pytest.approx(sum(durations) * 1e-9, rel=1e-9)
    covered = 0.0
    for spans in lines.values():
        reached = float("-inf")
        for start, end in sorted(spans):
            covered += max(0.0, end - max(start, reached))
            reached = max(reached, end)
    assert sum(row.self_seconds for row in rows.values()) == pytest.approx(covered * 1e-9, rel=1e-6)


def test_the_hlo_in_the_file_has_the_ops_that_ran(recorded: Path) -> None:
    trace = read_profile(recorded)
    (program,) = {(row.op.module, row.op.program) for row in op_times(trace)}
    text, problem = text_of(trace, program)
    assert text is not None, problem
    names = {one.name for computation in module(text).computations.values() for one in computation.instructions}
    assert {row.op.name for row in op_times(trace)} <= names


def test_the_annotated_steps_hold_all_of_the_work(recorded: Path) -> None:
    steps = steps_of(read_profile(recorded))
    assert (steps.found_by, [row.name for row in steps.rows]) == ("annotation", ["train 0", "train 1", "train 2"])
    assert steps.outside_seconds == pytest.approx(0, abs=1e-9)
