from __future__ import annotations

from jaxprof.errors import JaxprofError, unknown_name


def test_both_halves_are_in_the_text() -> None:
    assert str(JaxprofError("it failed", "mend it")) == "it failed\nmend it"
    assert str(JaxprofError("it failed")) == "it failed"


def test_unknown_name_names_the_near_ones() -> None:
    assert "matmul" in unknown_name("workload", "matmull", ["matmul", "selu"]).mend


def test_unknown_name_lists_all_when_none_is_near() -> None:
    assert unknown_name("workload", "zzz", ["matmul", "selu"]).mend == "Known: matmul, selu."
    assert "no workload" in unknown_name("workload", "zzz", []).mend
