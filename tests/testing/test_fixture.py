"""The fixture `jaxprof`, as tests use it: here, and in runs of pytest in processes of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@jax.jit
def step(w, x):
    return jnp.tanh(x @ w).sum()


W, X = np.ones((4, 4), np.float32), np.ones((8, 4), np.float32)


def test_facts_of_a_program(jaxprof):
    result = jaxprof(step, W, X)
    assert float(result.value) == pytest.approx(8 * 4 * np.tanh(4))
    assert result.kernels >= 1
    assert result.flops >= 2 * 8 * 4 * 4
    assert result.bytes >= W.nbytes + X.nbytes
    assert result.memory.peak_bytes >= W.nbytes + X.nbytes
    assert "tanh" in result.session.text("r1", "hlo")
    assert result.failure == ""


def test_compiles_are_those_of_the_whole_test(jaxprof):
    first = jaxprof(step, W, X)
    assert first.compiles == 1
    assert jaxprof(step, W, X).compiles == 1
    second = jaxprof(step, W, X[:3])
    assert first.compiles == second.compiles == 2
    assert "f32[8,4] → f32[3,4]" in second.compilations[1].reason
    step(W, X[:5])
    assert second.compiles == 3
    assert first.flops > second.flops


@pytest.mark.parametrize("rows", [8, 8, 3], ids=["first", "again", "other"])  # noqa: PT014
def test_the_tests_before_do_not_count(jaxprof, rows):
    assert jaxprof(step, W, X[:rows]).compiles == 1


def test_what_is_no_jitted_function_is_jitted_once(jaxprof):
    class Model:
        __hash__ = None

        def __call__(self, x, *, by=2):
            return x * by

    model = Model()
    assert jaxprof(model, X, by=2).value.shape == X.shape
    assert jaxprof(model, X, by=3).compiles == 1


def test_a_function_that_raises_raises(jaxprof):
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jaxprof(fails, X)
    with pytest.raises(jax.errors.TracerBoolConversionError) as raised:
        jaxprof(lambda x: x if x > 0 else -x, 1.0)
    assert "compiles a plain function with jax.jit" in raised.value.__notes__[-1]
    assert jaxprof(step, W, X).compiles == 1


@pytest.mark.process
def test_without_jax_it_says_so(run_tests, folder):
    (folder / "conftest.py").write_text("import sys\nsys.modules['jax'] = None\n")
    result = run_tests("def test_it(jaxprof):\n    pass\n", "-q")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the fixture and the marker jaxprof need jax, which cannot be imported*"])


LOOKS = """
import sys

import pytest


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    found = sorted(name for name in sys.modules if name.split(".")[0] in ("jax", "jaxlib", "jaxprof"))
    print("FOUND", found, "pytest_jaxprof" in sys.modules)
"""


@pytest.mark.process
@pytest.mark.parametrize(("body", "found"), [("pass", "[[]]"), ("import jaxprof", "*'jaxprof'*")])
def test_unused_it_imports_neither_jax_nor_jaxprof(run_tests, folder, body, found):
    (folder / "conftest.py").write_text(LOOKS)
    result = run_tests(f"def test_it():\n    {body}\n")
    result.stdout.fnmatch_lines([f"FOUND {found} True"])


def test_no_secret_is_among_the_arguments(jaxprof):
    keyed = jax.jit(lambda x, api_key, login: x, static_argnames=("api_key", "login"))
    result = jaxprof(keyed, X, "hunter2", login=("bob", "https://bob:hunter2@host"))
    assert result.session.runs["r1"].plan.arguments[1:] == ("[redacted]", "'bob'", "'https://[redacted]@host'")
