"""The workloads of targets that are code: built-in ones, or functions of the user's.

A child process describes a function, so that the user's code never runs in this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxprof.analysis.target import Kind, Target
from jaxprof.base.errors import UsageError, not_found
from jaxprof.runner.engine_process import describe
from jaxprof.runner.interpreter import Interpreter
from jaxprof.workloads import CATALOGUE, built_in
from jaxprof.workloads.model import WorkloadInfo, workload_info


def find_workloads(
    targets: Sequence[Target],
    interpreter: Interpreter,
    arguments: Sequence[str],
    devices: int = 1,
    variables: Mapping[str, str] | None = None,
    inputs_from: str = "",
) -> list[WorkloadInfo]:
    """Return the workloads of the targets, in order, without repeats.

    `devices`: how many CPU devices a user's file sees while it is imported, and `variables` what is laid over its
    environment. `inputs_from`: the target whose inputs those without any take. Raises UsageError for what is no code,
    for a target that cannot be imported, and for a file or module with several functions.
    """
    for target in targets:
        if target.kind is Kind.NOTHING:
            raise not_found("workload", target.word, CATALOGUE)
        if not target.is_code:
            raise UsageError(
                f"{target.word} is {target.kind.value}, and a function or a workload is needed",
                "Give path/to/file.py:function.",
            )
    own = list(dict.fromkeys(target.word for target in targets if target.is_own))
    if arguments and not own:
        raise UsageError("--arg is for your own functions", "Sizes of built-in workloads are set with --set n=4000.")
    described: list[WorkloadInfo] = []
    if own:
        described = describe(interpreter, own, arguments, devices, variables=variables, inputs_from=inputs_from)
    unique: dict[str, WorkloadInfo] = {}
    for target in targets:
        if not target.is_own:
            unique.setdefault(target.function, workload_info(built_in(target.function), sources=False))
            continue
        word = target.word
        of_target = [info for info in described if info.origin == word or info.origin.startswith(f"{word}:")]
        if len(of_target) > 1:
            functions = [info.origin.rpartition(":")[2] for info in of_target]
            raise UsageError(
                f"{word} has {len(functions)} functions: {', '.join(functions)}",
                f"Name one: {of_target[0].origin}. jaxprof run --describe {word} lists them.",
            )
        unique |= {info.origin: info for info in of_target}
    return list(unique.values())
