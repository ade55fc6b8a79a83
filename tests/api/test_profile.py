"""`jaxprof.profile`: a call written as it would be written without it. `jaxprof.load_hlo`: the modules of everything
that HLO can lie in."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxprof
from hlo_sources import SOURCES
from jaxprof.engine.measure import inprocess
from jaxprof.hlo.kernels.kernels import kernels

X = np.ones((4, 4), np.float32)


def power(x, n, *, scale, mode="plain", bias=None):
    y = x * scale
    for _ in range(n):
        y = y @ x
    if mode == "sine":
        y = (np if isinstance(y, np.ndarray) else jnp).sin(y)
    return y if bias is None else y + bias


COMPILED = functools.partial(jax.jit, static_argnames=("n", "mode"))(power)


def runs_of(function, *args, **options):
    runs = jaxprof.profile(function, *args, budget_seconds=0.02, **options).to_dict()["runs"]
    assert all(run["status"] == "ok" for run in runs), [run["error"] for run in runs]
    return runs


@pytest.fixture
def uncaptured(monkeypatch):
    """Without the profiler, which takes more time than all the rest."""
    measure = inprocess.measure_call

    def without(run, spec, *rest):
        measure(run, replace(spec, capture=False), *rest)

    monkeypatch.setattr(inprocess, "measure_call", without)


@pytest.mark.usefixtures("uncaptured")
@pytest.mark.parametrize(
    ("function", "args", "options"),
    [
        (power, (X,), {"n": 2, "scale": 2.0, "mode": "sine", "static_argnames": ("n", "mode")}),
        (power, (X, 2), {"scale": 2.0, "static_argnums": [1], "bias": X}),
        (COMPILED, (), {"x": X, "n": 2, "scale": jnp.float32(2), "bias": X}),
    ],
    ids=["names", "numbers", "compiled"],
)
def test_arguments_by_name_and_static_ones_by_name(function, args, options):
    (run,) = runs_of(function, *args, **options)
    assert run["variant"] == "jit"
    static = {name: options.pop(name) for name in ("static_argnames", "static_argnums") if name in options}
    call = inprocess.lay_out_call(function, args, options, **static)
    np.testing.assert_allclose(call.function(*call.arguments), power(*args, **options), rtol=1e-5)


@pytest.mark.usefixtures("uncaptured")
def test_what_is_given_by_name_is_no_constant_of_the_program():
    (run,) = runs_of(lambda x, *, y: x + y, X, y=X)
    assert run["memory"]["argument_bytes"] == 2 * X.nbytes


def test_missing_argument_fails_and_unknown_static_is_refused():
    (run,) = jaxprof.profile(power, X, 2, static_argnums=1, budget_seconds=0.02).to_dict()["runs"]
    assert run["status"] == "failed"
    assert "scale" in run["error"]
    with pytest.raises(jaxprof.UsageError, match="unknown static argument 'nn'"):
        jaxprof.profile(power, X, 2, scale=1.0, static_argnames="nn")


def test_declared_function_takes_given_arguments():
    """And compiled, whatever `jaxprof run` is to make of it."""

    @jaxprof.workload(inputs=["f32[n]"], parameters={"n": 3}, variants=["jax"], numpy=lambda x: x, expected=0.0)
    def doubled(x):
        return x + x

    (run,) = runs_of(doubled, X)
    assert run["variant"] == "jit"
    assert run["memory"]["argument_bytes"] == X.nbytes


@pytest.mark.process
def test_modules_of_hlo_and_what_holds_none(tmp_path):
    (found,) = jaxprof.load_hlo(str(SOURCES["dump"](tmp_path)))
    assert [kernel.name for kernel in kernels(found.module())] == ["exp"]
    assert "hlo_before" in found.stages
    with pytest.raises(jaxprof.FileRefusedError, match="there is no file"):
        jaxprof.load_hlo(tmp_path / "nothing")
