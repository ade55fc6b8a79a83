"""Which devices there are, and which ones are meant."""

from __future__ import annotations

from collections.abc import Sequence

from jaxprof.errors import JaxprofError
from jaxprof.safe_text import safe
from jaxprof.telemetry.devices import Device, gather, local_devices, parse_device
from jaxprof.telemetry.join import merge
from jaxprof.telemetry.placement import probe_environment, worker_environment
from jaxprof.worker import Interpreter, jax_devices

HOST = "cpu:0"


def find_all(interpreter: Interpreter) -> tuple[Sequence[Device], str]:
    """All devices, the machine's and JAX's joined; and why JAX could not be asked, or an empty text."""
    local = local_devices(gather(interpreter.path))
    if interpreter.jax is None:
        return local, f"{interpreter.path} has no jax"
    try:
        return merge(local, jax_devices(interpreter, probe_environment())), ""
    except JaxprofError as error:
        return local, safe(error.what)


def choose(wanted: Sequence[str], interpreter: Interpreter) -> list[str]:
    """The ids of the devices that are meant, each once. `cpu` is `cpu:0`, `gpu:0` the first GPU of any make.

    JAX is asked (in a child) only where something else than `cpu:0` is wanted. Raises UsageError for one that is not
    there (naming the near ones), or that JAX does not use (naming the reason).
    """
    if all(parse_device(text) == HOST for text in wanted):
        return [HOST]
    devices, _ = find_all(interpreter)
    known = [device.id for device in devices]
    chosen = list(dict.fromkeys(parse_device(text, known) for text in wanted))
    for device in chosen:
        worker_environment(device, devices)
    return chosen


def idle_accelerators(interpreter: Interpreter) -> list[str]:
    """The accelerators that JAX could use, as far as the machine tells without asking it."""
    return [
        device.id
        for device in local_devices(gather(interpreter.path))
        if device.platform != "cpu" and device.used_by_jax is not False
    ]
