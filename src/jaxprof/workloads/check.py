"""Whether a result is the right one: one number for any tree of arrays.

NumPy only, imported inside. What the number is held against, the tolerance, is declared with the workload; it follows
the effective precision of matrix products, and never asks for more digits than the result's own dtype has.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy

    from jaxprof.workloads.model import Workload

_FLOOR_BY_DTYPE = {"bfloat16": 5e-2, "float16": 1e-2}
"""What a narrow dtype can be asked for after a few roundings (2⁻⁸ and 2⁻¹¹ each)."""


def relative_error(output: Any, expected: Any) -> float:
    """Largest of max |output - expected| / max |expected| over the arrays of two trees.

    The trees are nested tuples, lists and dicts (and whatever JAX knows as a tree, once JAX is there); a tuple and a
    list of the same leaves are alike. An expected array that is all 0 is compared absolutely. Infinite where the
    number of leaves or a shape differs, and where either holds a NaN; infinities of the same sign are equal.
    """
    outputs, wanted = list(_leaves(output)), list(_leaves(expected))
    if len(outputs) != len(wanted):
        return math.inf
    return max((_leaf_error(_array(one), _array(other)) for one, other in zip(outputs, wanted, strict=True)), default=0)


def tolerance(workload: Workload, precision: str, expected: Any) -> float:
    """The largest error that is accepted of `workload` at the effective `precision` (`float32`, `tf32`, `bfloat16`).

    A result is right when its error is at most this. A precision that the workload does not know is taken for float32;
    an `expected` tree with bfloat16 or float16 leaves widens it to what those can hold.
    """
    declared = workload.tolerance
    known = declared.get(precision, declared.get("float32", max(declared.values(), default=0.0)))
    dtypes = {str(getattr(leaf, "dtype", "")) for leaf in _leaves(expected)}
    return max([known, *(floor for dtype, floor in _FLOOR_BY_DTYPE.items() if dtype in dtypes)])


def is_key(leaf: Any) -> bool:
    """Whether `leaf` is an array of typed JAX keys, which NumPy cannot hold."""
    return str(getattr(leaf, "dtype", "")).startswith("key<")


def _leaf_error(output: numpy.ndarray[Any, Any], expected: numpy.ndarray[Any, Any]) -> float:
    import numpy as np

    if output.shape != expected.shape:
        return math.inf
    if output.size == 0 or np.array_equal(output, expected):
        return 0.0
    differs = output != expected
    if not (np.isfinite(output[differs]).all() and np.isfinite(expected[differs]).all()):
        return math.inf
    finite = expected[np.isfinite(expected)]
    scale = float(np.max(np.abs(finite), initial=0.0))
    return float(np.max(np.abs(output[differs] - expected[differs]))) / (scale or 1.0)


def _array(leaf: Any) -> numpy.ndarray[Any, Any]:
    """`leaf` on the host, wide enough that the comparison itself rounds nothing away."""
    import numpy as np

    if is_key(leaf):
        import jax

        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _leaves(tree: Any) -> Iterator[Any]:
    """The leaves of `tree` in a fixed order: dicts by key, as JAX has them."""
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from _leaves(tree[key])
    elif isinstance(tree, (tuple, list)):
        for branch in tree:
            yield from _leaves(branch)
    elif tree is None:
        return
    elif hasattr(tree, "dtype") or isinstance(tree, (bool, int, float, complex)) or "jax" not in sys.modules:
        yield tree
    else:
        branches = sys.modules["jax"].tree.leaves(tree)
        if len(branches) == 1 and branches[0] is tree:
            raise TypeError(f"a result holds {type(tree).__name__}, which is neither an array nor a tree of arrays")
        for branch in branches:
            yield from _leaves(branch)
