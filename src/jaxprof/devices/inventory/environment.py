"""The machine's description in a session file: an allow-list, never `os.environ`.

Session files are kept, mailed and put into bug reports, so nothing goes in that could hold a secret or name a person:
no user or home folder, no host's address, no path. Variables are taken by name from lists that were reviewed one by
one, and each value has to look like the setting that it is (a number, a word, flags). `XLA_FLAGS` may hold paths
(dumps, tool chains, credentials of a mounted bucket), which become `...`. A `JAX_...` variable that is not on a list
may be a path, a URL or a token (`JAX_COMPILATION_CACHE_DIR`, `JAX_COORDINATOR_ADDRESS`), so only the fact that it is
set is kept. A user who wants more can add it to the session's notes.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path

from jaxprof.devices.inventory.machine import Facts, gather
from jaxprof.events import Scalar

Value = Scalar | None | list[dict[str, Scalar | None]] | dict[str, str]

SETTINGS = (
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "JAX_DEFAULT_DTYPE_BITS",
    "JAX_DEFAULT_MATMUL_PRECISION",
    "JAX_DEFAULT_PRNG_IMPL",
    "JAX_DISABLE_JIT",
    "JAX_ENABLE_COMPILATION_CACHE",
    "JAX_ENABLE_X64",
    "JAX_NUM_CPU_DEVICES",
    "JAX_NUMPY_DTYPE_PROMOTION",
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "JAX_THREEFRY_PARTITIONABLE",
    "MKL_NUM_THREADS",
    "NPROC",
    "NUMEXPR_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OPENBLAS_NUM_THREADS",
    "TF_CPP_MIN_LOG_LEVEL",
    "TF_GPU_ALLOCATOR",
    "TPU_VISIBLE_CHIPS",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
)
FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")

HIDDEN = "..."
"""Replaces a value that does not look like a setting."""

_SETTING = re.compile(r"[\w.,:+-]{0,200}(?:/\d+/\d+)?")
"""Numbers, words, lists, UUIDs, and the old names of MIG instances; otherwise no slashes, no spaces, no `=`, no `@`."""
_TOKEN_LENGTH = 48
_FLAG = re.compile(r"--(\w+)(?:=(.*))?", re.DOTALL)
_CONTAINERS = (("/.dockerenv", "docker"), ("/run/.containerenv", "podman"), ("/.singularity.d", "apptainer"))


def environment_facts(facts: Facts | None = None) -> dict[str, Value]:
    """The machine's description for the session's header; JSON-ready, None is unknown. Takes as long as `gather`."""
    facts = gather() if facts is None else facts
    gpus: list[dict[str, Scalar | None]] = [
        {"name": gpu.name, "uuid": gpu.uuid, "memory_bytes": gpu.memory_bytes, "mig_enabled": gpu.mig_enabled}
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


def safe_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that change a measurement, with values if these may be kept. Pure."""
    kept = {name: _setting(environment[name]) for name in SETTINGS if name in environment}
    kept |= {name: _flags(environment[name]) for name in FLAGS if name in environment}
    others = (name for name in environment if re.fullmatch(r"JAX_[A-Z0-9_]{1,60}", name) and name not in kept)
    kept |= dict.fromkeys(others, HIDDEN)
    return dict(sorted(kept.items()))


def container_hint(environment: Mapping[str, str], root: Path = Path("/")) -> str | None:
    """`docker`, `podman`, `apptainer`, `kubernetes`; None if nothing indicates a container."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    for path, name in _CONTAINERS:
        if (root / path.lstrip("/")).exists():
            return name
    return None


def _setting(value: str) -> str:
    """Whether a value is a setting. A long unbroken word may be a token that was put in the wrong place."""
    longest = max((len(word) for word in re.split(r"[,:.]", value)), default=0)
    return value if _SETTING.fullmatch(value) and longest <= _TOKEN_LENGTH else HIDDEN


def _flags(value: str) -> str:
    """`--name=value` words. Values that are not settings (above all paths) are hidden, as is everything that is not a
    flag."""
    kept = []
    for word in value.split():
        match = _FLAG.fullmatch(word)
        if match is None:
            kept.append(HIDDEN)
        elif match.group(2) is None:
            kept.append(word)
        else:
            kept.append(f"--{match.group(1)}={_setting(match.group(2))}")
    return " ".join(kept)


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
