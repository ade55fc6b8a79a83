"""The figures that the sources printed are all there, and say what they are."""

from __future__ import annotations

import pytest

from jaxprof.workloads import built_in, names

BEST_OF_5, ONE, NOT_SAID = ("best", 5), ("one call", None), ("", None)
FIGURES = [
    # workload, variant, phase, seconds, deviation, statistic, hardware (a part of it), n
    ("matmul", "numpy", "run", 1.61, None, BEST_OF_5, "Colab", 5000),
    ("matmul", "jax", "run", 3.49, None, BEST_OF_5, "CPU", 5000),
    ("matmul", "jax", "transfer_in", 0.155e-3, None, ONE, "GPU", 5000),
    ("matmul", "jax", "first_run", 2.16, None, ONE, "GPU", 5000),
    ("matmul", "jax", "run", 68.9e-3, None, BEST_OF_5, "GPU", 5000),
    ("matmul", "jax", "transfer_in", 0.164e-3, None, ONE, "TPU", 5000),
    ("matmul", "jax", "first_run", 0.837, None, ONE, "TPU", 5000),
    ("matmul", "jax", "run", 16.5e-3, None, BEST_OF_5, "TPU", 5000),
    ("selu", "numpy", "run", 7.6e-3, None, BEST_OF_5, "CPU", 1_000_000),
    ("selu", "jax", "first_run", 0.124, None, ONE, "CPU", 1_000_000),
    ("selu", "jax", "run", 4.8e-3, None, BEST_OF_5, "CPU", 1_000_000),
    ("selu", "jax", "transfer_in", 109e-6, None, ONE, "GPU", 1_000_000),
    ("selu", "jax", "first_run", 0.447, None, ONE, "GPU", 1_000_000),
    ("selu", "jax", "run", 1.21e-3, None, BEST_OF_5, "GPU", 1_000_000),
    ("selu", "jit", "transfer_in", 104e-6, None, ONE, "GPU", 1_000_000),
    ("selu", "jit", "first_run", 0.122, None, ONE, "GPU", 1_000_000),
    ("selu", "jit", "run", 0.13e-3, None, BEST_OF_5, "GPU", 1_000_000),
    ("batch-matmul-mean", "numpy-loop", "run", 10.0, None, NOT_SAID, "i7 MacBook 2015", 100),
    ("batch-matmul-mean", "jax", "run", 2.2, None, NOT_SAID, "i7 MacBook 2015", 100),
    ("batch-matmul-mean", "numpy-loop", "run", 50.0, None, NOT_SAID, "i7 MacBook 2015", 150),
    ("batch-matmul-mean", "jax", "run", 3.0, None, NOT_SAID, "i7 MacBook 2015", 150),
]
WORDS = [
    ("grad-logistic", "jax", "any", "[0.25, 0.19661197, 0.10499357]"),
    ("grad-nested", "jax", "any", "-0.0353256"),
]
_SIZE = {"batch-matmul-mean": "batch"}
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
