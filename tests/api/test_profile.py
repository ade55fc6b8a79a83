"""`jaxprof.profile`: a call written as it would be written without it. `jaxprof.load_hlo`: the modules of everything
that HLO can lie in."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxprof
from hlo_sources import BOTH_STAGES, SOURCES, WRONG
from jaxprof.analysis import result
from jaxprof.engine.measure import inprocess
from jaxprof.hlo.analysis.kernels import kernels

X = np.ones((4, 4), np.float32)


def power(x: Any, n: int, *, scale: Any, mode: str = "plain", bias: Any = None) -> Any:
    y = x * scale
    for _ in range(n):
        y = y @ x
    if mode == "sine":
        y = jnp.sin(y)
    return y if bias is None else y + bias


def power_numpy(x: Any, n: int, *, scale: Any, mode: str = "plain", bias: Any = None) -> Any:
    y = x * scale
    for _ in range(n):
        y = y @ x
    return (np.sin(y) if mode == "sine" else y) + (0 if bias is None else bias)


COMPILED = functools.partial(jax.jit, static_argnames=("n", "mode"))(power)


def runs_of(function: Callable[..., Any], *args: Any, **options: Any) -> list[dict[str, Any]]:
    runs = jaxprof.profile(function, *args, budget_seconds=0.02, **options).to_dict()["runs"]
    assert all(run["status"] == "ok" for run in runs), [run["error"] for run in runs]
    return runs


@pytest.fixture(autouse=True)
def brief_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """How soon calls settle after another's turn is asked in a second, and not what is tested here."""
    monkeypatch.setattr("jaxprof.stats.turns.PROBE_SECONDS", 0.005)


@pytest.fixture
def uncaptured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the profiler, which takes more time than all the rest."""
    measure = inprocess.measure_variants

    def without(call: Any, limits: Any, *rest: Any, **more: Any) -> None:
        measure(call, replace(limits, capture=False), *rest, **more)

    monkeypatch.setattr(inprocess, "measure_variants", without)


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
def test_arguments_by_name_and_static_ones_by_name(function: Any, args: Any, options: dict[str, Any]) -> None:
    runs = runs_of(function, *args, **options, baseline=power_numpy)
    assert [run["variant"] for run in runs] == ["numpy", "jit"]
    assert runs[1]["check"]["passed"]


def test_what_is_given_by_name_is_no_constant_of_the_program() -> None:
    session = jaxprof.profile(lambda x, *, y: x + y, X, y=X, budget_seconds=0.02)
    (run,) = session.to_dict()["runs"]
    assert run["memory"]["argument_bytes"] == 2 * X.nbytes
    assert "jit" in run["variant"]


def test_a_static_argument_that_is_not_there_is_refused() -> None:
    with pytest.raises(jaxprof.UsageError, match="unknown static argument 'nn'") as raised:
        jaxprof.profile(power, X, 2, scale=1.0, static_argnames="nn")
    assert "n" in raised.value.hint


def test_a_missing_argument_is_a_failed_run() -> None:
    (run,) = jaxprof.profile(power, X, 2, static_argnums=1, budget_seconds=0.02).to_dict()["runs"]
    assert run["status"] == "failed"
    assert "scale" in run["error"]


def test_a_declared_function_is_measured_with_the_arguments_that_it_is_given() -> None:
    """And compiled, whatever `jaxprof run` is to make of it."""

    @jaxprof.workload(inputs=["f32[n]"], parameters={"n": 3}, variants=["jax"], numpy=lambda x: x, expected=0.0)
    def doubled(x: Any) -> Any:
        return x + x

    (run,) = runs_of(doubled, X)
    assert run["variant"] == "jit"
    assert run["memory"]["argument_bytes"] == X.nbytes


@pytest.mark.usefixtures("uncaptured")
def test_the_variants_of_a_call_take_turns_in_one_launch() -> None:
    session = jaxprof.profile(
        lambda x: jnp.tanh(x @ x), np.ones((64, 64), np.float32), op_by_op=True, budget_seconds=0.2
    )
    first, second = session.runs.values()
    blocks = [[turn.number for turn in run.launches[0].turns] for run in (first, second)]
    assert len({*blocks[0], *blocks[1]}) == 2 * len(blocks[0])
    assert min(blocks[0]) < max(blocks[1])
    assert min(blocks[1]) < max(blocks[0])
    versus = result(session, second.id).versus
    assert versus is not None
    assert versus.speedup.basis == "1 launch: holds for these processes"
    assert "not measured together" not in str(session)
    assert "compiled_again" not in {warning.code for run in (first, second) for warning in run.warnings}


@pytest.mark.process
@pytest.mark.parametrize("name", ["text", "dump", "session"])
def test_modules_of_each(name: str, tmp_path: Path) -> None:
    (found,) = jaxprof.load_hlo(str(SOURCES[name](tmp_path)))
    assert [kernel.name for kernel in kernels(found.module())] == ["exp"]
    assert ("hlo_before" in found.stages) == (name in BOTH_STAGES)


@pytest.mark.process
@pytest.mark.parametrize("name", list(WRONG)[:3])
def test_what_holds_no_hlo_is_refused(name: str, tmp_path: Path) -> None:
    make, said = WRONG[name]
    with pytest.raises(jaxprof.FileRefusedError, match="there is no file" if name == "nothing" else said):
        jaxprof.load_hlo(make(tmp_path))
