"""Whether a run computed the right result: compares every number with a known answer, or with the baseline's.

The cost of the twin is reported, because it may take longer than the run itself. The precision in which matrix products
are really computed decides the tolerance. JAX's default is the device's fast path: TF32 on NVIDIA GPUs since Ampere,
one bfloat16 pass on TPU, float32 on CPU (JAX documentation, `jax.default_matmul_precision`).

Inputs are made on the host once, seeded, at a fixed address modulo 64 bytes, and never changed afterwards. It decides
whether JAX on a CPU shares a NumPy array (at a multiple of 64) or copies it, so it must not be left to chance: it is
where glibc puts a large array, 16 bytes after such a multiple, because a user's arrays cost a copy. No jax here: NumPy
variants run without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jaxprof.engine.measure.control import Reporter
from jaxprof.events import CheckReported, finite
from jaxprof.workloads.callables import is_key
from jaxprof.workloads.check import compare, tolerance
from jaxprof.workloads.model import Parameters, Variant, Workload

ALIGNMENT_BYTES = 64
USUAL_OFFSET_BYTES = 16
"""Where an array that glibc has mapped begins, after a multiple of 64 bytes: behind the header of its block."""


def make_inputs(workload: Workload, parameters: Parameters, seed: int) -> tuple[Any, ...]:
    """Return the workload's inputs, the same for the same seed, every array at the usual offset."""
    inputs: tuple[Any, ...] = map_arrays(at_usual_offset, workload.inputs(parameters, np.random.default_rng(seed)))
    return inputs


def at_usual_offset(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `array` if its data begins at the usual offset, otherwise a copy of the same layout that does."""
    if array.ctypes.data % ALIGNMENT_BYTES == USUAL_OFFSET_BYTES or array.dtype.hasobject:
        return array
    order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    block = np.empty(array.nbytes + ALIGNMENT_BYTES, dtype=np.uint8)
    offset = (USUAL_OFFSET_BYTES - block.ctypes.data) % ALIGNMENT_BYTES
    copy: np.ndarray[Any, Any] = (
        block[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape, order=order)
    )
    copy[...] = array
    return copy


def map_arrays(change: Callable[[np.ndarray[Any, Any]], Any], tree: Any) -> Any:
    """Apply `change` to the NumPy arrays in `tree`, inside tuples, lists and dicts; other leaves stay."""
    if isinstance(tree, np.ndarray):
        return change(tree)
    if isinstance(tree, tuple):
        branches = [map_arrays(change, branch) for branch in tree]
        return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)
    if isinstance(tree, list):
        return [map_arrays(change, branch) for branch in tree]
    if type(tree) is dict:
        return {key: map_arrays(change, branch) for key, branch in tree.items()}
    return tree


_REQUESTED_PRECISIONS = {
    "highest": "float32",
    "float32": "float32",
    "high": "bfloat16_3x",
    "bfloat16_3x": "bfloat16_3x",
    "tensorfloat32": "tf32",
    "bfloat16": "bfloat16",
    "fastest": "bfloat16",
}
_FIRST_TF32_CAPABILITY = 8.0
_AS_MUCH = 10.0
"""Most that a result may be off, in numbers and in error, over what rounded inputs change, to count as unstable."""
_WORDS = {"bfloat16": "bfloat16 passes", "bfloat16_3x": "three bfloat16 passes"}


def check_result(
    reporter: Reporter,
    workload: Workload,
    variant: Variant,
    parameters: Parameters,
    inputs: tuple[Any, ...],
    output: Any,
    *,
    precision: str = "float32",
    precision_in_words: str = "",
    elementwise: bool = False,
) -> None:
    """Report whether `output` is right for the workload's `inputs`. `elementwise`: as in `compare`."""
    reason = ""
    if workload.expected is None and variant.name == workload.baseline:
        reason = "the baseline: the others are compared with it"
    elif workload.expected is None and variant.how == "numpy" and workload.variant(workload.baseline).how != "numpy":
        reason = f"the baseline ({workload.baseline}) needs JAX, which a NumPy run does not import"
    if reason:
        reporter.emit(CheckReported(passed=None, note=reason))
        return
    with reporter.phase("check"):
        reporter.progress(note=f"computing the {workload.against} to compare the result with")
        if workload.expected is not None:
            expect: Callable[..., Any] = partial(workload.expected, parameters)
            given: tuple[Any, ...] = (inputs,)
        else:
            twin = workload.variant(workload.baseline)
            function, given = twin.build(parameters), twin.arguments(inputs)
            expect = function
            if twin.how != "numpy":
                import jax.numpy as jnp

                def expect(*arguments: Any) -> Any:
                    return function(*map_arrays(jnp.asarray, arguments))

        expected = expect(*given)
        reporter.control.check()
        allowed = tolerance(workload, precision, expected, output)
        report = compare(output, expected, allowed, elementwise=elementwise)
        if report.worst_got and not report.passed:
            reporter.progress(note=f"computing the {workload.against} again, from inputs that differ by a rounding")
            report = _unless_unstable(report, partial(_expect_of_rounded, expect, given), expected, allowed, reporter)
    reporter.emit(
        replace(
            report,
            max_relative_error=finite(report.max_relative_error),
            tolerance=allowed,
            against=workload.against,
            precision=precision_in_words or precision,
        )
    )


def _unless_unstable(
    report: CheckReported, expect: Callable[[int], Any], expected: Any, allowed: float, reporter: Reporter
) -> CheckReported:
    """Return the report of a wrong result, or of an unknown one if inputs that differ by their rounding make the
    expected result differ by as much: a sort or a threshold that tips over, a step that divides by almost nothing."""
    moved: list[CheckReported] = []
    for attempt in range(3):
        again = expect(attempt)
        if again is None:
            break
        moved.append(compare(again, expected, allowed))
        reporter.control.check()
        numbers = max(other.wrong_elements or 0 for other in moved)
        error = max(other.max_relative_error or 0.0 for other in moved)
        if numbers * _AS_MUCH >= (report.wrong_elements or 0) and error * _AS_MUCH >= (report.max_relative_error or 0):
            return replace(report, passed=None, unstable_elements=numbers)
    return report


def _expect_of_rounded(expect: Callable[..., Any], given: Any, attempt: int) -> Any:
    """Return the expected result of arguments whose floating-point numbers are one rounding up or down, each attempt
    otherwise; None if the function has consumed (donated) one of them."""
    random = np.random.default_rng(attempt)
    jax = sys.modules.get("jax")
    if jax is not None and any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in jax.tree.leaves(given)):
        return None

    def one_rounding_away(leaf: Any) -> Any:
        if not isinstance(getattr(leaf, "dtype", None), np.dtype) or leaf.dtype.kind not in "fc":
            return leaf
        # In the array's own dtype 1 + eps is the next number after 1, so the product is 1 or 2 roundings away.
        signs = random.choice(np.array([-1, 1], dtype=leaf.real.dtype), size=leaf.shape)
        return leaf * (1 + signs * np.finfo(leaf.dtype).eps)

    return expect(
        *(jax.tree.map(one_rounding_away, given) if jax is not None else map_arrays(one_rounding_away, given))
    )


