"""The devices that JAX sees in this process, as plain data. What a device does not report is None.

Only public attributes are read. Each may be missing, because they differ between platforms and between versions.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import entry_points
from typing import Any

import jax

from jaxprof.base.errors import JaxprofError, unknown_name

_ALIASES = {"gpu": ("cuda", "rocm")}
_ACCELERATORS = ("cuda", "rocm", "tpu")


def platform_of(device: Any) -> str:
    """Return `cpu`, `cuda`, `rocm` or `tpu`; JAX calls both kinds of GPU `gpu`."""
    platform = str(device.platform)
    if platform != "gpu":
        return platform
    version = str(getattr(device.client, "platform_version", ""))
    return "rocm" if "rocm" in version.lower() else "cuda"


def device_name(device: Any) -> str:
    """Return `platform:number`, the form used everywhere."""
    return f"{platform_of(device)}:{device.id}"


def find_device(name: str) -> Any:
    """Return the local device called `name`, e.g. `cpu:0`; `gpu:0` is accepted for `cuda:0`.

    Raises JaxprofError, with JAX's own words if the platform does not start, otherwise with the known names.
    """
    platform, _, number = name.partition(":")
    failures = []
    devices: dict[str, Any] = {}
    for candidate in _ALIASES.get(platform, (platform,)):
        try:
            local = jax.local_devices(backend=candidate)
        except RuntimeError as error:
            failures.append(str(error))
            continue
        devices.update({f"{candidate}:{device.id}": device for device in local})
        wanted = devices.get(f"{candidate}:{number or 0}")
        if wanted is not None:
            return wanted
    if devices:
        raise unknown_name("device", name, devices)
    default = [device_name(device) for device in jax.local_devices()]
    raise JaxprofError(
        f"JAX has no device {name!r} here: {'; '.join(failures)}",
        f"It sees {', '.join(default)}. `jaxprof devices` shows what is missing.",
    )


def default_device() -> Any:
    """Return the device that JAX uses where a program names none."""
    chosen = getattr(jax.config, "jax_default_device", None)
    if isinstance(chosen, str):  # a platform, as the variable JAX_DEFAULT_DEVICE names one
        return jax.local_devices(backend=chosen)[0]
    return chosen if isinstance(chosen, jax.Device) else jax.local_devices()[0]


def describe(device: Any) -> dict[str, Any]:
    """Return one device as JSON-ready data; sizes in bytes."""
    memory: dict[str, Any] = {}
    with suppress(RuntimeError, NotImplementedError, AttributeError):  # a backend without allocator statistics
        memory = device.memory_stats() or {}
    return {
        "id": device_name(device),
        "platform": platform_of(device),
        "kind": str(device.device_kind),
        "local_hardware_id": _attribute(device, "local_hardware_id"),
        "process": int(device.process_index),
        "memory_in_use_bytes": memory.get("bytes_in_use"),
        "memory_limit_bytes": memory.get("bytes_limit"),
        "memory_peak_bytes": memory.get("peak_bytes_in_use"),
        "core_count": _attribute(device, "core_count"),
        "compute_capability": _text(_attribute(device, "compute_capability")),
        "pci_bus_id": _text(_attribute(device, "pci_bus_id")),
        "uuid": _text(_attribute(device, "uuid")),
    }


def list_devices() -> dict[str, Any]:
    """Return all devices of all backends that start, and the errors of those that do not."""
    default = default_device()
    devices = list(jax.devices())
    errors = {}
    # A plugin's name holds that of its platform: `xla_cuda12` provides `cuda`.
    names = {point.name for point in entry_points(group="jax_plugins")}
    plugins = {next((platform for platform in _ACCELERATORS if platform in name), name) for name in names}
    for platform in dict.fromkeys(["cpu", *_ACCELERATORS, *plugins]):
        try:
            devices += [device for device in jax.devices(platform) if device not in devices]
        except RuntimeError as error:
            if "Unknown backend" not in str(error) or platform in plugins:
                errors[platform] = str(error)
    return {
        "devices": [describe(device) for device in devices],
        "default": device_name(default),
        "process_index": jax.process_index(),
        "errors": errors,
    }


def _attribute(device: Any, name: str) -> Any:
    try:
        value = getattr(device, name, None)
    except (RuntimeError, NotImplementedError):
        return None
    return None if callable(value) else value


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
