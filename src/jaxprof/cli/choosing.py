"""From the words on the command line to the runs: names, variants, parameters and devices, all checked before any run.

A name is a built-in workload, or the target of a user's own function; the latter is described by a child process,
so that the user's code never runs here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jaxprof.errors import UsageError, unknown_name
from jaxprof.worker import Choice, Interpreter, Planned, describe, jax_devices, plan_runs, read_sweep
from jaxprof.workloads import built_in
from jaxprof.workloads.model import WorkloadCard, card

_DEVICE = re.compile(r"([a-z]+)(?::(\d+))?$")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The runs to be made, and what to say about the choice."""

    planned: list[Planned]
    notes: list[str] = field(default_factory=list)


def find_cards(targets: Sequence[str], interpreter: Interpreter, arguments: Sequence[str]) -> list[WorkloadCard]:
    """A card for each target, in order, each once. Raises UsageError for an unknown name, WorkerError for a target that
    cannot be imported."""
    wanted = list(dict.fromkeys(targets))
    own = [target for target in wanted if is_own(target)]
    if arguments and not own:
        raise UsageError("--arg is for your own functions", "Sizes of built-in workloads are set with --set n=4000.")
    found = {target: card(built_in(target), sources=False) for target in wanted if target not in own}
    if own:
        found |= dict(zip(own, describe(interpreter, own, arguments), strict=True))
    return [found[target] for target in wanted]


def is_own(target: str) -> bool:
    """Whether `target` names a user's function (`file.py:f`, `module:f`) and not a built-in workload."""
    return ":" in target or "/" in target or target.endswith(".py")


def plan(cards: Sequence[WorkloadCard], choice: Choice) -> Chosen:
    """The runs of all `cards`. With several, each takes the variants and settings that it knows; one that none knows
    raises UsageError naming the near ones."""
    variants = {variant.name for one in cards for variant in one.variants}
    for name in choice.variants:
        if name not in variants:
            raise unknown_name("variant", name, variants)
    parameters = {parameter.name for one in cards for parameter in one.parameters}
    for name in choice.settings:
        if name not in parameters:
            raise unknown_name("parameter", name, parameters)
    chosen = Chosen([])
    for one in cards:
        kept = [name for name in choice.variants if name in {variant.name for variant in one.variants}]
        if choice.variants and not kept:
            chosen.notes.append(f"{one.name} has no variant {' or '.join(choice.variants)}: left out")
            continue
        known = {parameter.name for parameter in one.parameters}
        if choice.sweep and len(cards) == 1:
            read_sweep(choice.sweep, one.parameters)
        settings = {name: text for name, text in choice.settings.items() if name in known}
        chosen.planned.extend(plan_runs([one], replace(choice, variants=kept, settings=settings)))
    return chosen


def read_settings(items: Sequence[str]) -> dict[str, str]:
    """`n=4000` items as name → text; the last one of a name counts. Raises UsageError."""
    settings: dict[str, str] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise UsageError(f"cannot read --set {item!r}", "It looks like --set n=4000.")
        settings[name.strip()] = text.strip()
    return settings


def find_devices(wanted: Sequence[str], interpreter: Interpreter) -> list[str]:
    """The devices as `platform:number`, each once. `cpu` is `cpu:0`; `gpu:0` is the first CUDA or ROCm device.

    JAX is asked (in a child) only where something else than `cpu:0` is wanted. Raises UsageError naming the near ones.
    """
    asked = [_numbered(text) for text in wanted]
    if all(device == "cpu:0" for device in asked):
        return ["cpu:0"]
    known = [str(device["id"]) for device in jax_devices(interpreter)["devices"]]
    accelerator = next((device.partition(":")[0] for device in known if device.startswith(("cuda:", "rocm:"))), "gpu")
    found = [f"{accelerator}:{device.partition(':')[2]}" if device.startswith("gpu:") else device for device in asked]
    for device in found:
        if device not in known:
            raise unknown_name("device", device, known)
    return list(dict.fromkeys(found))


def _numbered(text: str) -> str:
    match = _DEVICE.match(text.strip().lower())
    if match is None:
        raise UsageError(f"cannot read the device {text!r}", "A device looks like cpu:0, cuda:1 or tpu:0.")
    return f"{match.group(1)}:{int(match.group(2) or 0)}"
