"""When a result is compared with a known answer, and what is said where it is not. A result is kept so that its numbers
can be compared, in any dtype, or not at all."""

import json
from collections import namedtuple
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.measure.heard import only, reporter
from jaxprof.engine.measure import kept_arrays
from jaxprof.engine.measure.check import (
    ALIGNMENT_BYTES,
    USUAL_OFFSET_BYTES,
    at_usual_offset,
    check_result,
    effective_precision,
    map_arrays,
    precision_of_products,
)
from jaxprof.engine.measure.jax_settings import override
from jaxprof.events import CheckReported
from jaxprof.workloads import load_built_in
from jaxprof.workloads.model import Variant
from tables import rows

INPUTS = (np.arange(4, dtype=np.float32),)


def double(x):
    return x * 2


TWIN = Variant(name="numpy", how="numpy", function=double)
COMPILED = Variant(name="jit", how="jit", function=double)
WORKLOAD = replace(
    load_built_in("selu"), variants=(TWIN, COMPILED), baseline="numpy", expected=None, against="numpy twin"
)


def checked(output, workload=WORKLOAD, variant=COMPILED, **more):
    return checked_on(INPUTS, output, workload, variant, **more)


def checked_on(inputs, output, workload, variant=COMPILED, **more):
    recorder, events = reporter()
    check_result(recorder, workload, variant, {}, inputs, output, **more)
    return only(events, CheckReported)


def test_check_of_right_and_wrong_results():
    right = checked(jnp.arange(4.0) * 2)
    assert right.passed is True
    assert right.against == "numpy twin"
    assert right.worst_at == ""
    wrong = checked(np.array([0, 2, 4, 7], np.float32))
    assert wrong.passed is False
    assert wrong.elements == 4
    assert wrong.wrong_elements == 1
    assert "3" in wrong.worst_at
    assert (float(wrong.worst_got), float(wrong.worst_expected)) == (7.0, 6.0)


def nearest_half(x):
    """A step at 1.0 and 2.0: which side it takes is decided by the rounding of what it is given."""
    return np.where(x >= np.float32(1), np.float32(1), np.float32(0))


@pytest.mark.parametrize(("result", "passed"), [([1, 1, 1, 0], None), ([1, 0, 0, 0], None), ([99, 99, 99, 99], False)])
def test_check_of_unstable_program(result, passed):
    """The inputs stand on the step: their rounding moves the expected result by as much as the first two are off, and
    never as far as the third."""
    step = Variant(name="numpy", how="numpy", function=nearest_half)
    workload = replace(WORKLOAD, variants=(step, COMPILED))
    check = checked_on((np.ones(4, np.float32),), np.array(result, np.float32), workload)
    assert check.passed is passed
    assert (check.unstable_elements or 0) > 0 if passed is None else check.unstable_elements is None
    assert check.wrong_elements == 4 - result.count(1)


def test_check_after_a_reference_that_consumes_its_argument():
    """It cannot be computed again, so the result stays wrong."""
    step = Variant(name="jax", how="eager", function=jax.jit(lambda x: x * 2, donate_argnums=0))
    workload = replace(WORKLOAD, variants=(step, COMPILED), baseline="jax")
    check = checked_on((jnp.arange(4.0),), np.array([0, 2, 4, 7], np.float32), workload)
    assert check.passed is False
    assert check.wrong_elements == 1


def test_a_wrong_result_of_a_stable_program_stays_wrong():
    check = checked(np.array([0, 2, 4, 6.01], np.float32))
    assert check.passed is False
    assert check.unstable_elements is None


def test_check_of_the_baseline():
    alone = checked(INPUTS[0] * 2, variant=TWIN)
    assert (alone.passed, alone.note) == (None, "the baseline: the others are compared with it")
    known = replace(WORKLOAD, expected=lambda parameters, inputs: inputs[0] * 3)
    assert checked(INPUTS[0] * 2, known, TWIN).passed is False
    assert checked(INPUTS[0] * 3, known, TWIN).passed is True


def test_a_numpy_run_imports_no_jax_for_its_twin():
    baseline = replace(WORKLOAD, variants=(replace(COMPILED, name="op by op"), TWIN), baseline="op by op")
    found = checked(INPUTS[0] * 2, baseline, TWIN)
    assert (found.passed, found.note) == (None, "the baseline (op by op) needs JAX, which a NumPy run does not import")
    assert checked(INPUTS[0] * 2, baseline, COMPILED).passed is True


