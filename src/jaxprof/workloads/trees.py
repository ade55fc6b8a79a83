"""The arrays of a result, each with its path: `[0]['w']`. Nested tuples, lists and dicts are walked here; JAX walks all
other trees.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of each leaf of `tree` in a fixed order: dicts by key, as in JAX; None is not a leaf.

    Raises TypeError for anything other than arrays, numbers and trees of them.
    """
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from leaves(tree[key], f"{path}[{key!r}]")
    elif isinstance(tree, (tuple, list)):
        for index, branch in enumerate(tree):
            yield from leaves(branch, f"{path}[{index}]")
    elif tree is None:
        return
    elif hasattr(tree, "dtype") or isinstance(tree, (bool, int, float, complex)) or "jax" not in sys.modules:
        yield path, tree
    else:
        util = sys.modules["jax"].tree_util
        branches = util.tree_flatten_with_path(tree)[0]
        if len(branches) == 1 and branches[0][1] is tree:
            raise TypeError(f"a result holds {type(tree).__name__}, which is neither an array nor a tree of arrays")
        for keys, branch in branches:
            yield from leaves(branch, path + util.keystr(keys))


def is_key(leaf: Any) -> bool:
    """Whether `leaf` is an array of typed JAX keys, which NumPy cannot hold."""
    return str(getattr(leaf, "dtype", "")).startswith("key<")
