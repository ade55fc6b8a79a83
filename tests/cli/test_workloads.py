from __future__ import annotations

from cli.calling import Caller
from jaxprof import workloads


def test_all_are_listed_in_both_formats(call: Caller) -> None:
    text = call("workloads").out
    data = call("workloads", "--format", "json").data
    assert [one["name"] for one in data["workloads"]] == workloads.names()
    assert all(f"\n{name} " in text for name in workloads.names())


def test_one_is_told_in_full(call: Caller) -> None:
    said = call("workloads", "selu")
    assert "numpy (baseline)" in said.out
    assert "7.60 ms" in said.out
    assert "jnp.where" in said.out
