"""A result is written so that its numbers can be compared, in any dtype, or not at all."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.engine.measure import kept_arrays
from jaxprof.engine.measure.kept_arrays import keep


def kept(folder, tree):
    path = folder / "kept.npz"
    keep(str(path), tree)
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(str(arrays.pop("leaves"))), arrays


def test_each_leaf_is_an_array_with_its_place(tmp_path):
    leaves, arrays = kept(tmp_path, {"b": [np.arange(3), None], "a": jnp.ones((2, 2), jnp.float32)})
    assert [(leaf["path"], leaf["dtype"], leaf["shape"]) for leaf in leaves] == [
        ("['a']", "float32", [2, 2]),
        ("['b'][0]", "int64", [3]),
    ]
    np.testing.assert_array_equal(arrays["leaf0"], np.ones((2, 2)))
    np.testing.assert_array_equal(arrays["leaf1"], [0, 1, 2])


@pytest.mark.parametrize(
    ("dtype", "wider"),
    [("bfloat16", np.float32), ("float8_e4m3fn", np.float32), ("int4", np.int8), ("uint4", np.uint8)],
)
def test_what_numpy_has_no_format_for_is_written_wider_with_all_its_values(tmp_path, dtype, wider):
    (leaf,), arrays = kept(tmp_path, jnp.array([0, 1, 5], dtype))
    assert leaf["dtype"] == dtype
    assert arrays["leaf0"].dtype == wider
    np.testing.assert_array_equal(arrays["leaf0"], [0, 1, 5])


def test_what_is_too_large_or_no_array_is_refused_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_arrays, "MOST_BYTES", 24)
    kept(tmp_path, (np.ones(2), np.ones(1)))
    (tmp_path / "kept.npz").unlink()
    with pytest.raises(ValueError, match="it has 32 B; at most 24 B is compared"):
        kept(tmp_path, (np.ones(2), np.ones(2)))
    with pytest.raises(TypeError, match="no array"):
        kept(tmp_path, np.array([object()]))
    assert list(tmp_path.iterdir()) == []
