"""In which precision a run's matrix products are really made: it decides the tolerance of the check.

JAX's default is the device's fast path: TF32 on NVIDIA GPUs since Ampere, one bfloat16 pass on TPU, float32 on CPU
(JAX documentation, `jax.default_matmul_precision`).
"""

from __future__ import annotations

from typing import Any

_ASKED = {
    "highest": "float32",
    "float32": "float32",
    "high": "bfloat16_3x",
    "bfloat16_3x": "bfloat16_3x",
    "tensorfloat32": "tf32",
    "bfloat16": "bfloat16",
    "fastest": "bfloat16",
}
_FIRST_TF32_CAPABILITY = 8.0
_WORDS = {"bfloat16": "bfloat16 passes", "bfloat16_3x": "three bfloat16 passes"}


def effective_precision(device: Any, asked: str, input_dtypes: set[str]) -> str:
    """`float32`, `tf32`, `bfloat16`, `float64`...: of the products of a program with these inputs on `device`.

    `asked` is the variant's precision, or else JAX's configured one; empty for the default.
    """
    narrow = input_dtypes & {"bfloat16", "float16"}
    if narrow:
        return sorted(narrow)[0]
    if input_dtypes and input_dtypes <= {"float64", "complex128"}:
        return "float64"
    platform = str(device.platform)
    if platform == "cpu":
        return "float32"
    wanted = _ASKED.get(asked)
    if platform == "gpu":
        tensor_cores = _capability(device) >= _FIRST_TF32_CAPABILITY
        if wanted in ("float32", "bfloat16") or not tensor_cores:
            return "float32" if wanted != "bfloat16" or not tensor_cores else "bfloat16"
        return "tf32"
    if platform == "tpu":
        return wanted if wanted not in (None, "tf32") else "bfloat16"
    return wanted or "float32"


def tolerance_key(precision: str) -> str:
    """The name under which a workload declares its tolerance for `precision`."""
    return {"bfloat16_3x": "tf32", "float16": "bfloat16", "float64": "float32"}.get(precision, precision)


def in_words(precision: str, platform: str) -> str:
    """For people: on a TPU float32 products are made of bfloat16 passes."""
    return _WORDS.get(precision, precision) if platform == "tpu" else precision


def _capability(device: Any) -> float:
    try:
        return float(getattr(device, "compute_capability", 0) or 0)
    except ValueError:  # AMD writes `gfx90a`
        return 0.0
