"""Each place that waits for results: the figure, or the state of the device, is wrong if it does not. Waiting costs as
little for a tree as for an array.

On a simulated device for exact figures, and with one real computation that goes on after its call has returned.
"""

import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.measure import simulated_device
from engine.measure.heard import of, reporter
from engine.measure.simulated_device import CALL_SECONDS, PROGRAM_SECONDS, SimulatedDevice
from jaxprof.engine.measure import capture, jax_run, transfer
from jaxprof.engine.measure.jax_run import PIPELINE_DEPTH, Calls, _way_to_one, blocked_loop
from jaxprof.engine.measure.sampling import MOST_SAMPLES, CallSampler, Plan
from jaxprof.engine.measure.transfer import Arguments, address, transfer_in, transfer_out
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import RunSpec, SamplesTaken
from jaxprof.workloads.model import Variant

WHOLE_CALL = CALL_SECONDS + PROGRAM_SECONDS
REAL = jnp.ones(8)
SPEC = RunSpec(workload="w", variant="jit", how="jit", device="cpu:0", budget_seconds=4.0)


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


def nested(call):
    return lambda *arguments: {"a": [call(*arguments)]}


def many(call, number, *, together):
    return partial(call, results=number, together=together)


@pytest.mark.parametrize("one_program", [True, False], ids=["one program", "op by op"])
@pytest.mark.parametrize("shape", ["an array", "a tuple of two", "five, of several programs", "nested"])
def test_a_timed_call_ends_when_its_last_result_is_there(device, shape, one_program):
    function = {
        "an array": device.call,
        "a tuple of two": many(device.call, 2, together=True),
        "five, of several programs": many(device.call, 5, together=False),
        "nested": nested(device.call),
    }[shape]
    form = jax.block_until_ready(function(REAL))
    loop = blocked_loop(function, form, (REAL,), one_program=one_program, may_call=True)
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
def test_the_side_series_are_taken_once_where_they_fit_into_a_tenth_of_the_budget(device, options, wanted):
    assert series(steady(device, **options)) == wanted


def test_the_side_series_last_half_a_second_at_most_and_results_that_do_not_fit_are_not_kept_waiting(
    device, monkeypatch
):
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
def test_the_cheapest_way_to_wait_is_looked_for_where_a_call_costs_little(
    device, monkeypatch, first_seconds, fresh, may
):
    asked = []

    def loop(*given, may_call, **options):
        asked.append(may_call)
        return blocked_loop(*given, may_call=may_call, **options)

    monkeypatch.setattr(jax_run, "blocked_loop", loop)
    steady(device, fresh=fresh, first_seconds=first_seconds)
    assert asked == [may]


@pytest.mark.parametrize(
    ("in_turns", "fresh"), [(False, lambda: (REAL,)), (True, None)], ids=["consumes its arguments", "in turns"]
)
def test_short_calls_are_counted_out_unless_each_needs_arguments_of_its_own(device, monkeypatch, fresh, in_turns):
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


def test_a_transfer_has_a_quarter_of_the_budget_and_a_second_at_most():
    plans = [transfer._plan("transfer_in", budget) for budget in (2.0, 10.0)]
    assert [plan.budget_seconds for plan in plans] == [0.5, 1.0]
    assert {(plan.series, plan.calls_per_sample, plan.least_share) for plan in plans} == {("transfer_in", 1, 0.2)}


def test_the_three_series_of_a_steady_run(device):
    events = steady(device)
    calls = {event.series: event.calls_per_sample for event in of(events, SamplesTaken)}
    assert (calls["dispatch"], calls["pipelined"]) == (1, PIPELINE_DEPTH)
    assert figures(events, "run") == [pytest.approx(WHOLE_CALL)]
    assert figures(events, "dispatch") == [pytest.approx(CALL_SECONDS)]
    overlapped = PROGRAM_SECONDS + CALL_SECONDS / PIPELINE_DEPTH
    assert figures(events, "pipelined") == [pytest.approx(overlapped)], "only the last is awaited"
    assert device.under_way() == 0


