"""One real call of a function, kept and measured afterwards; and written down, so that it can be run again."""

import functools
import gc
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.measure.heard import of
from jaxprof import events as e
from jaxprof.recorder.calls import call_capture
from jaxprof.recorder.calls.call_capture import CallCapture
from jaxprof.recorder.calls.kept_call import KeptArguments, find_jitted, write_call
from jaxprof.session.fold import with_text
from jaxprof.workloads.find import find

calls = []


class State(NamedTuple):
    count: Any
    mean: Any


@functools.partial(jax.jit, static_argnames=("power",), donate_argnums=0)
def step(state, batch, power=2):
    """One step."""
    calls.append(jax.tree.map(jnp.shape, (state, batch)))
    print("tracing step")  # noqa: T201 - what a program prints while it is traced
    return State(state.count + 1, state.mean + jnp.mean(batch["x"]) ** power)


def arguments():
    return State(jnp.zeros((), jnp.int32), jnp.zeros(3)), {"x": jnp.full((8, 4), 2.0), "y": np.arange(8)}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(call_capture, "RunSpec", functools.partial(call_capture.RunSpec, capture=False))
    monkeypatch.setattr(call_capture, "DEFAULT_BUDGET_SECONDS", 0.05)


def tapped(name, function, *args, jax_name="step", **options):
    said = []
    tap = CallCapture(name, said.append)
    tap.offer(function, jax_name, args, options)
    tap.measure()
    return said


def test_a_call_is_measured_cold_and_can_be_repeated(capsys):
    state, batch = arguments()
    step(state, batch, power=3)
    state, batch = arguments()
    capsys.readouterr()
    said = tapped("step", step.__wrapped__, state, batch, power=3)
    assert of(said, e.RunFinished)[0].status == "ok", of(said, e.RunFinished)
    assert {event.run for event in said} == {"function:step"}
    phases = {event.phase: event for event in of(said, e.PhaseEnded)}
    assert phases["compile"].note == ""
    assert phases["trace"].seconds > 0.0
    assert phases["transfer_in"].bytes == 4 + 12 + 128 + 8 * batch["y"].itemsize // 2  # int64 becomes 32 bits wide
    assert [event.name for event in of(said, e.TextRecorded)][-1] == "hlo"
    assert of(said, e.SamplesTaken)
    assert of(said, e.RunClosed)[0].median_seconds > 0
    assert capsys.readouterr() == ("", "")  # tracing it again prints again, into the run's log
    assert of(said, e.LogLine)[0].text == "tracing step"
    assert "values_made_up" in {event.code for event in of(said, e.WarningRaised)}
    np.testing.assert_array_equal(state.mean, np.zeros(3))  # the program's own arrays were not donated
    (spec,) = (event.spec for event in of(said, e.RunPlanned))
    assert (spec.target, spec.workload) == (f"{__file__}:step", "test_call_capture.py:step")
    shapes = f"{__name__}:State(count=i32[], mean=f32[3])", "{'x': f32[8,4], 'y': i64[8]}", "3"
    assert tuple(spec.arguments) == shapes
    workload = find(spec.target, spec.arguments)
    assert workload.name == spec.workload
    made = workload.inputs({}, np.random.default_rng(0))
    assert jax.tree.map(np.shape, made[:2]) == jax.tree.map(np.shape, (state, batch))
    assert made[2] == 3


def test_values_of_donated_arguments_are_kept_on_request():
    state, batch = arguments()
    kept = KeptArguments.of((state, batch), {}, values=True)
    step(state, batch)
    assert state.mean.is_deleted()
    (again, data), _ = kept.arguments()
    assert not kept.made_up
    np.testing.assert_array_equal(again.mean, np.zeros(3))
    np.testing.assert_array_equal(data["x"], np.full((8, 4), 2.0))


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "uint8", "complex64", "bool"])
def test_made_up_arrays_have_their_dtype_and_shape(dtype):
    ((made,), _) = KeptArguments.of((jnp.ones((2, 3), dtype),), {}, values=False).arguments()
    assert (made.dtype.name, made.shape) == (dtype, (2, 3))


def test_keys_and_weak_scalars_stay_what_they_are():
    keys, weak = jax.random.split(jax.random.key(3, impl="rbg"), 4), jnp.asarray(2.0)
    (made, scalar), _ = KeptArguments.of((keys, weak), {}, values=False).arguments()
    assert made.dtype == keys.dtype
    assert made.shape == (4,)
    assert scalar.weak_type is True
    (kept, _), _ = KeptArguments.of((keys, weak), {}, values=True).arguments()
    np.testing.assert_array_equal(jax.random.key_data(kept), jax.random.key_data(keys))


