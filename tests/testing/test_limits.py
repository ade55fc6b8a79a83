"""The marker `jaxprof` and its limits."""

from types import SimpleNamespace

import pytest

import pytest_jaxprof
from jaxprof.testing.items import enforce_limits
from tables import rows

LIMITED = """
import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = np.ones((8, 4), np.float32)


@jax.jit
def step(x):
    return jnp.tanh(x).sum()


@pytest.mark.jaxprof(max_compiles=1)
def test_body_compiles_again():
    for rows in (8, 7, 8):
        step(X[:rows])


@pytest.mark.jaxprof(max_compiles=1)
def test_body_within():
    for rows in (8, 8):
        step(X[:rows])
    jax.grad(step)(X)
    jnp.sort(X), jnp.sort(X[:3])  # of jax, not of the test


@pytest.mark.jaxprof(max_compiles=1)
def test_new_function_each_time():
    for by in (1, 2):
        jax.jit(lambda x: x * by)(X)


@pytest.mark.jaxprof(max_kernels=100, max_flops=1e9, max_bytes=1e9, max_peak_bytes=1e9)
def test_within(jaxprof):
    jaxprof(step, X)


@pytest.mark.jaxprof(max_kernels=0, max_flops=1, max_bytes=10, max_peak_bytes=100)
def test_above(jaxprof):
    jaxprof(step, X)


@pytest.mark.jaxprof(max_kernels=3)
def test_nothing_to_look_at():
    step(X)


@pytest.mark.jaxprof(max_kernels=3)
def test_unknown(jaxprof, monkeypatch):
    monkeypatch.setattr("jaxprof.engine.measure.stages._stablehlo", lambda *asked: 1 / 0)
    assert jaxprof(step, X).kernels is None


@pytest.mark.jaxprof(max_compiles=0)
def test_failure_of_its_own(jaxprof):
    jaxprof(step, X)
    assert 1 == 2, "its own"


@pytest.mark.jaxprof(max_compiles=1)
class TestNearest:
    @pytest.mark.jaxprof(max_compiles=2)
    def test_of_the_method(self):
        step(X), step(X[:7])

    @pytest.mark.jaxprof(max_kernels=100)
    def test_of_both(self, jaxprof):
        jaxprof(step, X), jaxprof(step, X[:7])
"""


def test_limits(run_tests_here):
    result = run_tests_here(LIMITED)
    passed = [line for line in result.stdout.lines if line.startswith("FAILED")]
    assert sorted(line.split("::", 1)[1].split(" - ")[0] for line in passed) == [
        "TestNearest::test_of_both",
        "test_above",
        "test_body_compiles_again",
        "test_failure_of_its_own",
        "test_new_function_each_time",
        "test_nothing_to_look_at",
        "test_unknown",
    ]
    result.stdout.fnmatch_lines(
        [
            "jaxprof: step: max_compiles=1, compiled 2 times",
            "  1. step(x: f32[[]8,4] from NumPy) at *test_it.py:*: first time",
            "  2. step(x: f32[[]7,4] from NumPy) at *test_it.py:*: shape of x: f32[[]8,4] → f32[[]7,4]",
        ]
    )
    result.stdout.fnmatch_lines(["  2. <lambda>(x: f32[[]8,4] from NumPy) at *: new function object each time*"])
    result.stdout.fnmatch_lines(
        [
            "jaxprof: step(f32[[]8,4]): max_kernels=0, found [1-9]*",
            "jaxprof: step(f32[[]8,4]): max_flops=1, found *",
            "jaxprof: step(f32[[]8,4]): max_bytes=10, found *",
            "jaxprof: step(f32[[]8,4]): max_peak_bytes=100, found *",
        ]
    )
    result.stdout.fnmatch_lines(["jaxprof: max_kernels: the test has not called the fixture jaxprof*"])
    result.stdout.fnmatch_lines(["jaxprof: step(f32[[]8,4]): max_kernels=3, not known: *division by zero*"])
    result.stdout.no_fnmatch_line("jaxprof: *max_compiles=0*")


class Marked(SimpleNamespace):
    def get_closest_marker(self, name):
        return eval(f"pytest.mark.jaxprof({self.marker})").mark

    def iter_markers(self, name):
        return [self.get_closest_marker(name)]


def test_a_wrong_marker_is_a_usage_error():
    for marker, said in rows("""
        max_kernel=1            unknown limit of the marker jaxprof 'max_kernel'. Did you mean max_kernels
        3                       the marker jaxprof takes no 3 without a name
        max_compiles=True       max_compiles=True. A limit is a number
        max_compiles=-1         max_compiles=-1. A limit is a number
        max_flops='1e9'         max_flops='1e9'. A limit is a number
        max_flops=float('nan')  max_flops=nan. A limit is a number
    """):
        item = Marked(config=SimpleNamespace(), nodeid="test_it.py::test_it", marker=marker)
        with pytest.raises(pytest.UsageError) as raised:
            pytest_jaxprof.pytest_collection_modifyitems([item])
        assert str(raised.value).startswith("test_it.py::test_it: ")
        assert said in str(raised.value)


def test_a_worker_of_xdist_fails_the_test_and_not_the_run():
    config = SimpleNamespace(workerinput={})
    item = Marked(config=config, nodeid="test_it.py::test_it", marker="max_kernel=1")
    pytest_jaxprof.pytest_collection_modifyitems([item])
    with pytest.raises(pytest.fail.Exception, match="max_kernels"), enforce_limits(item):
        pass
