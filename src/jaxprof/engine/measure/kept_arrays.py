"""The arrays of a result, written for the client that compares it with another run's; and descriptions of a run's
inputs.

A `.npz` file without pickled objects: one array for each leaf of the tree, named by its position, and `leaves`, a JSON
list of their paths, dtypes and shapes. NumPy's format has no bfloat16, float8 or int4: these are written in a wider
dtype that holds each of their values.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from jaxprof.base.units import bytes_
from jaxprof.engine.protocol.request import LEAVES, KeptLeaf
from jaxprof.workloads.callables import is_key, leaves

MOST_BYTES = 1 << 30
"""A larger result is not kept."""


def keep(path: str, tree: Any) -> None:
    """Write the arrays of `tree` to `path`. Raises OSError, TypeError for other leaves, ValueError for a large tree."""
    found = [(where, *_on_host(leaf)) for where, leaf in leaves(tree)]
    size = sum(array.nbytes for _, _, array in found)
    if size > MOST_BYTES:
        raise ValueError(f"it has {bytes_(size)}; at most {bytes_(MOST_BYTES)} is compared")
    kept = [asdict(KeptLeaf(where, dtype, array.shape)) for where, dtype, array in found]
    arrays: dict[str, Any] = {f"leaf{number}": array for number, (_, _, array) in enumerate(found)}
    arrays[LEAVES] = np.array(json.dumps(kept))
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def describe(inputs: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return the leaves of `inputs` as `KeptLeaf` has them, each with the digest of its numbers."""
    described = []
    for where, leaf in leaves(inputs):
        dtype, array = _on_host(leaf)
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        described.append(asdict(KeptLeaf(where, dtype, array.shape, digest)))
    return described


def _on_host(leaf: Any) -> tuple[str, np.ndarray[Any, Any]]:
    """Return the name of the leaf's dtype, and its numbers in a dtype of NumPy's own."""
    if is_key(leaf):
        import jax

        return str(leaf.dtype), np.asarray(jax.random.key_data(leaf))
    array = np.asarray(leaf)
    if array.dtype.hasobject:
        raise TypeError(f"a result holds {type(leaf).__name__}, which is not an array")
    name = str(array.dtype)
    if array.dtype.kind != "V":
        return name, array
    if name.startswith("uint"):
        return name, array.astype(np.uint8)
    return name, array.astype(np.int8 if name.startswith("int") else np.float32)
