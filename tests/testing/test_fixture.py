"""The fixture `jaxprof`, as tests use it: here, and in runs of pytest in processes of their own. Programs compiled for
devices that are not here: skipped, with the reason, without the compilers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.devices.targets import parse_target, wheels
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.runner.interpreter import find_interpreter
from jaxprof.testing.programs import target_of


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


TESTS = """
import jax
import jax.numpy as jnp
import numpy as np


def test_device(jaxprof):
    scale = 3.0

    @jax.jit
    def step(state, *, x):  # no name leads to it
        return jnp.tanh(state @ x) * scale

    donating = jax.jit(step, donate_argnums=0)
    state = jnp.ones((256, 256))
    result = jaxprof(donating, state, x=jnp.ones((256, 256)))
    there = result.for_device("DEVICE")
    assert there.failure == ""
    assert there.flops >= 2 * 256**3 and there.kernels >= 1
    assert there.memory.peak_bytes >= 2 * 4 * 256**2
    assert there.facts["donated"] == 4 * 256**2
    assert "call_exported" not in there.session.text("r1", "hlo")
    assert result.for_device("DEVICE") is there
    assert result.compiles == 1
    assert result.session.figures[0].run.device_kind == "cpu"


def test_keys_and_statics(jaxprof):
    sample = jax.jit(lambda key, n: jax.random.normal(key, (n,)), static_argnums=1)
    assert jaxprof(sample, jax.random.key(0), 8).for_device("DEVICE").kernels >= 1
"""


def needs_compiler(device):
    try:
        wheels.environment(parse_target(device).chip.vendor, find_interpreter().path)
    except JaxprofError as error:
        pytest.skip(f"{error.what}: {error.hint}")


@pytest.mark.process
@pytest.mark.parametrize("device", ["h100", "tpu-v5e"])
def test_a_program_is_compiled_for_a_device_that_is_not_here(run_tests, device):
    needs_compiler(device)
    result = run_tests(TESTS.replace("DEVICE", device), "-q")
    assert result.ret == 0, result.stdout.str()


@pytest.mark.process
def test_without_its_compiler_the_test_is_skipped(run_tests_here, folder, monkeypatch):
    monkeypatch.setenv("JAXPROF_TARGETS", str(folder / "none"))
    result = run_tests_here(TESTS.replace("DEVICE", "tpu-v5e"), "-q", "-rs")
    result.stdout.fnmatch_lines(
        ["SKIPPED*compiling for tpu devices needs packages*jaxprof devices target install tpu*"]
    )
    result.assert_outcomes(skipped=2)


@pytest.mark.parametrize("device", ["h100:8", "h10"])
def test_what_is_not_one_known_device_is_refused(device):
    with pytest.raises(UsageError, match=device):
        target_of(device)
