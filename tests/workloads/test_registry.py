"""The catalogue as data: its names."""

from __future__ import annotations

import pytest

from jaxprof.errors import UsageError
from jaxprof.workloads import built_in


@pytest.mark.parametrize("name", ["matmull", "batch_matmul_mean", "nothing-like-it", ""])
def test_an_unknown_name_is_refused_with_the_near_ones(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        built_in(name)
    assert "matmul" in refused.value.hint
