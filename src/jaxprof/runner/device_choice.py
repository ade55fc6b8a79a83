"""Choose devices of this machine by the words of a user, as the jax of an interpreter sees them.

JAX lists its devices in a child process, and only if something other than `cpu:0` may be chosen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.base.text import safe
from jaxprof.devices import Device, default_device
from jaxprof.devices.inventory.machine import gather, local_devices, merge, parse_device, platforms_of
from jaxprof.devices.inventory.placement import worker_environment
from jaxprof.runner.engine_questions import jax_devices
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.planning import HOST

_KINDS = ("gpu", "cuda", "rocm", "tpu", "metal")


def choose(
    given: Sequence[str],
    interpreter: Interpreter,
    note: Callable[[str], None],
    variables: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the ids of the devices to run on, without repeats: those that were `given`; else those of the user's
    setting that are there, with a `note` on the others; else the one that JAX uses by default, with `variables` laid
    over the environment. Raises UsageError for a device that does not exist or that JAX does not use, with the source
    of a setting."""
    from jaxprof.base.config import read_config

    config = read_config()
    wanted = given or config.get("devices", tuple) or ()
    if not wanted:
        device, why = default_for(interpreter, {**os.environ, **(variables or {})}.get("JAX_PLATFORMS", ""))
        if why:
            note(f"note: this runs on {device}, because {why}")
        return [device]
    chosen, errors = find_devices(wanted, interpreter)
    if errors and (given or not chosen):
        source = "" if given else f"{config.sources['devices']}: "
        raise UsageError(f"{source}{errors[0].what}", errors[0].hint) from errors[0]
    for error in errors:
        note(f"note: this runs on {', '.join(chosen)}. {config.sources['devices']}: {error.what}")
    return chosen


def usable_devices(interpreter: Interpreter) -> Sequence[Device]:
    """Return all devices of this machine, from its own list and JAX's. Raises WorkerError if JAX cannot list them."""
    return merge(local_devices(gather(interpreter.path)), jax_devices(interpreter))


def find_all(interpreter: Interpreter) -> tuple[Sequence[Device], str]:
    """Return what `usable_devices` does; where JAX cannot list its own, the machine's list, and why, else ''."""
    return _as_jax_sees(local_devices(gather(interpreter.path)), interpreter)


def _as_jax_sees(local: Sequence[Device], interpreter: Interpreter) -> tuple[Sequence[Device], str]:
    if interpreter.jax is None:
        return local, f"{interpreter.path} has no jax"
    try:
        return merge(local, jax_devices(interpreter)), ""
    except JaxprofError as error:
        return local, safe(error.what)


def find_devices(wanted: Sequence[str], interpreter: Interpreter) -> tuple[list[str], list[UsageError]]:
    """Return the ids of the devices that `wanted` names, without repeats (`cpu` is `cpu:0`, `gpu:0` the first GPU of
    any vendor), and an error for each that does not exist (with similar names) or that JAX does not use (with the
    reason)."""
    if all(parse_device(text) == HOST for text in wanted):
        return [HOST], []
    devices, problem = find_all(interpreter)
    chosen: list[str] = []
    errors: list[UsageError] = []
    for text in wanted:
        try:
            device = _device_id(text, devices, problem, interpreter)
            worker_environment(device, devices)
            chosen.append(device)
        except UsageError as error:
            errors.append(error)
    return list(dict.fromkeys(chosen)), errors


def _device_id(text: str, devices: Sequence[Device], problem: str, interpreter: Interpreter) -> str:
    """Return the id that `text` means. Raises UsageError, which says why if the machine has no device of this kind."""
    parse_device(text)
    try:
        return parse_device(text, [device.id for device in devices])
    except UsageError as error:
        platforms = platforms_of(text)
        kind = text.partition(":")[0].strip().lower()
        exists = any(device.platform in platforms and device.used_by_jax is not False for device in devices)
        if exists or kind not in _KINDS:
            raise  # the kind exists but this number does not, or the word is mistyped
        unused = [device for device in devices if device.platform in platforms]
        if unused:
            seen = "; ".join(f"{device.id} ({device.kind or device.platform}): {device.reason}" for device in unused)
            raise UsageError(f"no {kind} that JAX uses: {seen}", unused[0].hint) from error
        searched = "NVIDIA's driver and the PCI bus show none" if kind != "tpu" else "the PCI bus shows none"
        why = (
            problem
            or f"the jax of {interpreter.path} sees {', '.join(device.id for device in devices if device.used_by_jax)}"
        )
        raise UsageError(f"this machine has no {kind}: {searched}, and {why}", "jaxprof devices shows more.") from error


def default_for(interpreter: Interpreter, platforms: str) -> tuple[str, str]:
    """Return the device that JAX uses by default, and why that is the CPU beside an accelerator, or an empty text. JAX
    is asked only if the machine has an accelerator that it may use, and `platforms` (`JAX_PLATFORMS`) does not begin
    with the CPU."""
    if interpreter.jax is None or platforms.partition(",")[0].strip().lower() == "cpu":
        return HOST, ""
    devices: Sequence[Device] = local_devices(gather(interpreter.path))
    problem = ""
    if any(device.platform != "cpu" and device.used_by_jax is not False for device in devices):
        devices, problem = _as_jax_sees(devices, interpreter)
    chosen = default_device(devices)
    # Not of every platform: many a laptop has a GPU of AMD or Apple that JAX cannot use at all.
    unused = [
        each for each in devices if each.used_by_jax is False and each.platform in ("cuda", "tpu") and not each.mig
    ]
    why = ""
    if problem:
        why = f"JAX could not list its devices: {problem}"
    elif unused:
        reason = "; ".join(filter(None, (unused[0].reason, unused[0].hint)))
        why = f"JAX does not use {unused[0].id} ({unused[0].kind or unused[0].platform}): {' '.join(reason.split())}"
    elif platforms:
        why = f"JAX_PLATFORMS={platforms!r} names no other device of this machine"
    return chosen, why if chosen == HOST else ""