def test_precision_of_workloads_with_products():
    device = jax.devices("cpu")[0]

    def precision(dtype, *, has_dots, elementwise=False):
        workload = replace(WORKLOAD, has_dots=has_dots)
        return precision_of_products(workload, COMPILED, (np.ones(2, dtype), 3.0), device, elementwise=elementwise)

    assert precision(np.float32, has_dots=True) == ("float32", "float32")
    assert precision(np.float16, has_dots=True) == ("bfloat16", "float16")
    assert precision(np.float32, has_dots=False) == ("", "")
    assert precision(np.float16, has_dots=True, elementwise=True) == ("", "")


@pytest.mark.parametrize(("configured", "variant", "precision"), [(None, "", "tf32"), ("highest", "", "float32"),
                                                                  (None, "highest", "float32"),
                                                                  ("highest", "bfloat16", "bfloat16")])  # fmt: skip
def test_precision_of_the_variant_or_of_jax(configured, variant, precision):
    gpu = SimpleNamespace(platform="gpu", compute_capability="9.0")
    arguments = (np.ones(2, np.float32),)
    with override("jax_default_matmul_precision", configured):
        found = precision_of_products(
            replace(WORKLOAD, has_dots=True), replace(COMPILED, precision=variant), arguments, gpu, elementwise=False
        )
    assert found[1] == precision


@pytest.mark.parametrize("offset", [0, 1, 3, 4, 16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_input_arrays_begin_at_the_usual_offset(offset, order):
    block = np.zeros(4096, np.uint8)
    start = -block.ctypes.data % ALIGNMENT_BYTES + 4 * offset
    odd = block[start : start + 4 * 15].view(np.float32).reshape((3, 5), order=order)
    odd[...] = np.arange(15).reshape(3, 5)
    usual = at_usual_offset(odd)
    assert usual.ctypes.data % ALIGNMENT_BYTES == USUAL_OFFSET_BYTES
    assert at_usual_offset(usual) is usual, "nothing is copied twice"
    assert usual.strides == odd.strides
    np.testing.assert_array_equal(usual, odd)


def test_jax_copies_an_array_at_the_usual_offset():
    array = at_usual_offset(np.arange(1024, dtype=np.float32))
    on_device = jax.device_put(array, jax.devices("cpu")[0])
    assert jax.block_until_ready(on_device).unsafe_buffer_pointer() != array.ctypes.data


def test_trees_of_arrays_keep_their_form():
    Pair = namedtuple("Pair", "left right")
    tree = (Pair(np.ones(2), 3.0), [np.zeros(1), "word"], {"a": None})
    changed = map_arrays(lambda array: array + 1, tree)
    assert isinstance(changed[0], Pair)
    np.testing.assert_array_equal(changed[0].left, [2, 2])
    assert changed[0].right == 3.0
    assert changed[1][1] == "word"
    assert changed[2] == {"a": None}


@pytest.mark.parametrize(
    ("platform", "capability", "asked", "dtypes", "expected"),
    rows("""
        cpu  -       -         float32           float32
        cpu  -       -         float64           float64
        cpu  -       -         bfloat16 float32  bfloat16
        gpu  9.0     -         float32           tf32
        gpu  7.5     -         float32           float32
        gpu  9.0     bfloat16  float32           bfloat16
        gpu  gfx90a  -         float32           float32
        tpu  -       -         float32           bfloat16
        tpu  -       high      float32           bfloat16_3x
        any  -       -         float32           float32
    """),
)
def test_the_effective_precision_follows_the_device(platform, capability, asked, dtypes, expected):
    device = SimpleNamespace(platform=platform, compute_capability=capability or None)
    found = effective_precision(device, asked, set(dtypes.split()))
    assert found == expected


def kept(folder, tree):
    path = folder / "kept.npz"
    kept_arrays.keep(str(path), tree)
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
def test_kept_arrays_of_narrow_dtypes_are_widened(tmp_path, dtype, wider):
    (leaf,), arrays = kept(tmp_path, jnp.array([0, 1, 5], dtype))
    assert leaf["dtype"] == dtype
    assert arrays["leaf0"].dtype == wider
    np.testing.assert_array_equal(arrays["leaf0"], [0, 1, 5])


def test_kept_arrays_refuse_large_and_other_leaves(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_arrays, "MOST_BYTES", 24)
    kept(tmp_path, (np.ones(2), np.ones(1)))
    (tmp_path / "kept.npz").unlink()
    with pytest.raises(ValueError, match="it has 32 B; at most 24 B is compared"):
        kept(tmp_path, (np.ones(2), np.ones(2)))
    with pytest.raises(TypeError, match="not an array"):
        kept(tmp_path, np.array([object()]))
    assert list(tmp_path.iterdir()) == []
