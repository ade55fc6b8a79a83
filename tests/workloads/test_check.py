"""Every number of a result is compared with the expected one, and what cannot be compared is wrong."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.workloads import load_built_in
from jaxprof.workloads.check import compare, tolerance
from workloads.running import relative_error


@pytest.mark.parametrize(
    ("result", "right", "error"),
    [
        # relative to the largest magnitude of each array of a tree
        (np.array([1.0, 101.0]), np.array([0.0, -100.0]), 2.01),
        (
            {"small": [np.ones(2), (np.float32(1.5),)], "large": np.full(3, 1e6)},
            {"large": np.full(3, 1e6), "small": [np.ones(2), (np.float32(1.0),)]},
            0.5,
        ),
        ((np.ones(2), None), [np.ones(2)], 0),
        # zeros are compared absolutely, and equal infinities are equal
        (np.array([0.0, 1e-3]), np.zeros(2), 1e-3),
        (np.array([-np.inf, 3.0]), np.array([-np.inf, 2.0]), 0.5),
        # all kinds of numbers
        (np.ones(3, jnp.bfloat16), np.ones(3), 0),
        (np.array([1 + 1j]), np.array([1 - 1j]), 2 / math.sqrt(2)),
        (np.array([250], np.uint8), np.array([251], np.uint8), 1 / 251),
        (2.5, 2.0, 0.25),
    ],
)
def test_an_error_is_relative_to_the_largest_magnitude(result, right, error):
    assert relative_error(result, right) == pytest.approx(error)


@pytest.mark.parametrize(
    ("output", "right"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (np.array([1.0, 2.0]), np.array([1.0, np.nan])),
        (np.array([True, True]), np.array([1.0, 1.0])),
        (np.array([1.0]), np.array([1])),
        (np.array([1 + 0j]), np.array([1.0])),
        (np.array([True]), 1),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf])),
        (np.ones((2, 1)), np.ones((1, 2))),
        ((np.ones(2),), (np.ones(2), np.ones(2))),
        ({}, {"x": np.ones(1)}),
    ],
)
def test_what_cannot_be_compared_is_infinitely_wrong(output, right):
    found = compare(output, right, 1e-4, elementwise=True)
    assert found.passed is False
    assert found.max_relative_error == math.inf
    assert found.note or found.wrong_elements == 1


WIDE = 5 * np.random.default_rng(0).standard_normal(100_000)
"""`exp` of these goes over eighteen orders of magnitude."""


@pytest.mark.parametrize("spread", [0.2, 1.0])
@pytest.mark.parametrize("wrong", [lambda right: right * np.float32(1.01), np.zeros_like])
def test_many_wrong_numbers_fail_despite_the_norm(spread, wrong):
    """What 41 % of the numbers are does not matter beside the largest one."""
    x = (spread * WIDE).astype(np.float32)
    right = np.exp(x)
    result = np.where(x < np.quantile(x, 0.41), wrong(right), right)
    found = compare(result, right, 1e-4, elementwise=True)
    assert not found.passed
    assert found.wrong_elements / found.elements == pytest.approx(0.41, abs=0.02)
    at = int(found.worst_at.strip("[]"))
    assert (found.worst_got, found.worst_expected) == (str(result[at]), str(right[at]))
    if spread == 1.0:
        assert found.max_relative_error < 1e-8, "the norm alone would let it pass"
    assert compare(right * np.float32(1 + 5e-7), right, 1e-4, elementwise=True).passed


def test_numbers_of_a_sum_are_held_to_what_cancelled_in_it():
    random = np.random.default_rng(1)
    x, y = random.standard_normal((2, 200, 200))
    right, rounded = x @ y, (x.astype(np.float32) @ y.astype(np.float32))
    nearest_zero = np.unravel_index(np.abs(right).argmin(), right.shape)
    assert abs(rounded[nearest_zero] / right[nearest_zero] - 1) > 1e-4, "relative to itself it is far off"
    assert compare(rounded, right, 1e-5).passed
    wrong = rounded.copy()
    wrong[nearest_zero] += 1e-3 * np.median(np.abs(right))
    found = compare(wrong, right, 1e-5)
    assert found.passed is False
    assert found.wrong_elements == 1
    assert found.worst_at == f"[{nearest_zero[0]}, {nearest_zero[1]}]"
    assert found.max_relative_error < 1e-3, "beside the largest number it is small"


@pytest.mark.parametrize(
    "function",
    [lambda m, x: 1 - m.cos(0.1 * x), lambda m, x: m.exp(20 * x), lambda m, x: m.sqrt(x)],
    ids=["1 - cos", "exp over 70 orders", "NaN for half"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_elementwise_result_passes_where_terms_cancel(function):
    x = np.random.default_rng(2).standard_normal(100_000, dtype=np.float32)
    result = jax.jit(lambda x: function(jnp, x))(x)
    assert compare(result, function(np, x), 1e-4, elementwise=True).passed


def test_not_a_number_is_right_where_it_is_expected_and_said():
    some = np.array([1.0, np.nan, 3.0])
    found = compare({"x": some.astype(np.float32)}, {"x": some}, 1e-4)
    assert found.passed
    assert found.note == "1 of 3 values are NaN, as expected"
    assert not found.worst_got, "none is off"


def test_integers_and_keys_are_the_same_or_wrong():
    right = np.array([2**62, 5, 7])
    found = compare(right + np.array([1, 0, 0]), right, 0.5)
    assert found.passed is False, "float64 cannot tell"
    assert found.wrong_elements == 1, "float64 cannot tell"
    assert found.worst_at == "[0]", "float64 cannot tell"
    assert compare(right.astype(np.int64), right.astype(np.uint64), 0.0).passed, "their values are compared"
    assert relative_error(jax.random.key(0), jax.random.key(0)) == 0
    assert not compare(jax.random.key(1), jax.random.key(2), 0.5).passed
    assert compare(np.float32(3), 3, 0.0).passed, "a Python number stands for whatever can hold it"


def test_the_worst_number_of_a_tree_is_named_by_its_way():
    right = {"b": np.ones(3), "w": [np.ones((2, 2)), np.float32(2)]}
    wrong = {"b": np.ones(3), "w": [np.array([[1, 1], [1.5, 1.001]]), np.float32(2)]}
    found = compare(wrong, right, 1e-4)
    assert (found.elements, found.wrong_elements) == (8, 2)
    assert (found.worst_at, found.worst_got, found.worst_expected) == ("['w'][0][1, 0]", "1.5", "1.0")
    one = compare(np.float32(1.5), np.float32(1), 1e-4)
    assert one.worst_at == ""


def test_a_large_array_is_compared_in_parts():
    right = np.ones((1500, 1501), np.float32)
    wrong = right.copy()
    wrong[0, 3] = wrong[1400, 7] = 2
    wrong[1400, 8] = 3
    found = compare(wrong, right, 1e-4)
    assert (found.wrong_elements, found.worst_at) == (3, "[1400, 8]")


def test_the_tolerance_follows_precision_and_dtype():
    workload = replace(load_built_in("matmul"), tolerance={"float32": 1e-4, "tf32": 1e-2})
    assert tolerance(workload, "tf32", np.ones(1)) == 1e-2
    assert tolerance(workload, "something newer", np.ones(1)) == 1e-4
    assert tolerance(workload, "float32", {"x": jnp.ones(1, jnp.bfloat16)}) == 5e-2
    assert tolerance(workload, "float32", np.ones(1), jnp.ones(1, jnp.bfloat16)) == 5e-2, "of the result, too"
    assert tolerance(replace(workload, tolerance={"float32": 0.0}), "float32", jnp.ones(1, jnp.bfloat16)) == 0
    for result, accepted in ((np.ones(1), 1e-9), (np.ones(1, np.float32), 1e-6)):
        assert tolerance(replace(workload, tolerance={"float64": 1e-9}), "float64", result) == accepted
