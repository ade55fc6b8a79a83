"""Describe the machine for a session file, with an allow-list, never all of `os.environ`.

The description holds nothing that could be a secret or name a person: no user or home folder, no host's address, no
path. `jaxprof.private` decides which environment variables may be kept. A user who wants more can add it to the
session's notes.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

from jaxprof.devices.inventory.machine import Facts, gather
from jaxprof.events import Scalar
from jaxprof.private import safe_variables

Value = Scalar | None | list[dict[str, Scalar | None]] | dict[str, str]

_CONTAINERS = (("/.dockerenv", "docker"), ("/run/.containerenv", "podman"), ("/.singularity.d", "apptainer"))


def environment_facts(facts: Facts | None = None) -> dict[str, Value]:
    """Return the machine's description for the session's header; JSON-ready, None is unknown. Takes as long as
    `gather`."""
    facts = gather(python=None) if facts is None else facts
    gpus: list[dict[str, Scalar | None]] = [
        {"name": gpu.kind, "uuid": gpu.uuid, "memory_bytes": gpu.memory_limit_bytes, "mig_enabled": gpu.mig_enabled}
        for gpu in facts.nvidia.gpus
    ]
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "distribution": _distribution(),
        "container": container_hint(facts.environment),
        "python": platform.python_version(),
        "cpu_model": facts.cpu.model,
        "cores": facts.cpu.usable_cores,
        "machine_cores": facts.cpu.machine_cores,
        "memory_bytes": facts.cpu.memory_bytes,
        "gpus": gpus,
        "nvidia_driver": facts.nvidia.driver or facts.machine.nvidia_driver,
        "cuda_driver": facts.nvidia.cuda,
        "variables": safe_variables(facts.environment),
    }


def container_hint(environment: Mapping[str, str]) -> str | None:
    """Return `docker`, `podman`, `apptainer` or `kubernetes`; None if nothing indicates a container."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    for path, name in _CONTAINERS:
        if Path(path).exists():
            return name
    return None


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
