"""Shell completion of workloads, their options, devices, sessions and runs. Imports no jax.

On failure it offers no completions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from jaxprof.workloads.model import Workload


def complete_workload(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Built-in names, and Python files for the user's own functions."""
    from click.shell_completion import CompletionItem

    from jaxprof.workloads import names

    items = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="file")]


def complete_target(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What `jaxprof hlo` takes: a workload, a workload and variant (`selu:jit`), a kept session, a file."""
    from click.shell_completion import CompletionItem

    from jaxprof.workloads import built_in, names

    workload, colon, _ = incomplete.partition(":")
    if colon and workload in names():
        targets = [f"{workload}:{variant.name}" for variant in built_in(workload).variants if variant.how != "numpy"]
    else:
        targets = names()
    items = [CompletionItem(target) for target in targets if target.startswith(incomplete)]
    return [*items, *complete_session(ctx, parameter, incomplete)]


def complete_variant(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Variants of the workloads on the line, or of all workloads."""
    return _starting(incomplete, {variant.name for workload in _typed(ctx) for variant in workload.variants})


def complete_preset(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Presets of the workloads on the line, or of all workloads."""
    return _starting(incomplete, {preset for workload in _typed(ctx) for preset in workload.presets})


def complete_parameter(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Parameters of the workloads on the line, or of all: `n=`, and `over=rows` for each choice."""
    from click.shell_completion import CompletionItem

    descriptions: dict[str, str] = {}
    for workload in _typed(ctx):
        for declared in workload.parameters:
            words = [f"{declared.name}={choice}" for choice in declared.choices] or [f"{declared.name}="]
            descriptions |= dict.fromkeys(words, declared.description)
    return [
        CompletionItem(word, help=text) for word, text in sorted(descriptions.items()) if word.startswith(incomplete)
    ]


def complete_device(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The devices of this machine, without those that JAX cannot use. Does not start JAX."""
    from jaxprof.devices.inventory.machine import local_devices

    return _starting(incomplete, {device.id for device in local_devices() if device.used_by_jax is not False})


def complete_target_device(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Devices to compile for; after a comma, the next one."""
    from jaxprof.devices.targets import CHIPS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _starting(last, {chip.name for chip in CHIPS})]


def complete_run(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The runs of the session on the line."""
    from click.shell_completion import CompletionItem

    from jaxprof.errors import JaxprofError
    from jaxprof.session.log import Library
    from jaxprof.session.log.library import read_entry

    try:
        planned = read_entry(Library().find(next(iter(_words(ctx)), ""))).planned
    except JaxprofError:
        return []
    return [
        CompletionItem(plan.run, help=f"{plan.spec.workload} {plan.spec.variant} {plan.spec.device}")
        for plan in planned
        if plan.run.startswith(incomplete)
    ]


def _typed(ctx: click.Context) -> list[Workload]:
    """The built-in workloads on the line, or all if there is none."""
    from jaxprof.workloads import built_in, names

    every = names()
    chosen = [name for word in _words(ctx) if (name := word.partition(":")[0]) in every]
    return [built_in(name) for name in chosen or every]


def _words(ctx: click.Context) -> list[str]:
    """The arguments on the line. While an option waits for its value, click has not assigned them to parameters yet."""
    values = [ctx.params.get(name) for name in ("names", "target", "file")]
    return [*ctx.args, *(word for value in values for word in ([value] if isinstance(value, str) else value or ()))]


def _starting(incomplete: str, words: set[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete))


def complete_session(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Kept sessions and files."""
    from click.shell_completion import CompletionItem

    from jaxprof.session.log import Library
    from jaxprof.session.log.codec import EXTENSION

    stems = [path.name.removesuffix(EXTENSION) for path in Library().paths()]
    items = [CompletionItem(stem) for stem in ("last", *stems) if stem.startswith(incomplete)]
    return items if items and incomplete else [*items, CompletionItem(incomplete, type="file")]
