"""A run's inputs on the host: made once, seeded, at a fixed alignment, and never changed afterwards.

Alignment decides whether JAX on a CPU copies a NumPy array or shares it (it shares at 64 bytes), so it must not be left
to chance. No jax here: NumPy variants run without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jaxprof.workloads.model import Parameters, Workload

ALIGNMENT_BYTES = 64


def make_inputs(workload: Workload, parameters: Parameters, seed: int) -> tuple[Any, ...]:
    """The workload's inputs, the same for the same seed, every array at a fixed alignment."""
    inputs: tuple[Any, ...] = map_arrays(aligned, workload.inputs(parameters, np.random.default_rng(seed)))
    return inputs


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`array` itself if its data begins at a multiple of 64 bytes, otherwise a copy of the same layout that does."""
    if array.ctypes.data % ALIGNMENT_BYTES == 0 or array.dtype.hasobject:
        return array
    order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    block = np.empty(array.nbytes + ALIGNMENT_BYTES, dtype=np.uint8)
    offset = -block.ctypes.data % ALIGNMENT_BYTES
    copy: np.ndarray[Any, Any] = (
        block[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape, order=order)
    )
    copy[...] = array
    return copy


def map_arrays(change: Callable[[np.ndarray[Any, Any]], Any], tree: Any) -> Any:
    """`tree` with `change` applied to its NumPy arrays, inside tuples, lists and dicts; other leaves stay."""
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


def arrays_of(tree: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The NumPy arrays in `tree`."""
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, tuple | list):
        for branch in tree:
            yield from arrays_of(branch)
    elif isinstance(tree, Mapping):
        for branch in tree.values():
            yield from arrays_of(branch)
