"""Each built-in workload runs in each variant with real JAX, is right, and is caught when it is made wrong."""

from functools import cache, partial

import jax
import numpy as np
import pytest
from jax.extend.core import Literal

from jaxprof.workloads import load_built_in, names
from jaxprof.workloads.callables import function_as_written, leaves
from jaxprof.workloads.check import compare, tolerance
from jaxprof.workloads.model import DeferredModule
from tables import rows
from workloads.running import compared, expected, inputs_of, output, runner

TINY = {
    name: load_built_in(name).resolve("quick", dict(size.split("=") for size in sizes.split(", ") if size))
    for name, sizes in rows("""
        matmul             n=24
        matmul-uniform     n=24
        selu               n=300
        batch-matmul-mean  batch=3, rows=6, columns=8, k=4
        grad-logistic      n=300
        grad-nested        x=0.5
        hessian            -
        vjp-jvp            n=50, products=vjp and jvp
        vmap               rows=15, columns=10, vectors=4
        transfer           bytes=4096
        triad              n=300
        gemm-peak          n=32
        reduce             rows=30, columns=20, over=rows
        sort               n=300
        fft                batch=3, n=32
        conv2d             batch=2, size=7, channels_in=3, channels_out=4, kernel=3
        layernorm          rows=6, features=6
        attention          batch=2, heads=2, length=4, depth=4
        scan-rnn           length=4, batch=5, features=5, hidden=5
        mlp-train-step     batch=7, features=7, hidden=7, hidden_layers=2, classes=7, learning_rate=0.5
    """)
}
"""Sizes are equal where they can be: op by op, each new shape is compiled. Confused axes show in the numbers."""
VARIANTS = [(name, variant.name) for name in names() for variant in load_built_in(name).variants]


def test_every_workload_has_a_tiny_size():
    assert TINY.keys() == set(names())


@cache
def prepared(name):
    workload = load_built_in(name)
    inputs = inputs_of(workload, TINY[name])
    return workload, inputs, expected(workload, TINY[name], inputs)


@cache
def function_of(name, variant):
    """The variant in its tiny size, compiled once."""
    return runner(load_built_in(name).variant(variant), TINY[name])


@cache
def result_of(name, variant):
    return function_of(name, variant)(prepared(name)[1])


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_a_variant_gives_the_right_result(name, variant):
    workload, inputs, right = prepared(name)
    result = result_of(name, variant)
    found = compared(workload, workload.variant(variant), result, TINY[name], inputs, right)
    assert found.passed, found
    assert found.max_relative_error <= tolerance(workload, "float32", right)


@pytest.mark.parametrize("name", names())
def test_a_result_of_other_inputs_fails_the_check(name):
    workload, inputs, right = prepared(name)
    other = jax.tree.map(lambda leaf: leaf * np.float32(1.05) if np.asarray(leaf).dtype.kind in "fc" else leaf, inputs)
    for variant in workload.variants:
        result = function_of(name, variant.name)(other)
        assert not compared(workload, variant, result, TINY[name], inputs, right).passed, variant.name


@pytest.mark.parametrize("name", [name for name in names() if load_built_in(name).has_dots])
def test_lower_precision_passes_at_its_tolerance(name):
    """As a GPU or a TPU makes them: what is multiplied is cut to so many bits, and summed in float32."""
    workload, parameters = load_built_in(name), dict(load_built_in(name).presets["quick"])
    if name == "scan-rnn":
        parameters["length"] = 8  # each step halves what the steps before it were wrong by
    inputs = inputs_of(workload, parameters)
    right = expected(workload, parameters, inputs)
    variant = next(variant for variant in workload.variants if variant.how == "jit" and variant.name != "scan")
    closed = jax.make_jaxpr(variant.build(parameters))(*inputs)
    cut = jax.jit(partial(with_products_cut, closed.jaxpr, closed.consts))
    for bits, precision in ((10, "tf32"), (7, "bfloat16")):
        result = cut(jax.tree.leaves(inputs), bits)
        found = compare(result, jax.tree.leaves(right), tolerance(workload, precision, right))
        assert found.passed, found
        assert (found.max_relative_error > 1e-5) is (name != "gemm-peak"), "its numbers are exact in both"


def rounded(array, bits):
    """The array with so many bits in the mantissa; `jax.lax.reduce_precision` is compiled for each number of them."""
    cut = 23 - bits
    whole = jax.lax.bitcast_convert_type(array, np.int32) + (1 << (cut - 1))
    return jax.lax.bitcast_convert_type(whole >> cut << cut, np.float32)


