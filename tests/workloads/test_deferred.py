"""What the catalogue's files name instead of importing it is a module by the time that a function is called."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxprof
from jaxprof.workloads import built_in, names
from jaxprof.workloads.model import DeferredModule, load_modules
from workloads.test_catalogue import TINY


@pytest.mark.parametrize("name", names())
def test_nothing_stands_for_a_module_in_a_file_whose_functions_are_timed(name):
    workload = built_in(name)
    for variant in workload.variants:
        file = inspect.unwrap(variant.build(TINY[name])).__globals__
        left = [key for key, value in file.items() if isinstance(value, DeferredModule)]
        assert variant.how == "numpy" or left == [], variant.name


@pytest.mark.process
def test_a_numpy_run_imports_numpy_alone():
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


def test_a_file_gets_the_modules_once_and_jax_only_where_it_is_wanted():
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
