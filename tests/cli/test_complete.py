"""What the shell offers behind what was typed, and the lists of what can be run."""

from __future__ import annotations

import shlex

from click.shell_completion import ShellComplete

from golden import held_cases
from jaxprof import workloads
from jaxprof.cli.main import cli


def offered(*words: str) -> list[str]:
    """What is offered for the last of `words`."""
    *typed, incomplete = words
    completion = ShellComplete(cli, {}, "jaxprof", "_JAXPROF_COMPLETE")
    return [item.value for item in completion.get_completions(typed, incomplete)]


TYPED = """
run selu --variant ''
run transfer --variant host
run selu scan-rnn --variant s
hlo vmap --variant n
hlo vmap:batched --variant b
show KEPT --run ''
export KEPT --run ''
hlo KEPT --run r2
show nowhere --run ''
show 2026
open 2026
hlo 2026
export 2026
"""


def test_what_is_offered_belongs_to_what_was_typed(kept):
    lines = TYPED.strip().splitlines()
    cases = {
        line: "".join(f"  {word}\n" for word in offered(*shlex.split(line.replace("KEPT", str(kept)))))
        for line in lines
    }
    held_cases("completion.txt", cases)
    assert "vmap-highest" in offered("run", "--variant", "v")


def test_workloads_are_listed_and_one_is_told_in_full(call):
    text = call("workloads").out
    data = call("workloads", "--format", "json").data
    assert [one["name"] for one in data["workloads"]] == workloads.names()
    assert all(f"\n{name} " in text for name in workloads.names())
    assert "numpy (baseline)" in call("workloads", "selu").out