def test_no_frame_stands_between_the_loop_of_dispatches_and_the_call():
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


def test_fresh_arguments_of_a_dispatch_are_made_before_its_forerunner_is_awaited(device):
    """What is done after the wait lets the device's threads go to sleep: a dispatch of 10 µs then takes 12."""
    under_way = []

    def fresh():
        under_way.append(device.under_way())
        return (REAL,)

    trial = jax_run._dispatch_trial(Calls(device.call, (REAL,), fresh))
    for _ in range(2):
        trial.make(trial.prepare(1))
    assert under_way == [0, 1]


@pytest.mark.parametrize("first_run", [jax_run._first_run, jax_run._first_run_op_by_op])
def test_the_first_call_is_over_when_its_result_is_there(device, first_run):
    reporter, *_ = listening(device)
    _, seconds = first_run(reporter, Calls(device.call, (REAL,)))
    assert seconds == pytest.approx(WHOLE_CALL)


def test_a_captured_call_ends_when_its_result_is_there(device, monkeypatch):
    captured = []

    def capture_run(_, call, *__, **___):
        call()
        captured.append((len(device.made), device.under_way()))

    monkeypatch.setattr(capture, "capture_run", capture_run)
    reporter, *_ = listening(device)
    jax_run._capture(reporter, Calls(device.call, (REAL,)), None, 1.0, "")
    assert captured == [(1, 0)], "one call was made, and is over"


def test_a_call_captured_for_attribution_is_awaited_and_as_long_as_one_that_compiles_nothing(device, monkeypatch):
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
    monkeypatch.setattr(jax_run, "as_jitted", lambda _: Jitted())
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
    blocked = blocked_loop(keeping, output, (x,), one_program=True, may_call=False)
    pipelined, dispatch = jax_run._pipelined_trial(calls), jax_run._dispatch_trial(calls)
    reporter, *_ = listening(SimulatedDevice())
    for ended_with in (
        lambda: blocked(calls.sets(1)),
        lambda: pipelined.make(calls.sets(1)),
        lambda: (dispatch.make(calls.sets(1)), dispatch.prepare(1)),
        lambda: jax_run._first_run(reporter, calls),
        lambda: jax_run._first_run_op_by_op(reporter, calls),
    ):
        ended_with()
        assert made[-1].is_ready()


def walks(monkeypatch, function, *, one_program):
    """How often the loop over ten calls walks over a tree of results."""
    output = jax.block_until_ready(function(REAL))
    loop_for = blocked_loop(function, output, (REAL,), one_program=one_program, may_call=True)
    walked = []
    whole = jax.block_until_ready
    monkeypatch.setattr(jax, "block_until_ready", lambda tree: walked.append(1) or whole(tree))
    again = blocked_loop(function, output, (REAL,), one_program=one_program, may_call=True)
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
def test_three_calls_are_made_to_find_out_what_becomes_ready_together(one_program, may_call, made):
    calls = []
    program = jax.jit(lambda x: (x + 1, x + 2))

    def function(x):
        calls.append(1)
        return program(x)

    blocked_loop(function, program(REAL), (REAL,), one_program=one_program, may_call=may_call)
    assert len(calls) == made


def test_the_array_that_is_awaited_has_an_address_which_no_argument_has():
    """An array over several devices has none: whether it was passed through is not known."""

    made, nowhere = REAL + 1, SimulatedDevice().call()
    nowhere.unsafe_buffer_pointer = Mock(side_effect=ValueError("it has no one pointer"))
    given = {address(REAL)}
    assert _way_to_one((made, {"b": [nowhere, REAL]}), given) == (0,)
    assert _way_to_one((REAL, {"b": [made, nowhere]}), given) == (1, "b", 0)
    assert _way_to_one((nowhere, REAL, 3.0), given) == ()
