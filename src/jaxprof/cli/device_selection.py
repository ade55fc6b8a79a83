"""Find out which devices exist, and which of them the user chose."""

from __future__ import annotations

from collections.abc import Sequence

from jaxprof.devices.inventory.join import merge
from jaxprof.devices.inventory.machine import Device, gather, local_devices, parse_device, platforms_of
from jaxprof.devices.inventory.placement import probe_environment, worker_environment
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.runner import Interpreter, jax_devices
from jaxprof.text import safe

HOST = "cpu:0"
_KINDS = ("gpu", "cuda", "rocm", "tpu", "metal")


def find_all(interpreter: Interpreter) -> tuple[Sequence[Device], str]:
    """Return all devices, merged from the machine's list and JAX's; and why JAX could not list its own, or ''."""
    local = local_devices(gather(interpreter.path))
    if interpreter.jax is None:
        return local, f"{interpreter.path} has no jax"
    try:
        return merge(local, jax_devices(interpreter, probe_environment())), ""
    except JaxprofError as error:
        return local, safe(error.what)


def choose(wanted: Sequence[str], interpreter: Interpreter) -> list[str]:
    """Return the ids of the chosen devices, without repeats. `cpu` is `cpu:0`, `gpu:0` the first GPU of any vendor.

    JAX lists its devices (in a child process) only if something other than `cpu:0` is chosen. Raises UsageError for a
    device that does not exist (with similar names) or that JAX does not use (with the reason).
    """
    if all(parse_device(text) == HOST for text in wanted):
        return [HOST]
    devices, problem = find_all(interpreter)
    chosen = list(dict.fromkeys(_device_id(text, devices, problem, interpreter) for text in wanted))
    for device in chosen:
        worker_environment(device, devices)
    return chosen


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


def idle_accelerators(interpreter: Interpreter) -> list[str]:
    """Return the accelerators that JAX could use, as far as this is known without starting JAX."""
    return [
        device.id
        for device in local_devices(gather(interpreter.path))
        if device.platform != "cpu" and device.used_by_jax is not False
    ]
