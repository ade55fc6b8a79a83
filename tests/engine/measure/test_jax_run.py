"""What a run decides about memory, before its calls and after them. Each place that waits for results: the figure, or
the state of the device, is wrong if it does not. Waiting costs as little for a tree as for an array.

On a simulated device for exact figures, and with one real computation that goes on after its call has returned.
"""

import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.measure import heard, simulated_device
from engine.measure.heard import of, reporter
from engine.measure.simulated_device import CALL_SECONDS, PROGRAM_SECONDS, SimulatedDevice
from jaxprof import events as e
from jaxprof.base.errors import DoesNotFitError
from jaxprof.engine.measure import capture, jax_run, transfer
from jaxprof.engine.measure.control import PhaseReport
from jaxprof.engine.measure.jax_run import PIPELINE_DEPTH, Calls, _way_to_one, waiting_loop
from jaxprof.engine.measure.run import measure_workload
from jaxprof.engine.measure.sampling import MOST_SAMPLES, CallSampler, Plan
from jaxprof.engine.measure.transfer import Arguments, address, transfer_in, transfer_out
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import BuffersReported, MemoryReported, PhaseEnded, RunSpec, SamplesTaken
from jaxprof.workloads.find import find
from jaxprof.workloads.model import Variant

GPU = SimpleNamespace(platform="gpu")
SPEC = RunSpec(workload="w", variant="jit", how="jit", device="cpu:0", budget_seconds=4.0)


def has(monkeypatch, *, limit, used=None, peak=None):
    """What the allocator of every device says."""
    told = {"memory_limit_bytes": limit, "memory_in_use_bytes": used, "memory_peak_bytes": peak}
    monkeypatch.setattr(jax_run, "describe", lambda device: told)


def test_free_bytes_of_host_and_device(monkeypatch):
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
    assert events == [BuffersReported(source="XLA", asked_bytes=1001, free_bytes=1000)]
    has(monkeypatch, limit=None)
    jax_run._refuse_what_does_not_fit(recorder, program(output_bytes=10**15), GPU)


def test_pipeline_fits_into_a_tenth_of_free_memory(monkeypatch):
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


def test_fresh_arguments_for_consuming_calls_only():
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
    began = time.perf_counter()
    output, seconds = jax_run._first_run(recorder, Calls(lambda x: jnp.tan(x) + 17.25, (x,)), compiled=False)
    ended = {event.phase: event for event in heard.of(events, PhaseEnded)}
    assert set(ended) == {"trace", "lower", "compile", "first_run"}
    assert all(event.seconds is not None and event.seconds >= 0 for event in ended.values())
    assert sum(event.seconds for event in ended.values()) < time.perf_counter() - began
    assert ended["first_run"].seconds == seconds
    assert ended["first_run"].note == "first call, compilations excluded"
    observed = heard.of(events, e.CompileObserved)
    assert {event.stage for event in observed} >= {"compile"}
    assert all(event.seconds > 0 for event in observed)
    np.testing.assert_allclose(output, np.tan(np.arange(17, dtype=np.float32)) + 17.25, rtol=1e-4)


def measured(function, monkeypatch, how="jit", **given):
    """The events of a run, and what was captured."""
    captured = []
    monkeypatch.setattr(capture, "capture_run", lambda *_, **__: captured.append("run"))
    monkeypatch.setattr(capture, "capture_compile", lambda *_: captured.append("compile"))
    events = heard.measured(function, double, how, **given)
    assert events[-1].status == "ok", events[-1]
    return events, captured


def phases(events):
    """Those after the inputs are made."""
    ended = heard.phases(events)
    return ended[ended.index("inputs") + 1 :]


def double(x):
    return x * 2


def test_phases_of_first_and_later_launches(monkeypatch):
    both = ["transfer_in", "trace", "lower", "compile", "first_run", "run"]
    events, captured = measured(jax.jit(double), monkeypatch, budget_seconds=0.5)
    assert phases(events) == [*both, "pipelined", "dispatch", "transfer_out", "check"]
    assert captured == ["run", "compile"]
    events, captured = measured(jax.jit(double), monkeypatch, launch=2, budget_seconds=0.5)
    assert phases(events) == both
    assert captured == []
    copies = [event.seconds for event in heard.of(events, SamplesTaken) if event.series == "transfer_in"]
    assert sum(map(len, copies)) == 3
    events, captured = measured(jax.jit(double), monkeypatch, capture=False, check=False)
    assert captured == [], "what is not wanted is not done"
    assert "check" not in phases(events), "what is not wanted is not done"


