"""What Home says of a workload beside its list."""

from __future__ import annotations

from pathlib import Path

from jaxprof.session.log import Library
from jaxprof.tui.home.workloads import last_medians
from tui.fakes import keep_session


def test_the_last_median_is_one_of_the_same_size(tmp_path: Path) -> None:
    keep_session(tmp_path, "one", ("selu", "numpy", "ok", 4.4e-3), ("selu", "jit", "ok", 0.6e-3))
    entries = list(Library(tmp_path).entries())
    assert last_medians("selu", {"n": 1_000_000}, entries) == {"numpy": "last 4.40 ms", "jit": "last 600 µs"}
    assert last_medians("selu", {"n": 4_000_000}, entries) == {}
    assert last_medians("matmul", {"n": 1_000_000}, entries) == {}
