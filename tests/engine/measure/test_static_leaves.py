"""Functions of trees whose leaves are not all arrays, as a model of equinox is, with its activation functions."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.measure.test_stages import of, reporter
from jaxprof.engine.measure.stages import compile_ledger, compile_stages
from jaxprof.engine.measure.static_leaves import ArraysJitted, as_jitted
from jaxprof.events import PhaseEnded


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    weights: jax.Array
    activation: Callable[..., jax.Array]


MODEL = Layer(jnp.full((4, 4), 0.5), jnp.tanh)
X = jnp.ones((2, 4))


def step(model, x):
    new = Layer(model.weights - 0.1, model.activation)
    return new, model.activation(x @ model.weights), "relu"


def test_static_leaves_of_arguments_and_results():
    function = as_jitted(step, (MODEL, X))
    (model, y, name), (_, expected, _) = function(MODEL, X), step(MODEL, X)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert (model.activation, name) == (jnp.tanh, "relu")
    np.testing.assert_allclose(model.weights, 0.4)
    shapes = function.eval_shape(MODEL, X)
    assert shapes[0].weights.shape == (4, 4)
    assert shapes[1].shape == (2, 4)
    assert shapes[2] == "relu"


def test_another_static_leaf_is_another_program():
    function = as_jitted(step, (MODEL, X))
    other = Layer(MODEL.weights, jnp.sin)
    assert function(MODEL, X)[0].activation is jnp.tanh
    np.testing.assert_allclose(function(other, X)[1], jnp.sin(X @ MODEL.weights), rtol=1e-6)
    assert function(MODEL, X)[0].activation is jnp.tanh


def test_arrays_and_numbers_alone_are_left_to_jit():
    assert not isinstance(as_jitted(step, (X, 2, 1.5, True, None)), ArraysJitted)


def compiled(function, *arguments):
    recorder, events = reporter()
    return compile_stages(recorder, function, arguments, keep_constants=False), events


def test_stages_of_a_function_with_static_leaves():
    program, events = compiled(step, MODEL, X)
    assert [phase.phase for phase in of(events, PhaseEnded)] == ["trace", "lower", "compile"]
    assert "jit_step" in program.hlo
    assert "dot" in program.hlo


def test_stages_of_equinox_filter_jit():
    equinox = pytest.importorskip("equinox")
    program, events = compiled(equinox.filter_jit(step), MODEL, X)
    assert [phase.phase for phase in of(events, PhaseEnded)] == ["trace", "lower", "compile"]
    assert "dot" in program.hlo
    with compile_ledger() as ledger:
        program.jitted(MODEL, X)
    assert not ledger.count("compile"), "the call finds the program"
