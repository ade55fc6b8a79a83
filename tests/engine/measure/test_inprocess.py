"""Measuring in a process that is somebody else's: right results, and nothing left behind."""

import gc
import sys
from statistics import median

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.measure.heard import of
from jaxprof import events as e
from jaxprof.base.errors import UsageError
from jaxprof.engine.measure import inprocess
from jaxprof.engine.measure.inprocess import compile_call, lay_out_call, measure_call
from jaxprof.workloads.decorator import workload


def profiled(function, *arguments):
    events = []
    call = lay_out_call(function, arguments, {})
    spec = e.RunSpec(
        workload=call.name, variant="jit", how="jit", device="cpu:0", budget_seconds=0.05, check=False, capture=False
    )
    measure_call("r1", spec, call.function, call.arguments, events.append, call.static)
    return events


def of_run(events, run, kind):
    return [event for event in of(events, kind) if event.run == run]


def ok(events, run="r1"):
    """The run has ended well, and has samples."""
    (finished,) = of_run(events, run, e.RunFinished)
    assert finished.status == "ok", finished
    assert samples(events, run)


def samples(events, run="r1"):
    taken = of_run(events, run, e.SamplesTaken)
    return [value for event in taken if event.series == "run" for value in event.seconds]


def test_donated_arguments_are_copies():
    mine = jnp.ones(1000)
    events = profiled(jax.jit(lambda x: x * 2, donate_argnums=0), mine)
    ok(events)
    assert len(samples(events)) > 3
    np.testing.assert_array_equal(mine, np.ones(1000))


def test_a_compile_is_cold_the_second_time_too():
    def function(x):
        return jnp.sin(x) * 7

    for _ in range(2):
        events = profiled(function, np.ones(4, np.float32))
        phases = {event.phase: event for event in of_run(events, "r1", e.PhaseEnded)}
        assert phases["compile"].note == ""
        assert phases["compile"].seconds > 0.0
    assert "compile_cached" not in {event.code for event in of(events, e.WarningRaised)}


def test_an_unknown_static_argument_is_refused():
    def known(x, n=2):
        return x * n

    def any_name(x, **options):
        return x * options.get("n", 2)

    x = jnp.ones(3)
    with pytest.raises(UsageError, match="unknown static argument 'm'") as caught:
        lay_out_call(known, (x,), {}, static_argnames="m")
    assert "n" in caught.value.hint
    assert lay_out_call(known, (x,), {"n": 3}, static_argnames=("n",)).static == (1,)
    assert lay_out_call(known, (x,), {}, static_argnames="n").static == (), "it was left to its default"
    assert lay_out_call(any_name, (x,), {"m": 3}, static_argnames="m").function(x).tolist() == [2.0] * 3
    assert lay_out_call(known, (x, 4), {}, static_argnums=1).static == (1,)
    assert lay_out_call(known, (x,), {}).name == "known"
    assert lay_out_call(known, (x,), {}, name="mine").name == "mine"


def test_one_call_is_one_run_among_others():
    events = []
    spec = e.RunSpec(
        workload="double",
        variant="jit",
        how="jit",
        device="cpu:0",
        budget_seconds=0.1,
        target="f.py:double",
        check=False,
        capture=False,
    )
    measure_call("r7", spec, lambda x: x * 2, (jnp.ones(8),), events.append)
    assert {event.run for event in events} == {"r7"}
    (planned,) = of_run(events, "r7", e.RunPlanned)
    assert planned.spec == spec
    assert samples(events, "r7")
    closed = events[-1]
    assert (closed.status, closed.error) == ("ok", "")
    assert closed.median_seconds == pytest.approx(median(samples(events, "r7")))
    assert closed.ci95_seconds is None or closed.ci95_seconds[0] <= closed.median_seconds <= closed.ci95_seconds[1]
    assert closed.wall_seconds > 0
    assert [event.monotonic_seconds for event in events] == sorted(event.monotonic_seconds for event in events)


@pytest.mark.parametrize(
    ("function", "status"),
    [(lambda x: x * 3, "ok"), (lambda x: x @ jnp.ones(7), "failed"), (lambda x: sys.exit(3), "failed")],
)
def test_a_program_is_compiled_and_not_called(function, status):
    events = []
    spec = e.RunSpec(workload="w", variant="jit", how="compile", device="cpu:0")
    compile_call("r1", spec, jax.jit(function), (jax.ShapeDtypeStruct((8,), jnp.float32),), {}, events.append)
    closed = events[-1]
    assert closed.status == status
    assert closed.median_seconds is None
    assert bool(closed.error) == (status == "failed")
    assert of_run(events, "r1", e.SamplesTaken) == []
    phases = [event.phase for event in of_run(events, "r1", e.PhaseEnded)]
    assert phases == (["trace", "lower", "compile"] if status == "ok" else [])


def test_a_call_takes_no_turns_and_puts_back_what_it_changes():
    values = ("jax_enable_compilation_cache", "jax_default_matmul_precision", "jax_default_device")
    before = [getattr(jax.config, name) for name in values]
    collecting = gc.isenabled()
    events = profiled(lambda a: {"a": jnp.tanh(a), "b": (jnp.ones(2), None)}, np.ones(8, np.float32))
    ok(events)
    assert [getattr(jax.config, name) for name in values] == before
    assert gc.isenabled() == collecting
    assert not of(events, e.WorkerStarted)
    assert {event.block for event in of_run(events, "r1", e.SamplesTaken)} == {None}


@pytest.mark.parametrize("parameters", [False, True], ids=["of any call", "of chosen sizes"])
def test_declaration_of_a_function_measured_in_process(parameters):
    sizes = {"parameters": {"n": 4}, "inputs": lambda n: (np.ones(n, np.float32),)}

    @workload(
        title="a title",
        description="what it does",
        tolerance=0.5,
        matrix_products=False,
        noisy_answer=True,
        against="an answer",
        expected=lambda x: x,
        **(sizes if parameters else {}),
    )
    def function(x):
        return x

    x = np.ones(3, np.float32)
    found = inprocess._workload(function, (x,), "w", ())
    assert (found.title, found.description) == ("a title", "what it does")
    assert set(found.tolerance.values()) == {0.5}
    assert found.has_dots is False
    assert (found.expected is None, found.against, found.noisy_answer) == (
        (True, "the function op by op", False) if parameters else (False, "an answer", True)
    )
    assert found.inputs({}, None)[0] is x, "these very arguments"
