"""The workloads that words of a user name: built-in ones, or functions of the user's.

A child process describes a function, so that the user's code never runs in this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxprof.base.errors import UsageError
from jaxprof.runner.engine_questions import describe
from jaxprof.runner.interpreter import Interpreter
from jaxprof.workloads import built_in, is_own
from jaxprof.workloads.model import WorkloadInfo, workload_info


def find_workloads(
    targets: Sequence[str],
    interpreter: Interpreter,
    arguments: Sequence[str],
    devices: int = 1,
    variables: Mapping[str, str] | None = None,
    inputs_from: str = "",
) -> list[WorkloadInfo]:
    """Return the workloads of the targets, in order, without repeats.

    `devices`: how many CPU devices a user's file sees while it is imported, and `variables` what is laid over its
    environment. `inputs_from`: the target whose inputs those without any take. Raises UsageError for an unknown name,
    for a target that cannot be imported, and for a file or module with several functions.
    """
    wanted = list(dict.fromkeys(targets))
    own_targets = [target for target in wanted if is_own(target)]
    if arguments and not own_targets:
        raise UsageError("--arg is for your own functions", "Sizes of built-in workloads are set with --set n=4000.")
    infos = {target: [workload_info(built_in(target), sources=False)] for target in wanted if target not in own_targets}
    described: list[WorkloadInfo] = []
    if own_targets:
        described = describe(interpreter, own_targets, arguments, devices, variables=variables, inputs_from=inputs_from)
    for target in own_targets:
        prefix = f"{target}:"
        of_target = [info for info in described if info.origin == target or info.origin.startswith(prefix)]
        if len(of_target) > 1:
            functions = [info.origin.rpartition(":")[2] for info in of_target]
            raise UsageError(
                f"{target} has {len(functions)} functions: {', '.join(functions)}",
                f"Name one: {of_target[0].origin}. jaxprof run --describe {target} lists them.",
            )
        infos[target] = of_target
    unique = {info.origin if is_own(target) else target: info for target in wanted for info in infos[target]}
    return list(unique.values())


def read_settings(items: Sequence[str]) -> dict[str, str]:
    """Return `n=4000` items as name → text; the last item of a name counts. Raises UsageError."""
    settings: dict[str, str] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise UsageError(f"cannot read --set {item!r}", "Write it as --set n=4000.")
        settings[name.strip()] = text.strip()
    return settings