@pytest.mark.parametrize(("how", "note"), [("jit", ""), ("jax", "first call, compilations excluded")])
def test_only_a_first_call_op_by_op_is_told_as_one_that_compiles(monkeypatch, how, note):
    events, _ = measured(double, monkeypatch, how=how, check=False)
    assert [event.note for event in heard.of(events, PhaseEnded) if event.phase == "first_run"] == [note]


def test_inputs_that_stay_on_the_host_are_moved_by_each_call(monkeypatch):
    given = []

    def kept(x):
        given.append(type(x))
        return jnp.asarray(x) * 2

    events, captured = measured(kept, monkeypatch, how="jax", inputs="host", check=False)
    assert "transfer_in" not in phases(events)
    assert set(given) == {np.ndarray}
    assert captured == ["run"], "op by op there is no one compile"
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
def test_zero_copy_of_a_call_that_returns_its_argument(monkeypatch, function, shared):
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
    spec = replace(SPEC, target="selu", workload="selu", parameters={"n": 10_000})
    request = RunRequest(run="r1", attribution=True, spec=spec)
    told = []
    measure_workload(workload, workload.variant("jit"), request, told.append)
    assert isinstance(told[-1], e.RunFinished)
    assert told[-1].status == "ok"
    assert not any(isinstance(event, e.SamplesTaken | e.CostReported) for event in told)
    captured = [event for event in told if isinstance(event, e.CaptureTaken | e.KernelsMeasured | e.TrustReported)]
    assert [type(event) for event in captured] == [e.CaptureTaken, e.KernelsMeasured, e.TrustReported]
    assert {event.kind for event in captured} == {"attribution"}
    assert any(event.rows for event in captured if isinstance(event, e.KernelsMeasured))


@pytest.mark.parametrize("batch", [np.ones(4, np.float32), 2.0])
def test_jax_arrays_are_committed_beside_moved_ones(batch):
    """As a training step does, whose state is the result of its last call."""
    state = jnp.zeros(4)
    step = jax.jit(lambda state, batch: state + batch)
    placed = Arguments.of((state, batch)).fresh(jax.devices()[0])
    before = step._cache_size()
    result = step(*placed)
    assert placed[0].committed is isinstance(batch, np.ndarray)
    assert result.committed is placed[0].committed, "so that the next call is the same"
    step(result, placed[1])
    assert step._cache_size() == before + 1


def test_numpy_arrays_move_and_scalars_stay():
    arguments = transfer.Arguments.of((np.ones(4, np.float32), 3.0, [np.zeros(2, np.float32)]))
    placed = arguments.with_device_arrays(jax.device_put(arguments.host_arrays()))
    assert isinstance(placed[0], jax.Array)
    assert placed[1] == 3.0
    assert type(placed[1]) is float
    assert isinstance(placed[2][0], jax.Array)


WHOLE_CALL = CALL_SECONDS + PROGRAM_SECONDS
REAL = jax.device_put(np.ones(8, np.float32))


@pytest.fixture
def device(monkeypatch):
    simulated = SimulatedDevice()
    monkeypatch.setattr(jax_run, "time", SimpleNamespace(perf_counter=simulated.clock))
    return simulated


def listening(device):
    recorder, events = reporter()
    return recorder, CallSampler(recorder, device.clock), events


def figures(events, series):
    """The different seconds among the samples of a series."""
    found = [event for event in of(events, SamplesTaken) if event.series == series]
    return sorted({round(second, 9) for event in found for second in event.seconds})


@pytest.mark.parametrize("one_program", [True, False], ids=["one program", "op by op"])
@pytest.mark.parametrize("shape", ["an array", "a tuple of two", "five, of several programs", "nested"])
def test_a_timed_call_ends_when_its_last_result_is_there(device, shape, one_program):
    function = {
        "an array": device.call,
        "a tuple of two": partial(device.call, results=2),
        "five, of several programs": partial(device.call, results=5, together=False),
        "nested": lambda *arguments: {"a": [device.call(*arguments)]},
    }[shape]
    form = jax.block_until_ready(function(REAL))
    loop = waiting_loop(function, form, (REAL,), one_program=one_program, may_call=True)
    assert device.under_way() == 0, "what was called for a check is over"
    began = device.now
    loop([(REAL,)])
    assert device.under_way() == 0
    assert device.now - began == pytest.approx(WHOLE_CALL)


