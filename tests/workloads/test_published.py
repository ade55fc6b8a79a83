"""The figures that the sources printed are all there, and say what they are."""

from __future__ import annotations

import pytest

from jaxprof.workloads import built_in, names
from jaxprof.workloads.model import Published

FIGURES = [
    # workload, variant, phase, seconds, hardware (a part of it), n
    ("matmul", "jax", "run", 27.9e-3, "GPU", 3000),
    ("matmul", "jax-from-numpy", "run", 50.7e-3, "GPU", 3000),
    ("matmul", "device-put", "run", 27.3e-3, "GPU", 3000),
    ("matmul", "numpy", "run", 1.61, "Colab", 5000),
    ("matmul", "jax", "run", 3.49, "CPU", 5000),
    ("matmul", "jax", "transfer_in", 0.155e-3, "GPU", 5000),
    ("matmul", "jax", "first_run", 2.16, "GPU", 5000),
    ("matmul", "jax", "run", 68.9e-3, "GPU", 5000),
    ("matmul", "jax", "transfer_in", 0.164e-3, "TPU", 5000),
    ("matmul", "jax", "first_run", 0.837, "TPU", 5000),
    ("matmul", "jax", "run", 16.5e-3, "TPU", 5000),
    ("matmul-uniform", "numpy", "run", 3.9, "", 5000),
    ("matmul-uniform", "jax", "run", 0.109, "", 5000),
    ("selu", "numpy", "run", 7.6e-3, "CPU", 1_000_000),
    ("selu", "jax", "run", 4.8e-3, "CPU", 1_000_000),
    ("selu", "jax", "run", 1.21e-3, "GPU", 1_000_000),
    ("selu", "jax", "first_run", 0.447, "GPU", 1_000_000),
    ("selu", "jit", "run", 0.13e-3, "GPU", 1_000_000),
    ("selu", "jit", "first_run", 0.122, "GPU", 1_000_000),
    ("selu", "jax", "run", 861e-6, "GPU", 1_000_000),
    ("selu", "jit", "run", 142e-6, "GPU", 1_000_000),
    ("batch-matmul-mean", "numpy-loop", "run", 10.0, "i7 MacBook 2015", 100),
    ("batch-matmul-mean", "jax", "run", 2.2, "i7 MacBook 2015", 100),
    ("batch-matmul-mean", "numpy-loop", "run", 50.0, "i7 MacBook 2015", 150),
    ("batch-matmul-mean", "jax", "run", 3.0, "i7 MacBook 2015", 150),
    ("vmap", "naive-loop", "run", 2.54e-3, "", 10),
    ("vmap", "batched", "run", 26.5e-6, "", 10),
    ("vmap", "vmap", "run", 32.6e-6, "", 10),
]
WORDS = [
    ("matmul", "jax", "T4", "28× faster"),
    ("matmul", "jax-from-numpy", "T4", "slightly over"),
    ("matmul", "jax", "Xeon", "2× the time"),
    ("matmul", "numpy", "Xeon", "test A"),
    ("grad-logistic", "jax", "any", "[0.25, 0.19661194, 0.10499357]"),
    ("grad-nested", "jax", "any", "-0.0353256"),
    ("hessian", "jit", "any", "[3][0][0] = -2.524413"),
    ("vjp-jvp", "jax", "any", "cos(x) u"),
]
_SIZE = {"batch-matmul-mean": "batch", "vmap": "vectors"}
ALL = [(name, figure) for name in names() for figure in built_in(name).published]


@pytest.mark.parametrize(("name", "variant", "phase", "seconds", "hardware", "size"), FIGURES)
def test_a_printed_time_is_there(name: str, variant: str, phase: str, seconds: float, hardware: str, size: int) -> None:
    found = [
        figure
        for figure in built_in(name).published
        if (figure.variant, figure.phase) == (variant, phase)
        and figure.seconds == pytest.approx(seconds)
        and hardware in figure.hardware
        and figure.parameters[_SIZE.get(name, "n")] == size
    ]
    assert len(found) == 1


@pytest.mark.parametrize(("name", "variant", "hardware", "words"), WORDS)
def test_what_was_printed_in_words_is_there(name: str, variant: str, hardware: str, words: str) -> None:
    assert any(
        figure.variant == variant and hardware in figure.hardware and words in figure.text
        for figure in built_in(name).published
    )


def test_there_is_no_figure_that_nobody_printed() -> None:
    assert len(ALL) == len(FIGURES) + len(WORDS)


@pytest.mark.parametrize(("name", "figure"), ALL)
def test_a_figure_says_where_it_comes_from(name: str, figure: Published) -> None:
    workload = built_in(name)
    assert workload.variant(figure.variant)
    assert figure.source
    assert figure.hardware
    assert figure.statistic
    assert (figure.seconds is None) == bool(figure.text)
    assert set(figure.parameters) <= {parameter.name for parameter in workload.parameters}
    assert any(figure.parameters.items() <= dict(preset).items() for preset in workload.presets.values())


def test_what_is_not_like_for_like_says_why() -> None:
    for name, figure in ALL:
        if figure.phase == "transfer_in":
            assert "no transfer was timed" in figure.caveat
        if figure.phase == "first_run":
            assert "one run" in figure.caveat
        if name == "batch-matmul-mean":
            assert "k is not given" in figure.caveat
        if "quickstart" in figure.source and name in ("matmul", "selu"):
            assert figure.statistic == "mean ± sd of 7 runs"
