"""What a run decides about memory, before its calls and after them."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.measure import heard
from jaxprof import events as e
from jaxprof.engine.measure import capture, jax_run, transfer
from jaxprof.engine.measure.control import PhaseReport
from jaxprof.engine.measure.jax_run import PIPELINE_DEPTH, Calls
from jaxprof.engine.measure.run import measure_workload
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.errors import DoesNotFitError
from jaxprof.events import BuffersReported, MemoryReported, PhaseEnded, RunSpec, SamplesTaken
from jaxprof.workloads.find import find

GPU = SimpleNamespace(platform="gpu")


def has(monkeypatch, *, limit, used=None, peak=None):
    """What the allocator of every device says."""
    told = {"memory_limit_bytes": limit, "memory_in_use_bytes": used, "memory_peak_bytes": peak}
    monkeypatch.setattr(jax_run, "describe", lambda device: told)


def test_the_memory_that_is_free_is_the_hosts_or_what_the_device_has_left(monkeypatch):
    monkeypatch.setattr(jax_run, "available_host_bytes", lambda: 77)
    has(monkeypatch, limit=1000, used=300)
    assert jax_run._free_bytes(None) == jax_run._free_bytes(SimpleNamespace(platform="cpu")) == 77
    assert jax_run._free_bytes(GPU) == 700
    has(monkeypatch, limit=1000)
    assert jax_run._free_bytes(GPU) == 1000
    has(monkeypatch, limit=None, used=300)
    assert jax_run._free_bytes(GPU) is None


def program(**sizes):
    return SimpleNamespace(memory=MemoryReported(**sizes), buffers=BuffersReported(source="XLA"))


def test_a_program_that_needs_more_than_is_free_is_not_run(monkeypatch):
    has(monkeypatch, limit=1000)
    recorder, events = heard.reporter()
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


def test_results_of_unfinished_calls_may_take_a_tenth_of_what_is_free(monkeypatch):
    output = (jnp.ones(1000, jnp.float32), 3.0)
    for free, fits in ((40_000 * PIPELINE_DEPTH, True), (40_000 * PIPELINE_DEPTH - 10, False), (None, True)):
        monkeypatch.setattr(jax_run, "available_host_bytes", lambda found=free: found)
        assert jax_run._pipeline_fits(output) == fits


def test_the_peak_of_the_allocator_stands_beside_what_xla_said(monkeypatch):
    recorder, events = heard.reporter()
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


def test_arguments_are_made_anew_only_for_calls_that_consume_them():
    made = []

    def fresh():
        made.append(1)
        return (len(made),)

    kept = Calls(max, (np.ones(2),))
    assert [each[0] is kept.arguments[0] for each in kept.sets(3)] == [True] * 3
    assert list(Calls(max, (), fresh).sets(3)) == [(1,), (2,), (3,)]


def test_the_first_call_op_by_op_is_split_from_what_it_compiles():
    recorder, events = heard.reporter()
    x = jax.device_put(np.arange(17, dtype=np.float32))
    output, seconds = jax_run._first_run_op_by_op(recorder, Calls(lambda x: jnp.tan(x) + 17.25, (x,)))
    ended = {event.phase: event for event in heard.of(events, PhaseEnded)}
    assert set(ended) == {"trace", "lower", "compile", "first_run"}
    assert all(event.seconds is not None and event.seconds >= 0 for event in ended.values())
    assert ended["first_run"].seconds == seconds
    assert ended["first_run"].note == "first call, compilations excluded"
    observed = heard.of(events, e.CompileObserved)
    assert {event.stage for event in observed} >= {"compile"}
    assert all(event.seconds > 0 for event in observed)
    np.testing.assert_allclose(output, np.tan(np.arange(17, dtype=np.float32)) + 17.25, rtol=1e-4)


def measured(function, monkeypatch, how="jit", **given):
    """The events of a run, and what was captured."""
    captured = []
    monkeypatch.setattr(capture, "capture_run", lambda *_, keep, **__: captured.append(f"run, kept as {keep!r}"))
    monkeypatch.setattr(capture, "capture_compile", lambda *_: captured.append("compile"))
    events = heard.measured(function, double, how, keep_trace="kept.pb", **given)
    assert events[-1].status == "ok", events[-1]
    return events, captured


def phases(events):
    """Those after the inputs are made."""
    ended = heard.phases(events)
    return ended[ended.index("inputs") + 1 :]


def double(x):
    return x * 2


def test_the_first_launch_measures_everything_and_a_later_one_what_differs_between_launches(monkeypatch):
    both = ["transfer_in", "trace", "lower", "compile", "first_run", "run"]
    events, captured = measured(jax.jit(double), monkeypatch, budget_seconds=0.5)
    assert phases(events) == [*both, "pipelined", "dispatch", "transfer_out", "check"]
    assert captured == ["run, kept as 'kept.pb'", "compile"]
    events, captured = measured(jax.jit(double), monkeypatch, launch=2, budget_seconds=0.5)
    assert phases(events) == both
    assert captured == []
    assert [event.series for event in heard.of(events, SamplesTaken)].count("transfer_in") == 3
    events, captured = measured(jax.jit(double), monkeypatch, capture=False, check=False)
    assert (captured, "check" in phases(events)) == ([], False), "what is not wanted is not done"


def test_inputs_that_stay_on_the_host_are_moved_by_each_call(monkeypatch):
    given = []

    def kept(x):
        given.append(type(x))
        return jnp.asarray(x) * 2

    events, captured = measured(kept, monkeypatch, how="jax", inputs="host", check=False)
    assert "transfer_in" not in phases(events)
    assert set(given) == {np.ndarray}
    assert captured == ["run, kept as 'kept.pb'"], "op by op there is no one compile"
    given.clear()
    events, _ = measured(kept, monkeypatch, how="jax", check=False)
    assert "transfer_in" in phases(events)
    assert np.ndarray not in given


def test_a_shape_that_changes_while_running_is_named(monkeypatch):
    sizes, inner = iter(range(1, 100_000)), jax.jit(lambda x: x * 2)

    def restless(x):
        return inner(np.ones(min(next(sizes), 12), np.float32)).sum() + x

    events, _ = measured(restless, monkeypatch, how="jax", check=False)
    assert "compiled_again" in {event.code for event in heard.of(events, e.WarningRaised)}


@pytest.mark.parametrize(("function", "shared"), [(lambda x: x, True), (double, False)], ids=["itself", "a new array"])
def test_a_call_that_passes_its_argument_through_is_told_as_moving_nothing(monkeypatch, function, shared):
    events, _ = measured(function, monkeypatch, how="jax", check=False)
    (run,) = [event for event in heard.of(events, PhaseEnded) if event.phase == "run"]
    assert run.zero_copy == shared


@pytest.mark.parametrize(
    ("moved", "shared", "zero_copy", "note"),
    [(8, 8, True, ""), (8, 0, False, ""), (8, 3, False, "3 of 8 bytes are shared, not copied"), (0, 0, False, "")],
)
def test_a_transfer_says_how_much_of_it_was_a_copy(moved, shared, zero_copy, note):
    recorder, _ = heard.reporter()
    phase = PhaseReport()
    transfer._describe(recorder, "in", phase, moved, shared)
    assert (phase.bytes, phase.zero_copy, phase.note) == (moved, zero_copy, note)
    assert recorder.shared_transfers == ["in"] * zero_copy


def test_a_request_for_attribution_captures_and_times_nothing():
    workload = find("selu", [])
    request = RunRequest(
        run="r1",
        attribution=True,
        spec=RunSpec(
            target="selu", workload="selu", variant="jit", parameters={"n": 10_000}, how="jit", device="cpu:0"
        ),
    )
    told = []
    measure_workload(workload, workload.variant("jit"), request, told.append)
    assert isinstance(told[-1], e.RunFinished)
    assert told[-1].status == "ok"
    assert not any(isinstance(event, e.SamplesTaken | e.CostReported) for event in told)
    captured = [event for event in told if isinstance(event, e.CaptureTaken | e.KernelsMeasured | e.TrustReported)]
    assert [type(event) for event in captured] == [e.CaptureTaken, e.KernelsMeasured, e.TrustReported]
    assert {event.kind for event in captured} == {"attribution"}
    assert any(event.rows for event in captured if isinstance(event, e.KernelsMeasured))


def test_only_numpy_arrays_go_to_the_device_and_scalars_stay_python():
    arguments = transfer.Arguments.of((np.ones(4, np.float32), 3.0, [np.zeros(2, np.float32)]))
    placed = arguments.placed(jax.device_put(arguments.host_arrays()))
    assert isinstance(placed[0], jax.Array)
    assert placed[1] == 3.0
    assert type(placed[1]) is float
    assert isinstance(placed[2][0], jax.Array)
