"""A traced program as one of its own: what its `jit` said, what it takes, and that it does the same."""

import functools
import operator
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxprof.engine.measure.portable import (
    Devices,
    _constant,
    lower_for_target,
    program_of,
    trace,
    with_own_names,
)

MESH = Mesh(np.array(jax.devices()[:1]), ("data",))
OVER = NamedSharding(MESH, P("data"))
X = np.arange(6, dtype=np.float32)
HELD = jax.device_put(np.full(6, 2.0, np.float32))


@functools.partial(jax.jit, in_shardings=(OVER, None), out_shardings=OVER, donate_argnums=0)
def step(x, scale):
    return jax.lax.with_sharding_constraint(x * scale + HELD, OVER)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_what_the_jit_said_is_kept_and_the_program_does_the_same():
    traced = trace(step, (X, X))
    assert (traced.name, traced.donated[:2]) == ("step", (True, False))
    assert (traced.in_shardings[:2], traced.out_shardings) == ((OVER, None), (OVER,))
    assert MESH in list(traced.meshes())
    program = program_of(traced, traced.in_shardings, annotated=True)
    assert program.donated == (0,)
    lowered = lower_for_target(program, MESH, Devices(tuple(jax.devices())), "cpu")
    (found,) = lowered.compile()(*(X for slot in traced.slots if slot is not None))
    np.testing.assert_allclose(found, X * X + 2)


def test_traced_numbers_are_inputs_unless_needed():
    plain = trace(lambda x, n: x * n, (X, 3))
    assert len([slot for slot in plain.slots if slot is not None]) == 2
    assert program_of(plain, plain.in_shardings, annotated=False).function.__name__.isidentifier(), "of a lambda"
    static = trace(
        jax.jit(lambda x, n, word: x.reshape(n, -1) if word == "a" else x, static_argnums=(1, 2)), (X, 3, "a")
    )
    assert [slot for slot in static.slots if slot is not None] == [0]
    assert static.jaxpr.out_avals[0].shape == (3, 2)


def test_an_absent_device_is_the_one_a_kernel_is_traced_for():
    kinds = []

    @functools.partial(jax.jit, donate_argnums=0)
    def kernel(x):
        device = jax.sharding.get_abstract_mesh().abstract_device
        kinds.append(device and (device.device_kind, device.num_cores, device.platform))
        return x + 1

    trace(kernel, (X,))
    traced = trace(kernel, (X,), SimpleNamespace(device_kind="NVIDIA H100", core_count=132, platform="cuda"))
    assert kinds == [None, ("NVIDIA H100", 132, "cuda")]
    assert traced.donated == (True,)


class Compiled:
    """Not a function of `jax.jit`, and compiled nevertheless, as equinox's and flax's are."""

    def __init__(self, *inside):
        self.lower, self.inside = None, inside

    def __call__(self, x):
        return functools.reduce(operator.add, (function(x) for function in self.inside))


def test_traced_wrapper_of_several_jits_is_one_program():
    traced = trace(Compiled(jax.jit(jnp.sin), jax.jit(jnp.cos)), (X,))
    assert (traced.name, traced.slots, traced.constants) == ("Compiled", (0,), (None,))
    assert traced.in_shardings == (None,)
    assert traced.donated == (False,)
    assert len(traced.out_shardings) == 1
    program = program_of(traced, traced.in_shardings, annotated=False)
    np.testing.assert_allclose(program.jitted(X)[0], np.sin(X) + np.cos(X), rtol=1e-6)
    assert trace(Compiled(lambda x: step(x, x)), (X,)).name == "step", "around one, it has the name of that"


def test_an_objects_new_state_leaves_the_program():
    nnx = pytest.importorskip("flax.nnx")

    class Counter(nnx.Module):
        def __init__(self):
            self.count = nnx.Param(jnp.zeros(6))

    @nnx.jit
    def count(counter, x):
        counter.count[...] = counter.count[...] + x
        return x.sum()

    traced = trace(count, (Counter(), X))
    assert sorted(aval.shape for aval in traced.jaxpr.out_avals) == [(), (6,)]


def test_export_of_unstable_custom_calls():
    def of_the_users(x):
        for target in ("first_of_theirs", "second_of_theirs"):
            x = jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
        return x

    program = program_of(trace(of_the_users, (X,)), (None,), annotated=False)
    text = lower_for_target(program, MESH, Devices(tuple(jax.devices()[:1])), "cpu").as_text()
    assert {target in text for target in ("first_of_theirs", "second_of_theirs")} == {True}


def test_own_names_replace_ours():
    program = program_of(trace(step, (X, X)), (None, None, None), annotated=False)
    text = (
        'op_name="args[0]" loc("args[0]") loc("args[2]") op_name="jit(step)/call_exported/jit(step)/add" '
        'op_name="jit(step)/call_exported" op_name="jit(other)/call_exported" "args[0]"'
    )
    assert with_own_names(text, program, ["x['a\\\\b']", "scale"]) == (
        r"""op_name="x[\'a\\\\b\']" loc("x['a\\b']") loc("args[2]") op_name="jit(step)/add" """
        'op_name="jit(step)" op_name="jit(other)/call_exported" "args[0]"'
    )


def test_constants_are_on_the_host_and_keys_stay_keys():
    for value, kind in ((jnp.ones(2), np.ndarray), (3.0, float), (jax.random.key(0), jax.Array)):
        variable = object()
        found = _constant(variable, {id(variable): value})
        assert isinstance(found, kind)
        assert bool(jnp.all(found == value))