def test_a_call_inside_a_transformation_has_no_values_to_keep():
    found = []

    def look(x):
        found.append(KeptArguments.of((x,), {}, values=True))
        return x.sum()

    jax.grad(look)(jnp.ones(3))
    assert found[0].made_up
    assert found[0].arguments()[0][0].shape == (3,)


def test_objects_without_arrays_stay_in_the_call():
    def scaled(x, *, by, kind):
        return x * by if kind == "times" else x + by

    said = tapped("scaled", scaled, jnp.ones(5), jax_name="scaled", by=jnp.ones(5), kind="times")
    assert of(said, e.RunFinished)[0].status == "ok", of(said, e.RunFinished)
    assert "cannot_repeat" in {event.code for event in of(said, e.WarningRaised)}


def test_a_function_that_was_never_called_is_told_with_what_was():
    said = tapped("train_stp", step.__wrapped__, jax_name="train_step")
    (warning,) = map(with_text, of(said, e.WarningRaised))
    assert (warning.code, warning.advice) == ("function_not_called", "Compiled functions include: train_step.")


def test_arguments_that_cannot_be_made_any_more_are_a_failed_run():
    class Broken:
        pass

    children = [jnp.ones(3)]
    jax.tree_util.register_pytree_node(Broken, lambda one: (children, None), lambda aux, found: 1 / 0)
    said = tapped("step", step.__wrapped__, Broken())
    assert of(said, e.RunFinished)[0].status == "failed"
    assert "division by zero" in of(said, e.RunFinished)[0].error


def test_what_was_compiled_is_found_wherever_it_lives():
    def inner(x):
        return x

    assert find_jitted(inner) is None
    holder = {"deep": [jax.jit(inner, donate_argnums=0)]}
    assert find_jitted(inner) is holder["deep"][0]
    gc.freeze()
    assert find_jitted(step.__wrapped__) is step, "of a program that has frozen its objects"


class Model:
    def apply(self, x):
        return x


class Login(NamedTuple):
    user: str
    pin: int


def login(password, token=8):
    return password


def test_what_is_only_called_like_a_secret_is_written_down():
    assert write_call(login, None, "f", (jnp.ones(3), 128), {}).specs == ("f32[3]", "128")


@pytest.mark.parametrize(
    ("function", "args", "problem"),
    [
        (lambda x: x, (1,), "no name leads to it"),
        (eval("lambda x: x"), (1,), "not defined in a file"),
        (step.__wrapped__, (Model(), {}), "argument 1 is a"),
        (step.__wrapped__, ({"a": {1.5: 2}}, {}), r"argument 1\['a'\] is a builtins.dict"),
        (step.__wrapped__, (jnp.ones(3, jnp.int4), {}), "an array of int4"),
        (step.__wrapped__, ({"w": 1, "api_key": "hunter2"}, {}), r"argument 1\['api_key'\] looks like a secret"),
        (login, ("hunter2",), "argument 1 looks like a secret"),
        (login, ([Login("bob", 2)],), r"argument 1\[0\]"),
        (step.__wrapped__, ("https://bob:hunter2@host", {}), "argument 1 looks like a secret"),
    ],
)
def test_what_cannot_be_written_down_says_why(function, args, problem):
    written = write_call(function, None, "f", args, {})
    assert (written.target, written.specs) == ("", ())
    assert re.search(problem, written.problem), written.problem


def test_a_step_of_nnx_is_measured_with_the_update_of_its_model():
    nnx = pytest.importorskip("flax.nnx")

    class Model(nnx.Module):
        def __init__(self):
            self.scale = nnx.Param(jnp.ones(3))

    @nnx.jit
    def train_step(model, x):
        model.scale[...] = jnp.cumsum(model.scale[...] * x)
        return x.sum()

    said = tapped("train_step", train_step, Model(), jnp.ones(3), jax_name="train_step")
    assert of(said, e.RunFinished)[0].status == "ok", of(said, e.RunFinished)
    (hlo,) = [event.text for event in of(said, e.TextRecorded) if event.name == "hlo"]
    assert "f32[3]" in hlo.partition("->")[2].partition("\n")[0], hlo[:500]  # of its entry: the new scale
    assert "cumsum" in hlo
