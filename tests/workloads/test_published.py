"""The figures that the sources printed are all there, and say what they are."""

from __future__ import annotations

import pytest

from jaxprof.workloads import built_in, names

MEAN, BEST_OF_5, BEST_OF_3, ONE, NOT_SAID = ("mean", 7), ("best", 5), ("best", 3), ("one call", None), ("", None)
FIGURES = [
    # workload, variant, phase, seconds, deviation, statistic, hardware (a part of it), n
    ("matmul", "jax", "run", 27.9e-3, 2.26e-3, MEAN, "GPU", 3000),
    ("matmul", "jax-from-numpy", "run", 50.7e-3, 1.89e-3, MEAN, "GPU", 3000),
    ("matmul", "device-put", "run", 27.3e-3, 0.327e-3, MEAN, "GPU", 3000),
    ("matmul", "numpy", "run", 1.61, None, BEST_OF_5, "Colab", 5000),
    ("matmul", "jax", "run", 3.49, None, BEST_OF_5, "CPU", 5000),
    ("matmul", "jax", "transfer_in", 0.155e-3, None, ONE, "GPU", 5000),
    ("matmul", "jax", "first_run", 2.16, None, ONE, "GPU", 5000),
    ("matmul", "jax", "run", 68.9e-3, None, BEST_OF_5, "GPU", 5000),
    ("matmul", "jax", "transfer_in", 0.164e-3, None, ONE, "TPU", 5000),
    ("matmul", "jax", "first_run", 0.837, None, ONE, "TPU", 5000),
    ("matmul", "jax", "run", 16.5e-3, None, BEST_OF_5, "TPU", 5000),
    ("matmul-uniform", "numpy", "run", 3.9, None, BEST_OF_3, "", 5000),
    ("matmul-uniform", "jax", "run", 0.109, None, BEST_OF_3, "", 5000),
    ("selu", "numpy", "run", 7.6e-3, None, BEST_OF_5, "CPU", 1_000_000),
    ("selu", "jax", "first_run", 0.124, None, ONE, "CPU", 1_000_000),
    ("selu", "jax", "run", 4.8e-3, None, BEST_OF_5, "CPU", 1_000_000),
    ("selu", "jax", "transfer_in", 109e-6, None, ONE, "GPU", 1_000_000),
    ("selu", "jax", "first_run", 0.447, None, ONE, "GPU", 1_000_000),
    ("selu", "jax", "run", 1.21e-3, None, BEST_OF_5, "GPU", 1_000_000),
    ("selu", "jit", "transfer_in", 104e-6, None, ONE, "GPU", 1_000_000),
    ("selu", "jit", "first_run", 0.122, None, ONE, "GPU", 1_000_000),
    ("selu", "jit", "run", 0.13e-3, None, BEST_OF_5, "GPU", 1_000_000),
    ("selu", "jax", "run", 861e-6, 385e-6, MEAN, "GPU", 1_000_000),
    ("selu", "jit", "run", 142e-6, 4.72e-6, MEAN, "GPU", 1_000_000),
    ("batch-matmul-mean", "numpy-loop", "run", 10.0, None, NOT_SAID, "i7 MacBook 2015", 100),
    ("batch-matmul-mean", "jax", "run", 2.2, None, NOT_SAID, "i7 MacBook 2015", 100),
    ("batch-matmul-mean", "numpy-loop", "run", 50.0, None, NOT_SAID, "i7 MacBook 2015", 150),
    ("batch-matmul-mean", "jax", "run", 3.0, None, NOT_SAID, "i7 MacBook 2015", 150),
    ("vmap", "naive-loop", "run", 2540e-6, 294e-6, MEAN, "GPU", 10),
    ("vmap", "batched", "run", 26.5e-6, 1.44e-6, MEAN, "GPU", 10),
    ("vmap", "vmap", "run", 32.6e-6, 4.39e-6, MEAN, "GPU", 10),
]
WORDS = [
    ("matmul", "jax", "T4", "28× faster"),
    ("matmul", "jax-from-numpy", "T4", "slightly over"),
    ("matmul", "jax-from-numpy", "Xeon", 'test B: "two times more" time than NumPy (多了兩倍時間)'),
    ("matmul", "jax", "Xeon", 'test C: "two times more" time than NumPy (多了兩倍時間)'),
    ("matmul", "numpy", "Xeon", "test A"),
    ("grad-logistic", "jax", "any", "[0.25, 0.19661194, 0.10499357]"),
    ("grad-nested", "jax", "any", "-0.0353256"),
    ("hessian", "jit", "any", "[3][0][0] = -2.524413"),
]
_SIZE = {"batch-matmul-mean": "batch", "vmap": "vectors"}
ALL = [(name, figure) for name in names() for figure in built_in(name).published]


@pytest.mark.parametrize(("name", "variant", "phase", "seconds", "deviation", "statistic", "hardware", "size"), FIGURES)
def test_a_printed_time_is_there(
    name: str,
    variant: str,
    phase: str,
    seconds: float,
    deviation: float | None,
    statistic: tuple[str, int | None],
    hardware: str,
    size: int,
) -> None:
    found = [
        figure
        for figure in built_in(name).published
        if (figure.variant, figure.phase) == (variant, phase)
        and figure.seconds == pytest.approx(seconds)
        and hardware in figure.hardware
        and figure.parameters[_SIZE.get(name, "n")] == size
    ]
    assert len(found) == 1
    assert found[0].deviation_seconds == (None if deviation is None else pytest.approx(deviation))
    assert (found[0].kind, found[0].runs) == statistic


@pytest.mark.parametrize(("name", "variant", "hardware", "words"), WORDS)
def test_what_was_printed_in_words_is_there(name: str, variant: str, hardware: str, words: str) -> None:
    assert any(
        figure.variant == variant and hardware in figure.hardware and words in figure.text
        for figure in built_in(name).published
    )


def test_there_is_no_figure_that_nobody_printed() -> None:
    assert len(ALL) == len(FIGURES) + len(WORDS)


def test_what_is_not_like_for_like_says_why() -> None:
    for name, figure in ALL:
        if figure.phase == "transfer_in":
            assert "no transfer was timed" in figure.caveat
        if figure.phase == "first_run":
            assert "one run" in figure.caveat
        if name == "batch-matmul-mean":
            assert "k is not given" in figure.caveat
        if figure.phase == "transfer_in" and name == "selu":
            assert figure.hardware == "Colab GPU"
        if name == "vmap":
            assert "closes over the matrix" in figure.caveat
        if name == "matmul-uniform" and figure.variant == "jax":
            assert "does not wait" in figure.caveat