def precision_of_products(
    workload: Workload, variant: Variant, arguments: tuple[Any, ...], device: Any, *, elementwise: bool
) -> tuple[str, str]:
    """Return the effective precision of the products, as a tolerance's name and as text; empty if there are none."""
    import jax

    from jaxprof.engine.measure.jax_settings import config_value

    dtypes = {
        str(jax.dtypes.canonicalize_dtype(leaf.dtype))
        for leaf in jax.tree.leaves(arguments)
        if hasattr(leaf, "dtype") and not is_key(leaf)
    }
    if elementwise or not workload.has_dots:
        return ("float64" if dtypes and dtypes <= {"float64", "complex128"} else ""), ""
    requested = variant.precision or str(config_value("jax_default_matmul_precision") or "")
    precision = effective_precision(device, requested, dtypes)
    key = {"bfloat16_3x": "tf32", "float16": "bfloat16"}.get(precision, precision)
    # On a TPU, float32 products consist of bfloat16 passes.
    return key, _WORDS.get(precision, precision) if device.platform == "tpu" else precision


def effective_precision(device: Any, requested: str, input_dtypes: set[str]) -> str:
    """Return the precision of a program's products, with these inputs on `device`: `float32`, `tf32`, `bfloat16`,
    `float64`...

    `requested`: the variant's precision, otherwise the one that JAX is configured with; empty for the default.
    """
    narrow = input_dtypes & {"bfloat16", "float16"}
    if narrow:
        return sorted(narrow)[0]
    if input_dtypes and input_dtypes <= {"float64", "complex128"}:
        return "float64"
    platform = str(device.platform)
    if platform == "cpu":
        return "float32"
    wanted = _REQUESTED_PRECISIONS.get(requested)
    if platform == "gpu":
        tensor_cores = False
        with suppress(ValueError):  # AMD writes `gfx90a`, and has no such cores
            tensor_cores = float(getattr(device, "compute_capability", 0) or 0) >= _FIRST_TF32_CAPABILITY
        if wanted in ("float32", "bfloat16") or not tensor_cores:
            return "float32" if wanted != "bfloat16" or not tensor_cores else "bfloat16"
        return "tf32"
    if platform == "tpu":
        return wanted if wanted not in (None, "tf32") else "bfloat16"
    return wanted or "float32"
