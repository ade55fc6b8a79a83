"""What the catalogue's files name instead of importing it is a module by the time that a function is called."""

from __future__ import annotations

import dis
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import jaxprof
from jaxprof.workloads import built_in, names
from jaxprof.workloads.model import DeferredModule, load_modules
from workloads.test_catalogue import TINY


def read_by(function: Callable[..., Any], seen: set[int] | None = None) -> Iterator[tuple[str, object]]:
    """The globals that `function`, what it closes over and what it calls read: name and value."""
    seen = set() if seen is None else seen
    if id(function) in seen:
        return
    seen.add(id(function))
    inside = [getattr(function, "__wrapped__", None)]
    inside += [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    if isinstance(function, FunctionType):
        for name in _names(function.__code__):
            if name in function.__globals__:
                value = function.__globals__[name]
                inside.append(value)
                yield name, value
    for value in inside:
        ours = str(getattr(value, "__module__", "")).startswith("jaxprof.workloads.catalogue")
        if callable(value) and (ours or hasattr(value, "__wrapped__")):
            yield from read_by(value, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from (step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@pytest.mark.parametrize("name", names())
def test_nothing_stands_for_a_module_in_a_function_that_is_timed(name: str) -> None:
    workload = built_in(name)
    for variant in workload.variants:
        read = dict(read_by(variant.build(TINY[name])))
        assert [key for key, value in read.items() if isinstance(value, DeferredModule)] == [], variant.name
        if variant.how == "jit" and name != "triad":
            assert any(isinstance(value, ModuleType) for value in read.values()), "the functions are really looked into"


@pytest.mark.process
def test_a_numpy_run_imports_numpy_alone() -> None:
    code = """
import sys
from jaxprof.workloads import built_in, names
from jaxprof.workloads.model import DeferredModule
for name in names():
    workload = built_in(name)
    for variant in workload.variants:
        if variant.how == "numpy":
            import numpy
            function = variant.build(workload.presets["quick"])
            assert not isinstance(function.__globals__.get("np"), DeferredModule), name
            if name in ("selu", "hessian", "vjp-jvp", "reduce"):
                values = {**workload.presets["quick"], "n": 10, "rows": 3, "columns": 4}
                inputs = workload.inputs(values, numpy.random.default_rng(0))
                variant.build(values)(*variant.arguments(inputs))
                if workload.expected:
                    workload.expected(values, inputs)
print([module for module in ("jax", "jaxlib", "ml_dtypes") if module in sys.modules])
"""
    path = {**os.environ, "PYTHONPATH": str(Path(jaxprof.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=path, timeout=100)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_file_gets_the_modules_once_and_jax_only_where_it_is_wanted() -> None:
    code = "def f(): return np, jnp"
    file: dict[str, Any] = {"np": DeferredModule("numpy"), "jnp": DeferredModule("jax.numpy"), "own": 3}
    exec(code, file)
    load_modules(file["f"], with_jax=False)
    assert file["np"] is np
    assert isinstance(file["jnp"], DeferredModule)
    load_modules(file["f"], with_jax=True)
    assert file["jnp"].__name__ == "jax.numpy"
    assert file["own"] == 3
    load_modules(print, with_jax=True)
