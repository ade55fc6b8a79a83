"""The decorator, and what becomes of a function: variants, inputs, parameters, twins. Argument specs: what is
understood, what is made of it, and what is refused."""

import contextlib
import functools
import re
from itertools import islice
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import jaxprof
from jaxprof.base.errors import UsageError
from jaxprof.workloads.callables import function_as_written, layers, op_by_op
from jaxprof.workloads.function import make, workload_of
from jaxprof.workloads.model import Estimate, Parameter, Variant, workload_info
from jaxprof.workloads.specs import parse
from tables import rows
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


@pytest.mark.parametrize(
    "function",
    [gram, jax.jit(gram), functools.partial(gram), jax.jit(functools.partial(gram)), functools.partial(jax.jit(gram))],
)
def test_a_function_with_specs_is_run_op_by_op_and_compiled(function):
    """Compiled functions and partials, too."""
    workload = adopted(function, arguments=["f32[6,4]"])
    assert [(variant.name, variant.how) for variant in workload.variants] == [("jax", "eager"), ("jit", "jit")]
    assert (workload.baseline, workload.against) == ("jax", "the function op by op")
    assert (workload.title, workload.estimate({}).memory_bytes) == ("x times its transpose.", 6 * 4 * 4)
    assert workload.description == "x times its transpose. A second paragraph."
    assert workload.variant("jax").source.startswith("def gram(x")
    assert not hasattr(workload.variant("jax").build({}), "lower"), "the op-by-op variant is not compiled"
    inputs = inputs_of(workload, workload.resolve("quick"))
    assert inputs[0].shape == (6, 4)
    assert max(errors(workload, {}, inputs).values()) < 1e-6


class Layer:
    """An object without an array, whose methods are compiled."""

    @functools.partial(jax.jit, static_argnums=0)
    def compiled(self, x):
        return 2 * x

    @functools.partial(jax.jit, static_argnames=("self", "times"))
    def repeated(self, x, times=3):
        return times * x


class Partial:
    """As equinox's, which a method of its modules is under `filter_jit`."""

    def __init__(self, func, *args):
        self.func, self.args, self.keywords = func, args, {}

    def __call__(self, *more):
        return self.func(*self.args, *more)


class BoundMethod:
    """As equinox's, which every other method of its modules is."""

    def __init__(self, function, owner):
        self.__func__, self.__self__ = function, owner

    def __call__(self, *more):
        return self.__func__(self.__self__, *more)


multiply = jax.jit(lambda factor, x: factor * x)


@pytest.mark.parametrize(
    "method",
    [Partial(multiply, 2), BoundMethod(multiply, 2), functools.partial(BoundMethod(multiply, 2)), Layer().compiled],
)
def test_compiled_method_has_a_variant_op_by_op(method):
    plain = op_by_op(method)
    assert [equation.primitive.name for equation in jax.make_jaxpr(plain)(3.0).eqns] == ["mul"]
    assert plain(3.0) == method(3.0) == 6.0


@pytest.mark.parametrize(("method", "factor"), [("compiled", 2), ("repeated", 3)])
def test_compiled_method_is_called_with_its_object(method, factor):
    workload = adopted(getattr(Layer(), method), arguments=["f32[6]"])
    assert [variant.name for variant in workload.variants] == ["jax", "jit"]
    inputs = inputs_of(workload, workload.resolve("quick"))
    for variant in workload.variants:
        made = variant.build(workload.resolve("quick"))
        np.testing.assert_allclose(made(*inputs), factor * inputs[0])
        compiled = made if hasattr(made, "lower") else jax.jit(made)
        assert compiled.lower(*inputs).compile()(*inputs).shape == (6,)


class Unhashable:
    """An object that compares by value, as models of equinox do."""

    __hash__ = None

    def __call__(self, x):
        return 2 * x


def test_object_without_a_hash_is_compiled():
    workload = adopted(Unhashable(), arguments=["f32[6]"])
    inputs = inputs_of(workload, {})
    for variant in workload.variants:
        np.testing.assert_allclose(jax.jit(variant.build({}))(*inputs), 2 * inputs[0])