def steady(device, *, budget=4.0, fresh=None, first_seconds=WHOLE_CALL, **request):
    reporter, sampler, events = listening(device)
    calls = Calls(device.call, (REAL,), fresh)
    wanted = RunRequest(run="r1", spec=replace(SPEC, budget_seconds=budget), **request)
    jax_run._steady(reporter, sampler, calls, REAL, wanted, first_seconds, compiled=True, moves_nothing=False)
    return events


def series(events):
    return list(dict.fromkeys(event.series for event in of(events, SamplesTaken)))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ["run", "pipelined", "dispatch"]),
        ({"launch": 2}, ["run"]),
        ({"budget": 1.0}, ["run", "dispatch"]),
        ({"budget": 0.1}, ["run"]),
        ({"fresh": lambda: (REAL,)}, ["run", "dispatch"]),
    ],
    ids=["all", "a later launch", "too long for sixteen", "too long for one", "consumes its arguments"],
)
def test_side_series_within_a_tenth_of_the_budget(device, options, wanted):
    assert series(steady(device, **options)) == wanted


def test_side_series_limits(device, monkeypatch):
    for program_seconds, wanted in ((0.6, ["run"]), (0.4, ["run", "dispatch"])):
        monkeypatch.setattr(simulated_device, "PROGRAM_SECONDS", program_seconds)
        assert series(steady(device, budget=100.0)) == wanted
    monkeypatch.setattr(simulated_device, "PROGRAM_SECONDS", 0.01)
    monkeypatch.setattr(jax_run, "_pipeline_fits", lambda output: False)
    assert series(steady(device)) == ["run", "dispatch"]


@pytest.mark.parametrize(
    ("first_seconds", "fresh", "may"),
    [(0.049, None, True), (0.051, None, False), (0.01, lambda: (REAL,), False)],
    ids=["short", "long", "consumes its arguments"],
)
def test_waiting_is_probed_for_short_calls_only(device, monkeypatch, first_seconds, fresh, may):
    asked = []

    def loop(*given, may_call, **options):
        asked.append(may_call)
        return waiting_loop(*given, may_call=may_call, **options)

    monkeypatch.setattr(jax_run, "waiting_loop", loop)
    steady(device, fresh=fresh, first_seconds=first_seconds)
    assert asked == [may]


@pytest.mark.parametrize(
    ("in_turns", "fresh"), [(False, lambda: (REAL,)), (True, None)], ids=["consumes its arguments", "in turns"]
)
def test_plan_of_the_steady_run(device, monkeypatch, fresh, in_turns):
    plans = []

    def sample(self, trial, plan, call_seconds):
        plans.append(plan)
        return []

    monkeypatch.setattr(CallSampler, "sample", sample)
    steady(device, fresh=fresh, first_seconds=1.0, in_turns=in_turns)
    (plan,) = plans
    assert plan == Plan(
        series="run",
        budget_seconds=4.0,
        most_samples=MOST_SAMPLES,
        show_progress=True,
        calls_per_sample=None if fresh is None else 1,
        in_turns=in_turns,
    )


def test_transfer_budget():
    plans = [transfer._plan("transfer_in", budget) for budget in (2.0, 10.0)]
    assert [plan.budget_seconds for plan in plans] == [0.5, 1.0]
    assert {(plan.series, plan.calls_per_sample, plan.least_share) for plan in plans} == {("transfer_in", 1, 0.2)}


def test_the_three_series_of_a_steady_run(device):
    events = steady(device)
    calls = {event.series: event.calls_per_sample for event in of(events, SamplesTaken)}
    assert (calls["dispatch"], calls["pipelined"]) == (1, 16)
    assert figures(events, "run") == [pytest.approx(WHOLE_CALL)]
    assert figures(events, "dispatch") == [pytest.approx(CALL_SECONDS)]
    overlapped = PROGRAM_SECONDS + CALL_SECONDS / PIPELINE_DEPTH
    assert figures(events, "pipelined") == [pytest.approx(overlapped)], "only the last is awaited"
    assert device.under_way() == 0


def test_dispatch_loop_calls_directly():
    """A generator there took a microsecond, which was in the figure."""
    callers = []
    trial = jax_run._dispatch_trial(Calls(lambda: callers.append(sys._getframe(1).f_code.co_name), ()))
    trial.make([()])
    assert callers == ["dispatch"]