def with_products_cut(jaxpr, constants, arguments, bits):
    """The results of `jaxpr`, all products of which are made of numbers with so many bits in the mantissa."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))
    for equation in jaxpr.eqns:
        given = [one.val if isinstance(one, Literal) else values[one] for one in equation.invars]
        inner = next((one for key in ("jaxpr", "call_jaxpr") if (one := equation.params.get(key))), None)
        if equation.primitive.name in ("dot_general", "conv_general_dilated"):
            given = [rounded(one, bits) for one in given]
        if inner is not None:
            made = with_products_cut(inner.jaxpr, inner.consts, given, bits)
        else:
            made = equation.primitive.bind(*given, **equation.params)
            made = made if equation.primitive.multiple_results else [made]
        values |= dict(zip(equation.outvars, made, strict=True))
    return [one.val if isinstance(one, Literal) else values[one] for one in jaxpr.outvars]


def test_the_products_that_jaxprof_began_with_are_presets():
    assert [preset["n"] for preset in load_built_in("matmul").presets.values()] == [1000, 3000, 5000, 10_000]


@pytest.mark.parametrize("name", names())
def test_a_declaration_is_complete(name):
    workload = load_built_in(name)
    assert workload.name == name
    assert len(workload.description) > 80
    assert {"quick", "published"} <= set(workload.presets)
    for preset in workload.presets:
        values = workload.resolve(preset)
        texts = {key: str(value) for key, value in values.items()}
        assert workload.resolve(preset, texts) == values, "a preset is within the parameters' bounds"
        estimate = workload.estimate(values)
        assert estimate.memory_bytes >= estimate.traffic_bytes * 0.99 > 0 or name == "transfer"
    assert set(TINY[name]) == {parameter.name for parameter in workload.parameters}
    for variant in workload.variants:
        assert variant.description
        assert "def " in variant.source
    assert {variant.precision for variant in workload.variants} == ({"", "highest"} if workload.has_dots else {""})
    if workload.has_dots:
        assert {"float32", "tf32", "bfloat16"} <= set(workload.tolerance)


def test_the_estimate_is_not_below_what_the_arrays_take():
    for name in names():
        workload, inputs, _ = prepared(name)
        result = result_of(name, workload.baseline)
        held = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves((inputs, result)))
        assert held <= workload.estimate(TINY[name]).memory_bytes * 1.05, name


@pytest.mark.parametrize("name", [name for name in names() if load_built_in(name).has_dots])
def test_the_estimated_flops_are_xla_s_own_count(name):
    workload, inputs, _ = prepared(name)
    first = next(variant.name for variant in workload.variants if variant.how == "jit")
    # XLA counts the body of a loop once
    variant = workload.variant({"scan-rnn": "jit-unrolled", "batch-matmul-mean": "jit"}.get(name, first))
    cost = jax.jit(variant.build(TINY[name])).lower(*variant.arguments(inputs)).cost_analysis()
    estimated = workload.estimate(TINY[name]).flops
    assert estimated is not None
    assert cost["flops"] == pytest.approx(estimated, rel=0.35)


def test_known_answers_are_the_published_ones():
    gradient = load_built_in("grad-logistic")
    (x,) = inputs_of(gradient, gradient.presets["published"])
    assert x.tolist() == [0.0, 1.0, 2.0]
    for variant in gradient.variants:
        value = output(variant, gradient.presets["published"], (x,))
        np.testing.assert_allclose(value, [0.25, 0.19661194, 0.10499357], rtol=2e-6)

    nested = load_built_in("grad-nested")
    value = output(nested.variant("jax"), {"x": 1.0}, inputs_of(nested, {"x": 1.0}))
    assert float(value) == pytest.approx(-0.0353256, rel=1e-5)

    hessian, right = load_built_in("hessian"), np.zeros((4, 3, 3))
    right[2, 1, 1], right[3, 0, 0], right[3, 0, 2], right[3, 2, 0] = 8, -2.524413, 0.5403023, 0.5403023
    for variant in hessian.variants:
        np.testing.assert_allclose(result_of("hessian", variant.name), right, rtol=1e-6, atol=1e-6)

    products = load_built_in("vjp-jvp")
    for variant in products.variants:
        one = {"n": 1, "products": "vjp and jvp"}
        pulled, pushed = output(variant, one, inputs_of(products, one))
        np.testing.assert_allclose(np.ravel(pulled), [0.5 * np.cos(0.5), -1.0 * np.sin(1.0)], rtol=1e-6)
        np.testing.assert_allclose(pushed, pulled)
        np.testing.assert_array_equal(output(variant, {**one, "products": "vjp"}, inputs_of(products, one)), pulled)


def test_only_aligned_arrays_are_shared_with_the_device():
    workload = load_built_in("transfer")
    inputs = inputs_of(workload, {"bytes": 4096})
    for name, offset in (("host-to-device", 0), ("host-to-device-unaligned", 4)):
        (array,) = workload.variant(name).arguments(inputs)
        assert (array.ctypes.data % 64, array.nbytes) == (offset, 4096)
        on_device = workload.variant(name).build({"bytes": 4096})(array)
        assert (on_device.unsafe_buffer_pointer() == array.ctypes.data) == (offset == 0)


def test_timed_files_hold_no_stand_in_modules():
    for name, variant in VARIANTS:
        made = load_built_in(name).variant(variant)
        file = function_as_written(made.build(TINY[name])).__globals__
        left = [key for key, value in file.items() if isinstance(value, DeferredModule)]
        assert made.how == "numpy" or left == [], (name, variant)


def test_what_is_static_inside_a_result_is_no_leaf():
    structure = jax.tree.structure((1, 2))
    assert list(leaves({"a": 1.0, "f": len, "tree": structure})) == [("['a']", 1.0)]
    for whole in (structure, len):
        with pytest.raises(TypeError, match="neither an array"):
            list(leaves(whole))
