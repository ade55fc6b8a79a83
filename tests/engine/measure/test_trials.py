"""What a trial changes, and what it leaves alone: real JAX, in this process, undone after each test."""

import inspect
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.base.errors import JaxprofError
from jaxprof.engine.measure.trials import ProgramChange, one_by_one
from jaxprof.events import NOWHERE, SourceLocation
from jaxprof.findings.trials import TRIALS

X = jnp.arange(12.0).reshape(4, 3)


@pytest.fixture
def tried():
    """Begins trials, and undoes them after the test."""
    trials = []

    def begin(name, line=NOWHERE):
        trials.append(ProgramChange(name, line))
        return trials[-1]

    yield begin
    for trial in reversed(trials):
        trial.undo()


def line_of(function, words):
    """Return the line of `function` that has these words."""
    lines, first = inspect.getsourcelines(function)
    (number,) = [number for number, line in enumerate(lines, first) if words in line]
    return SourceLocation(__file__, number)


def lines_of(trial):
    return [line.line for line in trial.report_reach().lines]


def primitives(function, *args):
    return str(jax.make_jaxpr(lambda *given: function(*given))(*args))  # a function that JAX has not traced yet


def dense(weights, x):
    return {"y": jnp.tanh(x @ weights["w"]) + weights["b"], "sum": x.sum()}


def biased(x, bias=0.0):
    return x * 2 + bias


WEIGHTS = {"w": jnp.ones((5, 3, 2)), "b": jnp.arange(10.0).reshape(2, 5)}
MAPPED = {
    "all arguments": (jnp.dot, 0, 0, (X, X), {}),
    "one of them": (jnp.dot, (0, None), 0, (X, X[0]), {}),
    "a list of axes": (jnp.dot, [0, None], 0, (X, X[0]), {}),
    "another axis": (jnp.sum, 1, 0, (X,), {}),
    "the last axis": (jnp.cumsum, -1, -1, (X,), {}),
    "an axis in a tree": (dense, ({"w": 0, "b": 1}, None), {"y": 1, "sum": None}, (WEIGHTS, X[0]), {}),
    "an array by name": (biased, 0, 0, (X,), {"bias": jnp.arange(4.0)}),
    "keys": (jax.random.normal, 0, 0, (jax.random.split(jax.random.key(3), 4),), {}),
    "arrays of NumPy": (jnp.dot, (0, None), 0, (np.asarray(X), np.ones(3, np.float32)), {}),
    "a number": (lambda x, n: x**n, (0, None), 0, (X, 2), {}),
}


@pytest.mark.parametrize("case", MAPPED)
def test_one_by_one_computes_what_vmap_computes(case):
    function, in_axes, out_axes, args, kwargs = MAPPED[case]
    expected = jax.vmap(function, in_axes, out_axes)(*args, **kwargs)
    found = jax.jit(lambda: one_by_one(function, in_axes, out_axes, args, kwargs))()
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def two_maps(x):
    first = jax.vmap(jnp.sin)(x)
    return jax.vmap(jnp.cos)(first)


def test_only_the_map_at_the_line_becomes_a_loop(tried):
    trial = tried("map", line_of(two_maps, "jnp.cos"))
    text = primitives(two_maps, X)
    assert "sin" in text.partition("scan")[0], "the first map is one operation"
    assert "cos" in text.partition("scan")[2], "the second one is in a loop"
    assert lines_of(trial) == [line_of(two_maps, "jnp.cos").line]


def inner(row):
    shifted = row + 1
    return jnp.exp(shifted)


def outer(x):
    return jax.vmap(jax.vmap(partial(inner)))(x)


def beside(x):
    return jax.vmap(jnp.sin)(x)


def test_a_map_is_found_by_a_line_of_what_it_maps(tried):
    trial = tried("map", line_of(inner, "jnp.exp"))
    text = primitives(outer, X)
    assert text.count("scan") == 1, "the outer of two"
    assert "scan" not in primitives(beside, X)
    assert lines_of(trial) == [line_of(outer, "vmap").line]


def test_a_map_that_was_made_earlier_is_found_when_it_is_traced(tried):
    trial = tried("map", line_of(inner, "jnp.exp"))
    many = jax.jit(jax.vmap(inner))
    np.testing.assert_allclose(many(X), np.exp(np.asarray(X) + 1), rtol=1e-6)
    assert "scan" in primitives(many, X)
    assert len(lines_of(trial)) == 1


def test_vmap_with_a_named_axis_stays(tried):
    trial = tried("map")
    assert "scan" not in primitives(jax.vmap(lambda x: x - jax.lax.pmean(x, "batch"), axis_name="batch"), X)
    with pytest.raises(JaxprofError, match=r"no call of jax\.vmap can be changed"):
        trial.report_reach()