def test_a_dispatch_leaves_nothing_on_the_device_for_the_next(device):
    _, sampler, _ = listening(device)
    trial = jax_run._dispatch_trial(Calls(device.call, (REAL,)))
    for _ in range(3):
        assert sampler.take(trial) == pytest.approx(CALL_SECONDS)
        assert device.under_way() == 1, "it is awaited right before the next one"
    trial.prepare(1)
    assert device.under_way() == 0


def test_dispatch_makes_arguments_before_it_waits(device):
    """What is done after the wait lets the device's threads go to sleep: a dispatch of 10 µs then takes 12."""
    under_way = []

    def fresh():
        under_way.append(device.under_way())
        return (REAL,)

    trial = jax_run._dispatch_trial(Calls(device.call, (REAL,), fresh))
    for _ in range(2):
        trial.make(trial.prepare(1))
    assert under_way == [0, 1]


@pytest.mark.parametrize("compiled", [True, False])
def test_the_first_call_is_over_when_its_result_is_there(device, compiled):
    reporter, *_ = listening(device)
    _, seconds = jax_run._first_run(reporter, Calls(device.call, (REAL,)), compiled=compiled)
    assert seconds == pytest.approx(WHOLE_CALL)


def test_a_captured_call_ends_when_its_result_is_there(device, monkeypatch):
    captured = []

    def capture_run(_, call, *__, **___):
        call()
        captured.append((len(device.made), device.under_way()))

    monkeypatch.setattr(capture, "capture_run", capture_run)
    reporter, *_ = listening(device)
    jax_run._capture(reporter, Calls(device.call, (REAL,)), None, 1.0)
    assert captured == [(1, 0)], "one call was made, and is over"


def test_attribution_call_is_awaited_and_compiled_before(device, monkeypatch):
    captured = []
    consumed = []

    def capture_run(_, call, call_seconds, *, kind):
        before = len(device.made)
        call()
        captured.append((call_seconds, kind, len(device.made) - before, device.under_way()))

    class Jitted:
        lower = staticmethod(lambda *_: SimpleNamespace(donate_argnums=(0,)))

        def __call__(self, x):
            device.now += 0.0 if consumed else 5.0
            consumed.append(x.is_deleted())
            x.delete()
            return device.call()

    monkeypatch.setattr(capture, "capture_run", capture_run)
    monkeypatch.setattr(jax_run, "as_jitted", lambda *_: Jitted())
    variant = Variant(name="jit", how="jit", function=device.call)
    request, host = RunRequest(run="r1", spec=SPEC), (np.ones(4, np.float32),)
    jax_run.attribute_jax(reporter()[0], variant, request, host, jax.devices("cpu")[0])
    assert captured == [(pytest.approx(WHOLE_CALL), "attribution", 1, 0)]
    assert consumed == [False] * 3


def test_a_copy_to_the_device_ends_when_it_is_there(device, monkeypatch):
    monkeypatch.setattr(transfer.jax, "device_put", lambda arrays, _: [device.call() for _ in arrays])
    reporter, sampler, events = listening(device)
    transfer_in(reporter, sampler, Arguments.of((np.ones(4, np.float32),)), None, 4.0)
    assert figures(events, "transfer_in") == [pytest.approx(WHOLE_CALL)]
    assert [event.bytes for event in of(events, PhaseEnded)] == [4]


def test_a_fetch_is_timed_without_the_copy_made_for_it(device, monkeypatch):
    monkeypatch.setattr(transfer.jnp, "copy", device.call)
    reporter, sampler, events = listening(device)
    transfer_out(reporter, sampler, device.call(), 4.0)
    assert figures(events, "transfer_out") == [0.0], "a fetch costs nothing here, and waits for nothing"


def test_what_has_no_value_here_is_not_fetched(device):
    """An array of other hosts, a random key, a number of Python's."""
    elsewhere = device.call()
    elsewhere.is_fully_addressable = False
    reporter, sampler, events = listening(device)
    nowhere = (elsewhere, jax.random.key(0), 3.0, None)
    transfer_out(reporter, sampler, nowhere, 4.0)
    assert events == []
    assert transfer.output_bytes(nowhere) == 0
    assert transfer.output_bytes((*nowhere, device.call(), REAL)) == 4 + REAL.nbytes


def test_arguments_that_a_call_consumes_are_there_before_it(device, monkeypatch):
    monkeypatch.setattr(transfer.jnp, "copy", device.call)
    monkeypatch.setattr(transfer.jax, "device_put", lambda array, _: array)
    Arguments.of((REAL, np.ones(4, np.float32))).fresh(None)
    assert len(device.made) == 2
    assert device.under_way() == 0


