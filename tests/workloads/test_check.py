"""The error of a result: relative to the largest magnitude, infinite where it cannot be compared."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jaxprof.workloads import built_in
from jaxprof.workloads.check import relative_error, tolerance


def test_it_is_relative_to_the_largest_magnitude() -> None:
    assert relative_error(np.array([1.0, 101.0]), np.array([0.0, -100.0])) == pytest.approx(2.01)
    assert relative_error(np.array([0.5, -100.0]), np.array([0.0, -100.0])) == pytest.approx(0.005)


def test_each_array_of_a_tree_is_measured_by_itself() -> None:
    right = {"large": np.full(3, 1e6), "small": [np.ones(2), (np.float32(1.0),)]}
    wrong = {"small": [np.ones(2), (np.float32(1.5),)], "large": np.full(3, 1e6)}
    assert relative_error(wrong, right) == pytest.approx(0.5)
    assert relative_error((np.ones(2), None), [np.ones(2)]) == 0


@pytest.mark.parametrize(
    ("output", "right"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan])),
        (np.array([1.0, np.inf]), np.array([1.0, 2.0])),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf])),
        (np.ones((2, 1)), np.ones((1, 2))),
        (np.ones(1), np.float64(1)),
        ((np.ones(2),), (np.ones(2), np.ones(2))),
        ({}, {"x": np.ones(1)}),
    ],
)
def test_what_cannot_be_compared_is_infinitely_wrong(output: Any, right: Any) -> None:
    assert relative_error(output, right) == math.inf


def test_zeros_are_compared_absolutely_and_equal_infinities_are_equal() -> None:
    assert relative_error(np.array([0.0, 1e-3]), np.zeros(2)) == pytest.approx(1e-3)
    assert relative_error(np.array([-np.inf, 3.0]), np.array([-np.inf, 2.0])) == pytest.approx(0.5)
    assert relative_error(np.zeros((0, 3)), np.zeros((0, 3))) == 0
    assert relative_error((), ()) == 0


def test_all_kinds_of_numbers_are_understood() -> None:
    assert relative_error(jnp.ones(3, jnp.bfloat16), np.ones(3)) == 0
    assert relative_error(np.array([1 + 1j]), np.array([1 - 1j])) == pytest.approx(2 / math.sqrt(2))
    assert relative_error(np.array([True, False]), np.array([True, True])) == 1
    assert relative_error(np.array([250], np.uint8), np.array([251], np.uint8)) == pytest.approx(1 / 251)
    assert relative_error(2.5, 2.0) == pytest.approx(0.25)
    assert relative_error(jax.random.key(0), jax.random.key(0)) == 0
    assert relative_error(jax.random.key(0), jax.random.key(1)) > 0


def test_what_jax_knows_as_a_tree_is_one() -> None:
    partial = jax.tree_util.Partial(lambda x: x, np.ones(2))
    assert relative_error(partial, jax.tree_util.Partial(lambda x: x, np.full(2, 2.0))) == pytest.approx(0.5)
    with pytest.raises(TypeError, match="neither an array nor a tree"):
        relative_error(object(), np.ones(1))


@given(arrays.arrays(np.float64, arrays.array_shapes(), elements=st.floats(-1e6, 1e6)))
def test_a_result_is_right_of_itself_and_wrong_when_one_number_is_off(right: np.ndarray[Any, Any]) -> None:
    assert relative_error(right.copy(), right) == 0
    wrong = right.copy()
    wrong.flat[-1] += 2 * (np.max(np.abs(right)) or 1)
    assert relative_error(wrong, right) == pytest.approx(2)


def test_the_tolerance_follows_precision_and_dtype() -> None:
    workload = replace(built_in("matmul"), tolerance={"float32": 1e-4, "tf32": 1e-2})
    assert tolerance(workload, "float32", np.ones(1)) == 1e-4
    assert tolerance(workload, "tf32", np.ones(1)) == 1e-2
    assert tolerance(workload, "something newer", np.ones(1)) == 1e-4
    assert tolerance(workload, "float32", {"x": jnp.ones(1, jnp.bfloat16)}) == 5e-2
    assert tolerance(workload, "float32", (np.ones(1, np.float16),)) == 1e-2
