"""The catalogue as data: its order, its names, and what listing it may import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jaxprof
from jaxprof.errors import UsageError
from jaxprof.workloads import built_in, infos, names


def test_the_catalogue_is_in_its_order() -> None:
    listed = names()
    assert listed[:9] == [
        "matmul",
        "matmul-uniform",
        "selu",
        "batch-matmul-mean",
        "grad-logistic",
        "grad-nested",
        "hessian",
        "vjp-jvp",
        "vmap",
    ]
    assert set(listed[9:]) == {
        "transfer",
        "triad",
        "gemm-peak",
        "reduce",
        "sort",
        "fft",
        "conv2d",
        "layernorm",
        "attention",
        "scan-rnn",
        "mlp-train-step",
    }
    assert [listed_info.name for listed_info in infos(sources=False)] == listed


@pytest.mark.parametrize("name", ["matmull", "batch_matmul_mean", "nothing-like-it", ""])
def test_an_unknown_name_is_refused_with_the_near_ones(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        built_in(name)
    assert "matmul" in refused.value.hint


@pytest.mark.process
def test_listing_imports_neither_jax_nor_numpy() -> None:
    code = (
        "import sys, jaxprof.workloads as w; w.infos(sources=True);"
        "print([m for m in ('jax', 'jaxlib', 'numpy', 'scipy', 'ml_dtypes', 'textual', 'click') if m in sys.modules])"
    )
    path = {**os.environ, "PYTHONPATH": str(Path(jaxprof.__file__).parent.parent)}
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=path)
    assert listed.stdout.strip() == "[]"