def slow(x):
    """A tenth of a second; on a CPU its call returns before it is over."""
    return jax.lax.fori_loop(0, 30, lambda _, y: jnp.sin(y) * 1.0001, x)


def test_a_real_computation_is_timed_to_its_end():
    x = jnp.ones(500_000)
    function = jax.jit(slow)
    jax.block_until_ready(function(x))
    returned = True
    for _ in range(5):
        output = function(x)
        returned = output.is_ready()
        jax.block_until_ready(output)
        if not returned:
            break
    assert not returned, "the call returns before its result is there"
    made = []

    def keeping(*arguments):
        made.append(function(*arguments))
        return made[-1]

    calls = Calls(keeping, (x,))
    blocked = waiting_loop(keeping, output, (x,), one_program=True, may_call=False)
    pipelined, dispatch = jax_run._pipeline_trial(calls), jax_run._dispatch_trial(calls)
    reporter, *_ = listening(SimulatedDevice())
    for ended_with in (
        lambda: blocked(calls.sets(1)),
        lambda: pipelined.make(calls.sets(1)),
        lambda: (dispatch.make(calls.sets(1)), dispatch.prepare(1)),
        lambda: jax_run._first_run(reporter, calls, compiled=True),
        lambda: jax_run._first_run(reporter, calls, compiled=False),
    ):
        ended_with()
        assert made[-1].is_ready()


def walks(monkeypatch, function, *, one_program):
    """How often the loop over ten calls walks over a tree of results."""
    output = jax.block_until_ready(function(REAL))
    loop_for = waiting_loop(function, output, (REAL,), one_program=one_program, may_call=True)
    walked = []
    whole = jax.block_until_ready
    monkeypatch.setattr(jax, "block_until_ready", lambda tree: walked.append(1) or whole(tree))
    again = waiting_loop(function, output, (REAL,), one_program=one_program, may_call=True)
    walked.clear()
    again([(REAL,)] * 10)
    loop_for([(REAL,)] * 10)
    monkeypatch.undo()
    return len(walked)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: (x + 1,),
        lambda x: [x + i for i in range(20)],
        lambda x: {"loss": x.sum(), "state": [x + 1, (x + 2, None)]},
        lambda x: (x + 1, x),
    ],
    ids=["an array", "a tuple", "twenty", "nested", "the argument itself"],
)
def test_results_of_one_program_are_awaited_by_one_of_them(monkeypatch, function):
    assert walks(monkeypatch, jax.jit(function), one_program=True) == 0


def test_results_of_several_programs_are_all_awaited(monkeypatch):
    assert walks(monkeypatch, lambda x: [x + i for i in range(20)], one_program=False) == 10
    assert walks(monkeypatch, lambda x: (x + 1,), one_program=False) == 0, "the method of each costs less"
    assert walks(monkeypatch, lambda x: [x + i for i in range(4)], one_program=False) == 0
    assert walks(monkeypatch, lambda x: [x + i for i in range(5)], one_program=False) == 10
    assert walks(monkeypatch, lambda x: (x + 1, None), one_program=False) == 10


@pytest.mark.parametrize(("one_program", "may_call", "made"), [(True, True, 3), (False, True, 0), (True, False, 0)])
def test_waiting_loop_probes_with_three_calls(one_program, may_call, made):
    calls = []
    program = jax.jit(lambda x: (x + 1, x + 2))

    def function(x):
        calls.append(1)
        return program(x)

    waiting_loop(function, program(REAL), (REAL,), one_program=one_program, may_call=may_call)
    assert len(calls) == made


def test_a_result_with_a_random_key_is_awaited():
    function = jax.jit(lambda x: (jax.random.key(0), x + 1))
    waiting_loop(function, function(REAL), (REAL,), one_program=True, may_call=True)([(REAL,)] * 2)


def test_awaited_array_is_no_argument():
    """An array over several devices has none: whether it was passed through is not known."""
    made, nowhere = REAL + 1, SimulatedDevice().call()
    nowhere.unsafe_buffer_pointer = Mock(side_effect=ValueError("it has no one pointer"))
    given = {address(REAL)}
    assert _way_to_one((made, {"b": [nowhere, REAL]}), given) == (0,)
    assert _way_to_one((REAL, {"b": [made, nowhere]}), given) == (1, "b", 0)
    assert _way_to_one((nowhere, REAL, 3.0), given) == ()
