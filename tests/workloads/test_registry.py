"""The catalogue as data: its names. The figures that the sources printed are all there, and say what they are."""

from __future__ import annotations

import pytest

from jaxprof.errors import UsageError
from jaxprof.workloads import built_in, names


@pytest.mark.parametrize("name", ["matmull", "batch_matmul_mean", "nothing-like-it", ""])
def test_an_unknown_name_is_refused_with_the_near_ones(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        built_in(name)
    assert "matmul" in refused.value.hint


BEST_OF_5, ONE, NOT_SAID = ("best", 5), ("one call", None), ("", None)
ALL = [(name, figure) for name in names() for figure in built_in(name).published]


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