def test_default_is_not_written_for_a_documented_function():
    """It may be a large array."""

    class Table:
        def __repr__(self):
            raise MemoryError("a million numbers")

    def look_up(x, table=Table()):  # noqa: B008
        """Rows of a table."""
        return x

    assert adopted(look_up, arguments=["f32[3]"]).title == "Rows of a table."


def test_without_eager_variant_nothing_runs_op_by_op():
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


def repeated(x, n: int = 3, *, rate=0.5, quietly=True, words="all"):
    for _ in range(n):
        x = x * rate
    return x


@pytest.mark.parametrize("function", [repeated, functools.partial(repeated), jax.jit(repeated, static_argnums=1)])
@pytest.mark.parametrize("options", [{"arguments": ["f32[2]"]}, {"companion": lambda: np.ones(2, "float32")}])
def test_a_number_as_default_is_a_parameter(function, options):
    """It is set where the user sets it; until then the function's own default holds."""
    workload = adopted(function, **options)
    shown = [(each.name, each.kind, each.description) for each in workload.parameters]
    assert shown == [("n", "int", "3 unless set"), ("rate", "float", "0.5 unless set")]
    assert workload.resolve("quick") == {}
    for settings, factor in (({}, 0.5**3), ({"n": "5"}, 0.5**5), ({"n": "2", "rate": "3"}, 9.0)):
        parameters = workload.resolve("quick", settings)
        inputs = inputs_of(workload, parameters)
        for variant in workload.variants:
            assert output(variant, parameters, inputs) == pytest.approx(factor * inputs[0]), variant.name
        assert max(errors(workload, parameters, inputs).values()) < 1e-6


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"arguments": ["f32[2]", "4"]}, ["rate"]),
        ({"arguments": ["f32[2]", "rate=0.25"]}, ["n"]),
        ({"declared": {"inputs": ["f32[n]"], "parameters": {"n": 2}}}, ["n"]),
        ({"declared": {"inputs": ["f32[2]"], "numpy": lambda x, n=3: x}}, ["n"]),
        ({"declared": {"inputs": ["f32[2]"], "expected": lambda x, rate=1.0: x}}, ["rate"]),
        ({"declared": {"inputs": ["f32[2]"], "expected": 0.0}}, []),
    ],
    ids=["position", "name", "parameter", "twin", "function", "answer"],
)
def test_a_default_given_otherwise_is_no_parameter(options, left):
    function = repeated
    if declared := options.pop("declared", None):
        function = functools.wraps(repeated)(lambda *given, **named: repeated(*given, **named))
        jaxprof.workload(**declared)(function)
    assert [each.name for each in adopted(function, **options).parameters] == left


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
    (lambda: adopted(step), r"nothing says what they are.*f32.*function_inputs\(\)"),
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
    assert a.shape == (2,)
    assert b == 3
    assert rate == 2.5


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


def made(text, seed=0, **parameters):
    (value,) = make([parse(text)], parameters, np.random.default_rng(seed))
    return value


def test_an_array_has_its_dtype_and_shape():
    for text, dtype, shape in rows("""
        f32[1024,10]       float32        (1024, 10)
        float32[8]         float32        (8,)
        bf16[8,128]        bfloat16       (8, 128)
        f8e4m3fn[4]        float8_e4m3fn  (4,)
        f16[2]             float16        (2,)
        i32[10]            int32          (10,)
        s8[10]             int8           (10,)
        uint8[10]          uint8          (10,)
        c64[4,2]           complex64      (4, 2)
        pred[7]            bool           (7,)
        f32[]              float32        ()
        f32 [ 2 , 3 ]      float32        (2, 3)
        f32[0,3]           float32        (0, 3)
        f32[1e2,]          float32        (100,)
        f32[1_000]         float32        (1000,)
        f32[n,2]           float32        (5, 2)
    """):
        array = made(text, n=5)
        assert (np.asarray(array).dtype.name, str(np.shape(array))) == (dtype, shape)
        assert parse(text).bytes({"n": 5}) == np.asarray(array).nbytes
        np.testing.assert_array_equal(np.asarray(made(text, n=5)), np.asarray(array))


