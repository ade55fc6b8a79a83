"""Programs of tests compiled for devices that are not here. Skipped, with the reason, without the compilers."""

import pytest

from jaxprof.devices.targets import parse_target, wheels
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.runner import find_interpreter
from jaxprof.testing.elsewhere import target_of

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
