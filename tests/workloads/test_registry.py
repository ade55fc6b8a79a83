"""The catalogue as data: its order, its names, and what listing it may import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest

import jaxprof
from jaxprof.errors import UsageError
from jaxprof.workloads import built_in, infos, names
from jaxprof.workloads.model import WorkloadInfo, workload_info, worth_running


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


def test_variants_of_the_articles_are_there() -> None:
    wanted = {
        "matmul": {"numpy", "jax-from-numpy", "jax", "jit", "device-put"},
        "matmul-uniform": {"numpy", "jax", "jit"},
        "selu": {"numpy", "jax", "jit"},
        "batch-matmul-mean": {"numpy-loop", "numpy-batched", "jax", "jit", "jit-einsum"},
        "grad-logistic": {"numpy", "jax", "jit"},
        "grad-nested": {"jax"},
        "hessian": {"numpy", "jax", "jit"},
        "vjp-jvp": {"numpy", "jax", "jit"},
        "vmap": {"numpy", "naive-loop", "batched", "vmap"},
    }
    for name, variants in wanted.items():
        there = {variant.name for variant in built_in(name).variants if not variant.precision}
        assert there == variants
    assert built_in("matmul").variant("jax-from-numpy").inputs == "host"
    assert built_in("batch-matmul-mean").baseline == "numpy-batched"


def test_a_workload_as_data_survives_json() -> None:
    for listed in infos():
        assert msgspec.convert(json.loads(json.dumps(asdict(listed))), type=WorkloadInfo, strict=False) == listed
        assert listed.target == listed.name


@pytest.mark.parametrize("name", ["matmull", "batch_matmul_mean", "nothing-like-it", ""])
def test_an_unknown_name_is_refused_with_the_near_ones(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        built_in(name)
    assert "matmul" in refused.value.hint


def test_listing_imports_neither_jax_nor_numpy() -> None:
    code = (
        "import sys, jaxprof.workloads as w; w.infos(sources=True);"
        "print([m for m in ('jax', 'jaxlib', 'numpy', 'scipy', 'ml_dtypes', 'textual', 'click') if m in sys.modules])"
    )
    path = {**os.environ, "PYTHONPATH": str(Path(jaxprof.__file__).parent.parent)}
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=path)
    assert listed.stdout.strip() == "[]"


def test_highest_precision_is_not_worth_a_run_on_a_cpu() -> None:
    variants = workload_info(built_in("matmul"), sources=False).variants
    assert [variant.name for variant in variants if not worth_running(variant, "cpu")] == ["jit-highest"]
    assert all(worth_running(variant, "cuda") for variant in variants)