def test_a_key_is_a_typed_key_of_the_seed():
    key = made("key")
    assert jax.random.uniform(key) == jax.random.uniform(made("key"))
    assert jax.random.uniform(key) != jax.random.uniform(made("key", seed=1))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None),
        ("'relu'", "relu"),
        ('"it\'s [a], (word)"', "it's [a], (word)"),
        ("()", ()),
        ("(3,)", (3,)),
        ("[1, 2.5, (True, None)]", [1, 2.5, (True, None)]),
        ("{'a': 1, b: {}, 3: [],}", {"a": 1, "b": {}, 3: []}),
        ("[-1e-3, 1e+2]", [-1e-3, 100.0]),
    ],
)
def test_what_is_nested_is_written_as_in_python(text, value):
    assert made(text) == value
    assert type(made(text)) is type(value)


class Moments(NamedTuple):
    count: Any
    mu: Any


def test_a_tree_has_its_arrays_and_named_tuples_in_place():
    text = f"({{'w': f32[n,2]}}, {__name__}:Moments(count=i32[], mu=[bf16[4]]))"
    params, moments = made(text, n=3)
    assert params["w"].shape == (3, 2)
    assert isinstance(moments, Moments)
    assert (moments.count.dtype, moments.mu[0].shape) == (np.int32, (4,))
    assert parse(text).bytes({"n": 3}) == 24 + 4 + 8


@pytest.mark.parametrize(
    ("path", "what"),
    [("os:system", "not a named tuple"), ("builtins:tuple", "not a named tuple"), ("no.such:Thing", "no class")],
)
def test_nothing_but_named_tuples_is_made_by_name(path, what):
    with pytest.raises(UsageError, match=what):
        made(f"{path}(command='true')")


def test_an_argument_can_be_given_by_name_and_keys_by_shape():
    assert (parse("rate = f32[2]").keyword, parse("rate=f32[2]").shape) == ("rate", (2,))
    assert made("key[3]").shape == (3,)
    assert str(jax.random.key_impl(made("key<rbg>"))) == "rbg"
    with pytest.raises(UsageError, match="nonsense"):
        made("key<nonsense>")


UNREADABLE = [
    "f32[3",
    "[3",
    "{f32[3]}",
    "(f32[3] f32[4])",
    "'relu",
    "a:B(f32[3])",
    "[" * 5000,
    "",
    "x[3][4]",
    "f32[3,,4]",
]


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        *rows("""
            f32         no shape                f32[]
            float32     no shape                float32[8,128]
            flot32[3]   unknown dtype 'flot32'  float32
            zzzzzz[3]   unknown dtype           Known: f16
            f32[-1]     '-1' is not a size      whole number
            f32[nan]    no parameter 'nan'      Or write a number
        """),
        *((text, "cannot read", "{'w': f32[8,4], 'b': f32[4]}") for text in UNREADABLE),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_to_write_it(text, what, hint):
    with pytest.raises(UsageError) as refused:
        made(text)
    assert what in refused.value.what
    assert hint in refused.value.hint


@given(st.text(alphabet="f32key[](){}<>'\",:=.n -_8ü", max_size=20))
@example("({})")
@example("(3)")
@example("( x = 2 )")
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UsageError):
        assert parse(text).text == text.strip()


def test_source_of_a_compiled_method_is_the_users():
    method = Partial(jax.jit(gram), 2)
    assert function_as_written(method) is gram


def test_layers_of_what_wraps_itself_or_more_for_ever_end():
    """`unittest.mock.call` has every attribute, so each of its layers wraps another one."""
    itself = plain = lambda x: x
    itself.__wrapped__ = itself
    assert set(layers(itself)) == {plain}
    assert len(list(islice(layers(mock.call), 1000))) <= 100
