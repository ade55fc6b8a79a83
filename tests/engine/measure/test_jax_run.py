"""What a run decides about memory, before its calls and after them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.engine.measure import jax_run
from jaxprof.engine.measure.control import RunControl
from jaxprof.engine.measure.jax_run import PIPELINE_DEPTH, Calls
from jaxprof.engine.measure.reporter import Reporter
from jaxprof.errors import DoesNotFitError
from jaxprof.events import BuffersReported, Event, MemoryReported

GPU = SimpleNamespace(platform="gpu")


def reporter() -> tuple[Reporter, list[Event]]:
    events: list[Event] = []
    return Reporter(events.append, RunControl()), events


def has(
    monkeypatch: pytest.MonkeyPatch, *, limit: int | None, used: int | None = None, peak: int | None = None
) -> None:
    """What the allocator of every device says."""
    told = {"memory_limit_bytes": limit, "memory_in_use_bytes": used, "memory_peak_bytes": peak}
    monkeypatch.setattr(jax_run, "describe", lambda device: told)


def test_the_memory_that_is_free_is_the_hosts_or_what_the_device_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_run, "available_host_bytes", lambda: 77)
    has(monkeypatch, limit=1000, used=300)
    assert jax_run._free_bytes(None) == jax_run._free_bytes(SimpleNamespace(platform="cpu")) == 77
    assert jax_run._free_bytes(GPU) == 700
    has(monkeypatch, limit=1000)
    assert jax_run._free_bytes(GPU) == 1000
    has(monkeypatch, limit=None, used=300)
    assert jax_run._free_bytes(GPU) is None


def program(**sizes: int | None) -> Any:
    return SimpleNamespace(memory=MemoryReported(**sizes), buffers=BuffersReported(source="XLA"))


def test_a_program_that_needs_more_than_is_free_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, limit=1000)
    recorder, events = reporter()
    for fits in (
        program(output_bytes=600, temporary_bytes=400, argument_bytes=10_000),
        program(output_bytes=900, temporary_bytes=400, alias_bytes=300),
        program(temporary_bytes=1000),
        program(),
        SimpleNamespace(memory=None, buffers=None),
    ):
        jax_run._refuse_what_does_not_fit(recorder, fits, GPU)
    assert events == []
    with pytest.raises(DoesNotFitError, match="needs 1001 B for its results"):
        jax_run._refuse_what_does_not_fit(recorder, program(output_bytes=600, temporary_bytes=401), GPU)
    assert events == [BuffersReported(source="XLA", asked_bytes=1001)]
    has(monkeypatch, limit=None)
    jax_run._refuse_what_does_not_fit(recorder, program(output_bytes=10**15), GPU)


def test_results_of_unfinished_calls_may_take_a_tenth_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    output = (jnp.ones(1000, jnp.float32), 3.0)
    for free, fits in ((40_000 * PIPELINE_DEPTH, True), (40_000 * PIPELINE_DEPTH - 10, False), (None, True)):
        monkeypatch.setattr(jax_run, "available_host_bytes", lambda found=free: found)
        assert jax_run._pipeline_fits(output) == fits


def test_the_peak_of_the_allocator_stands_beside_what_xla_said(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, events = reporter()
    has(monkeypatch, limit=None)
    jax_run._report_memory(recorder, program(output_bytes=4), GPU)
    assert events == [], "an allocator that keeps no count"
    has(monkeypatch, limit=1000, peak=800)
    jax_run._report_memory(recorder, program(output_bytes=4), GPU)
    jax_run._report_memory(recorder, None, GPU)
    assert events == [
        MemoryReported(output_bytes=4, allocator_peak_bytes=800, allocator_limit_bytes=1000),
        MemoryReported(allocator_peak_bytes=800, allocator_limit_bytes=1000),
    ]
    has(monkeypatch, limit=1000)
    jax_run._report_memory(recorder, None, GPU)
    assert events[-1] == MemoryReported(allocator_limit_bytes=1000)


def test_arguments_are_made_anew_only_for_calls_that_consume_them() -> None:
    made: list[int] = []

    def fresh() -> tuple[Any, ...]:
        made.append(1)
        return (len(made),)

    kept = Calls(max, (np.ones(2),))
    assert [each[0] is kept.arguments[0] for each in kept.sets(3)] == [True] * 3
    assert list(Calls(max, (), fresh).sets(3)) == [(1,), (2,), (3,)]


def test_the_first_call_op_by_op_is_split_from_what_it_compiles() -> None:
    recorder, events = reporter()
    x = jax.device_put(np.arange(17, dtype=np.float32))
    output, seconds = jax_run._first_run_op_by_op(recorder, Calls(lambda x: jnp.tan(x) + 17.25, (x,)))
    ended = {event.phase: event for event in events if event.type == "phase_ended"}  # type: ignore[attr-defined]
    assert set(ended) == {"trace", "lower", "compile", "first_run"}
    assert all(event.seconds is not None and event.seconds >= 0 for event in ended.values())
    assert ended["first_run"].seconds == seconds
    assert ended["first_run"].note == "the first call, without its compilations"
    observed = [event for event in events if event.type == "compile_observed"]
    assert {event.stage for event in observed} >= {"compile"}  # type: ignore[attr-defined]
    assert all(event.seconds > 0 for event in observed)  # type: ignore[attr-defined]
    np.testing.assert_allclose(output, np.tan(np.arange(17, dtype=np.float32)) + 17.25, rtol=1e-4)
