"""What the shell offers behind what was typed, and the lists of what can be run."""

from __future__ import annotations

from pathlib import Path

from click.shell_completion import ShellComplete

from cli.calling import Caller
from jaxprof import workloads
from jaxprof.cli.main import cli


def offered(*words: str) -> list[str]:
    """What is offered for the last of `words`."""
    *typed, incomplete = words
    completion = ShellComplete(cli, {}, "jaxprof", "_JAXPROF_COMPLETE")
    return [item.value for item in completion.get_completions(typed, incomplete)]


def test_variants_are_those_of_the_workload_that_was_typed() -> None:
    assert offered("run", "selu", "--variant", "") == ["jax", "jit", "numpy"]
    assert offered("run", "transfer", "--variant", "host") == ["host-to-device", "host-to-device-unaligned"]
    assert offered("run", "selu", "scan-rnn", "--variant", "s") == ["scan", "scan-highest"]
    assert "vmap-highest" in offered("run", "--variant", "v")
    assert offered("hlo", "vmap", "--variant", "n") == ["naive-loop", "numpy"]
    assert offered("hlo", "vmap:batched", "--variant", "b") == ["batched"]


def test_runs_of_the_session_that_was_typed(kept: Path) -> None:
    for command in ("show", "export"):
        assert offered(command, str(kept), "--run", "") == ["r1", "r2", "r3"]
    assert offered("hlo", str(kept), "--run", "r2") == ["r2"]
    assert offered("show", "nowhere", "--run", "") == []
    for command in ("show", "open", "hlo", "export"):
        assert kept.name.removesuffix(".jaxprof") in offered(command, "2026")


def test_workloads_are_listed_and_one_is_told_in_full(call: Caller) -> None:
    text = call("workloads").out
    data = call("workloads", "--format", "json").data
    assert [one["name"] for one in data["workloads"]] == workloads.names()
    assert all(f"\n{name} " in text for name in workloads.names())
    assert "numpy (baseline)" in call("workloads", "selu").out
