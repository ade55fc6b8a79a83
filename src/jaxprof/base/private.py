"""What a session may keep about an environment: one list, for every place that writes it.

Session files are kept, mailed and put into bug reports. So variables are taken by name from a list that was reviewed
one by one, and each value has to look like the setting that it is (a number, a word, flags). `XLA_FLAGS` may hold paths
(dumps, tool chains, credentials of a mounted bucket), which become `...`. A `JAX_...` variable that is not on the list
may be a path, a URL or a token (`JAX_COMPILATION_CACHE_DIR`, `JAX_COORDINATOR_ADDRESS`), so only the fact that it is
set is kept. What looks like a secret in command lines and texts is `redaction`'s. Standard library only: the recorder
uses it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SETTINGS = (
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "JAX_DEBUG_NANS",
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
    "ROCR_VISIBLE_DEVICES",
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
"""Replaces the value of a variable if it does not look like a setting."""

_SETTING = re.compile(r"[\w.,:+-]{0,200}(?:/\d+/\d+)?")
"""Numbers, words, lists, UUIDs, and the old names of MIG instances; otherwise no slash, space, `=` or `@`."""
_TOKEN_LENGTH = 48
_SHORTEST_TOKEN = 11
"""Characters of the shortest token that `redaction.holds_token` knows."""
_FLAG = re.compile(r"--(\w+)(?:=(.*))?", re.DOTALL)


def safe_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that change a measurement, with values if these may be kept. Pure."""
    kept = {name: value_to_keep(name, environment[name]) for name in (*SETTINGS, *FLAGS) if name in environment}
    others = (name for name in environment if re.fullmatch(r"JAX_[A-Z0-9_]{1,60}", name) and name not in kept)
    kept |= dict.fromkeys(others, HIDDEN)
    return dict(sorted(kept.items()))


def value_to_keep(name: str, value: str) -> str:
    """Return what may be kept of a variable that the user named: a setting, or flags; else `...`."""
    if name in FLAGS:
        # Values that are no settings, above all paths, are hidden, and so are words that are no `--name=value`.
        kept = []
        for word in value.split():
            match = _FLAG.fullmatch(word)
            if match is None:
                kept.append(HIDDEN)
            elif match.group(2) is None:
                kept.append(word)
            else:
                kept.append(f"--{match.group(1)}={value_to_keep(match.group(1), match.group(2))}")
        return " ".join(kept)
    if name not in SETTINGS:
        from jaxprof.base.redaction import is_secret_name  # a recorded program waits for each import

        if is_secret_name(name):
            return HIDDEN
    longest = max(map(len, re.split(r"[,:.]", value)))  # a token in the wrong place is long
    if not _SETTING.fullmatch(value) or longest > _TOKEN_LENGTH:
        return HIDDEN
    if len(value) >= _SHORTEST_TOKEN:
        from jaxprof.base.redaction import holds_token

        if holds_token(value):
            return HIDDEN
    return value
