"""The decorator, and what becomes of a function: variants, inputs, parameters, twins."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxprof
from jaxprof.errors import UsageError
from jaxprof.workloads.function import workload_of
from jaxprof.workloads.model import Estimate, Parameter, Variant, workload_info
from workloads.running import errors, inputs_of, output


def adopted(function, **options):
    return workload_of(function, origin="mine.py:function", name="mine.py:function", **options)


def gram(x):
    """x times its transpose.

    A second paragraph.
    """
    return jnp.dot(x, x.T)


def scaled(x, *, factor):
    return factor * x


def test_a_plain_function_with_specs_is_run_op_by_op_and_compiled():
    workload = adopted(gram, arguments=["f32[6,4]"])
    assert [(variant.name, variant.how) for variant in workload.variants] == [("jax", "eager"), ("jit", "jit")]
    assert (workload.baseline, workload.against) == ("jax", "the function op by op")
    assert workload.description == "x times its transpose. A second paragraph."
    inputs = inputs_of(workload, workload.resolve("quick"))
    assert inputs[0].shape == (6, 4)
    assert workload.estimate({}).memory_bytes == 6 * 4 * 4


@pytest.mark.parametrize(
    "function",
    [jax.jit(gram), functools.partial(gram), jax.jit(functools.partial(gram)), functools.partial(jax.jit(gram))],
)
def test_compiled_functions_and_partials_work(function):
    workload = adopted(function, arguments=["f32[6,4]"])
    assert workload.title == "x times its transpose."
    assert workload.variant("jax").source.startswith("def gram(x")
    assert not hasattr(workload.variant("jax").build({}), "lower"), "the op-by-op variant is not compiled"
    assert max(errors(workload, {}, inputs_of(workload, {})).values()) < 1e-6


def test_only_the_twin_and_the_known_answer_spare_the_function_op_by_op():
    """Some functions are too large, or too slow, to be run op by op."""

    def never_eager(x):
        assert isinstance(x, jax.core.Tracer)
        return x.at[0].set(1.0)

    workload = adopted(jaxprof.workload(inputs=["f32[3]"], variants=["jit"])(never_eager))
    assert workload.expected is None
    assert output(workload.variant("jit"), {}, inputs_of(workload, {}))[0] == 1


def test_the_decorator_gives_the_function_back():
    def plain(x):
        return x

    assert jaxprof.workload(plain) is plain
    for function in (plain, jax.jit(plain)):
        assert jaxprof.workload(inputs=["f32[3]"])(function) is function


def test_options_are_what_they_say():
    @jaxprof.workload(
        name="my-scale",
        title="factor · x",
        description="Scales.",
        inputs=["f32[n]", "f32[n]"],
        parameters={"n": 4, "factor": 2.5, "mode": ("add", "multiply")},
        presets={"large": {"n": 1000}},
        numpy=lambda x, y, *, factor, mode: factor * (x + y if mode == "add" else x * y),
        tolerance=1e-6,
        variants=["jit"],
        matrix_products=False,
    )
    def scale(x, y, *, factor, mode):
        return factor * (x + y if mode == "add" else x * y)

    workload = adopted(scale)
    assert (workload.name, workload.title, workload.description) == ("my-scale", "factor · x", "Scales.")
    assert {each.name: each.kind for each in workload.parameters} == {"n": "int", "factor": "float", "mode": "choice"}
    assert workload.resolve("quick") == {"n": 4, "factor": 2.5, "mode": "add"}
    assert workload.resolve("large", {"mode": "multiply"}) == {"n": 1000, "factor": 2.5, "mode": "multiply"}
    assert [variant.name for variant in workload.variants] == ["numpy", "jit"]
    assert (workload.baseline, workload.against) == ("numpy", "numpy twin")
    assert set(workload.tolerance.values()) == {1e-6}
    assert not workload.has_dots
    assert workload_info(workload).target == "mine.py:function"
    parameters = workload.resolve("quick", {"mode": "multiply", "factor": "7"})
    x, y = inputs_of(workload, parameters)
    assert x.shape == y.shape == (4,)
    np.testing.assert_allclose(output(workload.variant("jit"), parameters, (x, y)), 7 * x * y, rtol=1e-6)
    assert max(errors(workload, parameters, (x, y)).values()) < 1e-6


def test_a_known_answer_may_be_a_value_or_a_function():
    @jaxprof.workload(inputs=["f32[5]"], expected=lambda x: np.asarray(x, np.float64) * 2)
    def twice(x):
        return x + x

    @jaxprof.workload(inputs=[], expected=7.0)
    def seven():
        return jnp.float32(8)

    assert max(errors(adopted(twice), {}, inputs_of(adopted(twice), {})).values()) < 1e-6
    assert adopted(seven).against == "known answer"
    assert errors(adopted(seven), {}, ())["jit"] == pytest.approx(1 / 7)


def test_an_inputs_function_declares_parameters_by_its_defaults():
    def gram_inputs(random, rows=3, spread=2.0, flag=True):
        assert flag
        return spread * random.standard_normal((rows, 2), dtype="float32")

    workload = adopted(gram, companion=gram_inputs)
    assert workload.resolve("quick") == {"rows": 3, "spread": 2.0}
    (x,) = inputs_of(workload, workload.resolve("quick", {"rows": "5"}))
    assert x.shape == (5, 2)


def test_what_is_said_on_the_command_line_wins():
    def shape(x):
        return x

    declared = jaxprof.workload(inputs=["f32[n]"], parameters={"n": 3})(shape)
    assert inputs_of(adopted(declared), {"n": 3})[0].shape == (3,)
    assert inputs_of(adopted(declared, arguments=["f32[n,n]"]), {"n": 3})[0].shape == (3, 3)
    assert inputs_of(adopted(declared, companion=lambda: np.ones(7)), {"n": 3})[0].shape == (3,)


def step(params, x):
    return x


def declared(**options):
    """A function that no other test declares."""

    def gram(x):
        return jnp.dot(x, x.T)

    return adopted(jaxprof.workload(**{"inputs": ["f32[n,2]"], **options})(gram))


SIZE = Parameter(minimum=1)
OUT_OF_BOUNDS = {"parameters": {"n": SIZE}, "presets": {"quick": {"n": 1}, "none": {"n": 0}}}
WRONG = [
    (lambda: adopted(step), r"nothing says what they are.*f32.*step_inputs\(\)"),
    (lambda: adopted(step, arguments=["f32[3]"]), r"f32\[3\].*missing a required argument: 'x'"),
    (lambda: adopted(step, arguments=["f32[2]", "3", "other=3"]), "other"),
    (lambda: adopted(gram, arguments=["f32[n,n]"]), "no parameter 'n'"),
    # Python 3.12 tells which kind
    (lambda: adopted(scaled, arguments=["f32[3]"]), r"missing a required (keyword-only )?argument: 'factor'"),
    (lambda: jaxprof.workload(variants=["jot"]), "jit"),
    (lambda: jaxprof.workload(variants=[]), "needs a variant"),
    (lambda: jaxprof.workload(inputs=["f31[3]"]), "unknown dtype"),
    (lambda: declared(inputs=["f32[3]"], presets={"large": {"m": 1}}), "'m'"),
    (lambda: declared(inputs=["f32[3]"], parameters={"flag": True}), "'flag'"),
    (lambda: inputs_of(adopted(gram, companion=lambda path: path), {}), "wants path"),
    (lambda: declared(parameters={"n": SIZE}), "'n' has no value.*quick"),
    (lambda: declared(**OUT_OF_BOUNDS), "out of bounds"),
    (lambda: declared(parameters={"n": 2}, baseline="jitt"), "jit"),
    (lambda: declared(parameters={"n": 2}, factory=True, inputs=["x=f32[n]"]), "by name"),
    (lambda: adopted(jaxprof.workload(factory=True)(lambda x: x)), "makes a function"),
    (lambda: declared(parameters={"n": 2}, factory=True).variant("jit").build({"n": 2}), "factory of jit wants x"),
    (lambda: declared(parameters={"n": 2}, estimate=lambda m: Estimate(flops=m)).estimate({"n": 2}), "wants m"),
    (lambda: Variant(name="bare", how="jit").build({}), "no function"),
]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_what_is_missing_or_wrong_is_named(make, words):
    with pytest.raises(UsageError) as refused:
        make()
    assert re.search(words, f"{refused.value.what} {refused.value.hint}", re.DOTALL)


def test_arguments_given_by_name_go_to_their_places():
    def step(a, b, *, rate):
        return (a, b, rate)

    found = adopted(step, arguments=["f32[2]", "rate=2.5", "b=3"])
    inputs = found.inputs({}, np.random.default_rng(0))
    a, b, rate = found.variant("jax").build({})(*inputs)
    assert (a.shape, b, rate) == ((2,), 3, 2.5)


def test_variants_of_one_s_own_stand_beside_those_with_a_name():
    def by_hand(x):
        return (x[:, None, :] * x[None]).sum(-1)

    workload = declared(
        inputs=["f32[6,4]"],
        variants=[
            Variant(name="numpy", how="numpy", function=lambda x: np.dot(x, x.T)),
            "jax",
            "jit-highest",
            Variant(name="by-hand", how="jit", function=by_hand),
            Variant(name="narrow", how="eager", inputs="host", adapt=lambda given: (given[0][:3],)),
        ],
        baseline="jax",
        estimate=lambda: Estimate(flops=7),
        against="what it was",
    )
    assert [variant.name for variant in workload.variants] == ["numpy", "jax", "jit-highest", "by-hand", "narrow"]
    assert workload.variant("jit-highest").precision == "highest"
    assert workload.variant("by-hand").source.strip().startswith("def by_hand(x")
    assert (workload.baseline, workload.expected, workload.against) == ("jax", None, "what it was")
    assert workload.estimate({}).flops == 7
    inputs = inputs_of(workload, {})
    found = {variant.name: output(variant, {}, inputs) for variant in workload.variants}
    assert found.pop("narrow").shape == (3, 3)
    for result in found.values():
        np.testing.assert_allclose(result, found["numpy"], rtol=1e-5, atol=1e-5)


def test_a_factory_is_called_once_and_what_it_makes_is_called():
    made = []

    @jaxprof.workload(factory=True, inputs=["f32[n]"], parameters={"n": 4, "power": 3})
    def slope(power):
        """The slope of a power."""
        made.append(power)
        return jax.jit(jax.grad(lambda x: jnp.sum(x**power)))

    workload = adopted(slope)
    assert workload.title == "The slope of a power."
    values = workload.resolve("quick")
    (x,) = inputs_of(workload, values)
    for name in ("jax", "jit"):
        function = workload.variant(name).build(values)
        assert hasattr(function, "lower") == (name == "jit"), "op by op, what it makes is not compiled"
        np.testing.assert_allclose(function(x), 3 * x**2, rtol=1e-6)
        function(x)
    assert made == [3, 3]
    assert workload.expected is not None
    np.testing.assert_allclose(workload.expected(values, (x,)), 3 * x**2, rtol=1e-6)