def two_loops(x):
    x, _ = jax.lax.scan(lambda carry, _: (carry * 2, None), x, length=8)
    x, _ = jax.lax.scan(lambda carry, _: (carry + 1, None), x, length=8)
    return jax.lax.fori_loop(0, 8, lambda _, carry: carry - 1, x, unroll=2)


def unrolled(text):
    return [int(rest.partition("\n")[0].strip(" ]")) for rest in text.split("unroll=")[1:]]


def test_only_the_loop_at_the_line_is_unrolled(tried):
    before = unrolled(primitives(two_loops, 1.0))
    trial = tried("unroll", line_of(two_loops, "carry + 1"))
    assert [before, unrolled(primitives(two_loops, 1.0))] == [[1, 1, 2], [1, 4, 2]]
    assert lines_of(trial) == [line_of(two_loops, "carry + 1").line]


def test_without_a_line_every_loop_is_unrolled_that_is_not_yet(tried):
    trial = tried("unroll")
    assert unrolled(primitives(two_loops, 1.0)) == [4, 4, 2]
    assert len(lines_of(trial)) == 2


def test_a_line_that_calls_no_loop_is_refused(tried):
    trial = tried("unroll", line_of(inner, "jnp.exp"))
    primitives(two_loops, 1.0)
    with pytest.raises(JaxprofError, match=r"that leads to .*test_trials\.py:\d+ can be changed"):
        trial.report_reach()


def products(a):
    first = jnp.einsum("ij,kj->ik", a, a, precision="highest")
    with jax.default_matmul_precision("high"):
        return first @ first


def test_products_are_computed_at_the_default_precision(tried):
    assert "HIGHEST" in primitives(products, X)
    trial = tried("default_precision")
    assert "HIGH" not in primitives(products, X)
    assert lines_of(trial) == [line_of(products, "einsum").line]


HELD = [
    ("float32", "jax_enable_x64", True, False),
    ("rbg", "jax_default_prng_impl", "threefry2x32", "rbg"),
    ("unpartitioned", "jax_threefry_partitionable", True, False),
]


@pytest.mark.parametrize(("name", "setting", "wanted", "held"), HELD)
def test_a_setting_holds_whatever_the_program_sets(tried, name, setting, wanted, held):
    former = getattr(jax.config, setting)
    trial = tried(name)
    jax.config.update(setting, wanted)
    assert getattr(jax.config, setting) == held
    assert lines_of(trial) == []
    trial.undo()
    assert getattr(jax.config, setting) == former
    jax.config.update(setting, former)  # as before: the program's own way to set it is back
    assert getattr(jax.config, setting) == former


def step(state, gradient, rate):
    return {"w": state["w"] - rate * gradient}, gradient.sum()


def test_donated_argument_matches_results(tried):
    trial = tried("donate")
    arguments = {"w": jnp.ones((8, 8))}, jnp.ones((8, 8)), 0.1
    donating = trial.donating(jax.jit(step), arguments)
    infos = jax.tree.leaves(donating.lower(*arguments).args_info, is_leaf=lambda info: hasattr(info, "donated"))
    assert [info.donated for info in infos] == [True, False, False]
    assert lines_of(trial) == []
    assert tried("rbg").donating(step, arguments) is step


def test_no_argument_that_could_be_donated_is_an_error(tried):
    with pytest.raises(JaxprofError, match="no argument has the shapes"):
        tried("donate").donating(jnp.sum, (X,))


def test_all_that_was_replaced_is_put_back(tried):
    names = [
        (jax, "vmap"),
        (jax.lax, "scan"),
        (jax.lax, "fori_loop"),
        (jnp, "einsum"),
        (jax, "default_matmul_precision"),
    ]
    before = [getattr(owner, name) for owner, name in names]
    trials = [tried(name) for name in ("map", "unroll", "default_precision")]
    assert not any(getattr(owner, name) is function for (owner, name), function in zip(names, before, strict=True))
    for trial in reversed(trials):
        trial.undo()
    assert [getattr(owner, name) for owner, name in names] == before


def test_a_trial_that_the_client_knows_is_known_here(tried):
    for name in TRIALS:
        tried(name).undo()
    with pytest.raises(JaxprofError, match="there is no trial 'faster'"):
        tried("faster")


def test_a_line_is_known_by_any_path_of_its_file(tried, tmp_path):
    link = tmp_path / "linked.py"
    link.symlink_to(__file__)
    line = line_of(two_maps, "jnp.cos")
    trial = tried("map", SourceLocation(str(link), line.line))
    assert "scan" in primitives(two_maps, X)
    assert lines_of(trial) == [line.line]
