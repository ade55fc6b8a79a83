"""Compilations of every kind, planted; run as a program of its own, in any interpreter that has jax and NumPy.

It prints one JSON object: for each case, which is a function, the rows of the ledger and what else it told. Cases of
libraries, as their users write them, come last; one whose library is not there is left out.
"""

import contextlib
import dataclasses
import functools
import gc
import inspect
import json
import os
import sys
import tempfile
import threading
import typing
import weakref
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

from jaxprof.recorder.compiles.ledger import Ledger

SHARED = ("make_step", "made_with", "placed", "ones", "main")
"""Functions that are no cases."""
OF_LIBRARIES = ("pmap", "nnx_jit", "filter_jit")
FOUR, THREE = np.ones(4, np.float32), np.ones(3, np.float32)


def shape():
    step = jax.jit(lambda x: x * 2)
    step(FOUR)
    step(THREE)


def dtype():
    step = jax.jit(lambda x: x * 2)
    step(FOUR)
    step(FOUR.astype(np.int32))


def structure():
    step = jax.jit(lambda params: params["w"] * 2)
    step({"w": FOUR})
    step({"w": FOUR, "b": FOUR})
    step({"w": THREE})


def unrolled():
    """Its operations are made in a function that it calls, and it is compiled by hand."""

    def layer(x):
        return jnp.sin(x) + 0.5  # made here

    def network(x):
        for _ in range(600):
            x = layer(x)
        return x

    jax.jit(network).lower(FOUR).compile()


def python_numbers():
    """A bool or an array may come back from the function; a number that is not used is not copied."""
    step = jax.jit(lambda x, count, flag: x * count + flag)
    step(FOUR, 2, True)
    step(FOUR, 2.5, True)
    step(FOUR, jnp.ones(()), True)
    unused = jax.jit(lambda x, count: x)
    unused(FOUR, 2)


def static_argument():
    @functools.partial(jax.jit, static_argnames=("n",))
    def repeat(x, n):
        return x * n

    repeat(FOUR, n=3)
    repeat(FOUR, n=4)
    repeat(FOUR, 4)


class Login(typing.NamedTuple):
    user: str
    password: str


@dataclasses.dataclass(frozen=True)
class Settings:
    login: Login
    api_key: str = ""
    layers: int = 3


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Remote:
    w: Any
    token: str = dataclasses.field(metadata={"static": True})


def secrets():
    """Values that the program is compiled for again, in each of the forms in which they come."""
    step = jax.jit(lambda x, api_key, what: x, static_argnames=("api_key", "what"))
    for number in ("1", "2"):
        for value in (
            f"hunter{number}",
            f"hunter-{number}".encode(),
        ):
            step(FOUR, api_key=value, what=0)
        for value in (
            f"postgres://bob:hunter{number}@host/" + "d" * 99,
            f"A=1 PGPASSWORD=hunter{number}",
            ("x", ("password", f"hunter{number}")),
            Login("bob", f"hunter{number}"),
            Settings(Login("bob", f"hunter{number}"), layers=4),
            Settings(Login("the name of somebody whose name is long", ""), api_key=f"hunter{number}"),
            functools.partial(print, f"hunter{number}"),
            Path("/home", f"hunter{number}"),
        ):
            step(FOUR, "", value)
        jax.jit(lambda remote: remote.w)(Remote(FOUR, f"hunter{number}"))
        made_with(f"hunter{number}")(FOUR)


def made_with(password):
    return jax.jit(lambda x: x * len(password))


def new_function():
    for _ in range(3):
        jitted = jax.jit(lambda x: x + 1)
        jitted(FOUR)


def same_function_jitted_again():
    def once(x):
        return x - 1

    for _ in range(3):
        jax.jit(once)(FOUR)


def config():
    step = jax.jit(lambda x: x @ x)
    step(FOUR)
    with jax.default_matmul_precision("float32"):
        step(FOUR)
    jax.config.update("jax_enable_x64", True)
    step(FOUR)
    jax.config.update("jax_enable_x64", False)


def sharding():
    step = jax.jit(lambda x: x * 2)
    step(np.ones(8, np.float32))
    step(jax.device_put(np.ones(8, np.float32), jax.devices()[1]))
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    step(jax.device_put(np.ones(8, np.float32), spread))


def sharding_axis():
    step = jax.jit(lambda x: x * 2)
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
    for spec in (("data", None), ("data", "model"), (None, ("data", "model"))):
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
        step(jax.device_put(np.ones((8, 8), np.float32), sharding))


def donated():
    def step(x):
        return x * 3

    jax.jit(step)(FOUR)
    jax.jit(step, donate_argnums=0)(FOUR)


def cleared():
    step = jax.jit(lambda x: x * 2)
    step(FOUR)
    jax.clear_caches()
    step(FOUR)
    step.clear_cache()
    step(FOUR)


def make_step(rate):
    @jax.jit
    def step(x):
        return x * rate

    return step


def factory():
    for number in range(3):
        step = make_step(0.5 / (number + 1))
        step(FOUR)


def unused_donation():
    """No output can take the place of `n` and `x`, and in the second program of one of two."""

    def step(params, x):
        return params["w"] * 2, x.sum() + params["n"].sum()

    jax.jit(step, donate_argnums=(0, 1))({"w": jnp.asarray(FOUR), "n": jnp.ones(7)}, jnp.ones((8, 2)))
    jax.jit(step, donate_argnames="params")({"w": jnp.asarray(FOUR), "n": jnp.ones(4)}, jnp.ones((8, 3)))
    jax.jit(step)({"w": jnp.asarray(FOUR), "n": jnp.ones(7)}, jnp.ones((8, 4)))


def traced_within():
    inner = jax.jit(lambda a: a * 5)
    outer = jax.jit(lambda a: inner(a) + 1)
    outer(FOUR)
    inner(FOUR)


def derived():
    def loss(x):
        return (x**2).sum()

    jitted = jax.jit(loss)
    jax.grad(jitted)(FOUR)
    jitted(FOUR)


def within_a_trace():
    def outer(x):
        with jax.ensure_compile_time_eval():
            scale = inner(THREE)
        return x * scale[0]

    inner = jax.jit(lambda q: q * 7)
    jax.jit(outer)(FOUR)


def from_numpy():
    step = jax.jit(lambda pair, k, mode: pair[0] * k, static_argnames="mode")
    on_device = jax.device_put(np.ones((8, 4), np.float32))
    step((np.ones((8, 4)), on_device), np.float32(2), mode="x")
    step((on_device, on_device), 2.0, mode="x")


def placed(offset, dtype="float32"):
    """200 × 200 numbers that begin `offset` bytes behind an address that XLA can use."""
    raw = np.zeros(400_000, np.uint8)
    first = -raw.ctypes.data % 64 + offset
    return raw[first : first + 40_000 * np.dtype(dtype).itemsize].view(dtype).reshape(200, 200)


ALIGNED, MISALIGNED, WIDE = placed(0), placed(4), placed(0, "float64")
TRANSPOSED = ALIGNED.T


def zero_copy():
    """An array that a CPU uses where it is, and four that are copied: misaligned, converted, transposed, and another
    one in each call of its function."""
    jax.jit(lambda x: x * 2)(ALIGNED)
    jax.jit(lambda x: x * 3)(MISALIGNED)
    jax.jit(lambda x: x * 4)(WIDE)
    jax.jit(lambda x: x * 5)(TRANSPOSED)
    local = placed(0)
    jax.jit(lambda x: x * 6)(local)


def zero_copy_in_a_loop():
    """What is another array in each pass may lie anywhere."""
    kept = {"x": placed(0)}
    same, fresh, made, part = (jax.jit(lambda x, n=n: x * n) for n in range(4))
    for batch in (placed(0), placed(0)):
        same(kept["x"])
        fresh(batch)
        made(np.ascontiguousarray(batch))
        whole = kept
        part(x=whole["x"])


def replaced_by_the_result():
    """What the result takes the place of is copied once."""

    class State:
        params: Any = placed(4)

    state, batch = State(), placed(4)
    tree = {"w": placed(4)}
    step = jax.jit(lambda params, batch, *, rate=1.0: (params * batch * rate, params.sum()))
    other = jax.jit(lambda batch, params: {"w": params["w"] + batch})
    third = jax.jit(lambda params, batch: params - batch)
    fourth = jax.jit(lambda params, batch: params + batch)
    kept = placed(4)
    for _ in range(2):
        state.params, _ = step(state.params, batch)
        tree = other(batch, params=tree)
        new = third(kept, batch)
        kept = new
        fourth(batch, batch)


def method_of_each_instance():
    class Network:
        def __init__(self):
            self.step = jax.jit(self.forward)

        def forward(self, x):
            return x * 2

    for _ in range(2):
        Network().step(FOUR)


def forked():
    child = os.fork()
    if child == 0:
        # JAX itself is not to be used in a forked child: only its listener is
        LEDGERS[0].stage_began("trace", "forked", sys._getframe())
        os._exit(len(LEDGERS[0].running()))
    _, status = os.waitpid(child, 0)
    assert status == 0


def by_hand():
    traced = jax.jit(lambda x: x + 1).trace(FOUR)
    lowered = traced.lower()
    lowered.compile()


def lowered_only():
    jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((7,), "float32"))


def op_by_op():
    x = jnp.asarray(FOUR)
    _ = x * 2


def thread():
    worker = threading.Thread(target=lambda: jax.jit(lambda x: x - 3)(FOUR), name="loader")
    worker.start()
    worker.join()


def persistent_cache():
    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        from jax.experimental.compilation_cache import compilation_cache

        compilation_cache.reset_cache()
        step = jax.jit(lambda x: jnp.tanh(x) @ x)
        step(FOUR)
        jax.clear_caches()
        step(FOUR)
        jax.config.update("jax_compilation_cache_dir", None)
        compilation_cache.reset_cache()


LEDGERS = []
KEPT = []


def nothing_kept():
    class Big:
        pass

    big = Big()
    array = jnp.asarray(np.ones(11, np.float32))

    def uses(x):
        return x if big else x + 1

    KEPT.extend([weakref.ref(big), weakref.ref(uses)])
    jax.jit(uses)(array)
    KEPT.append(weakref.ref(array))
    jax.clear_caches()


def ones(*shape):
    return jax.device_put(np.ones(shape, np.float32))


class Wrapped:
    """What `functools.update_wrapper` makes of an object."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def update_wrapper():
    @jax.jit
    @Wrapped
    def step(params, x, *, scale):
        return params["w"] * x * scale

    for size in (2, 3):
        step({"w": ones(1)}, ones(size), scale=2.0)


def bound_method():
    class Model:
        def step(self, x, *more):
            return x + more[0]

    step = jax.jit(Model().step)
    for size in (2, 3):
        step(ones(size), ones(size))


def pmap():
    def step(params, x):
        return params["w"] * x

    mapped = jax.pmap(step)
    for size in (2, 3):
        mapped({"w": np.ones((2, 1), np.float32)}, np.ones((2, size), np.float32))


def nnx_jit():
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self):
            self.scale = nnx.Param(ones(1))
            self.layers = nnx.List([nnx.Param(ones(1))])

        @nnx.jit
        def method(self, x):
            return x * self.scale[...]

    @nnx.jit
    def train_step(model, x, rate):
        model.scale[...] = model.scale[...] - rate
        return x * model.scale[...] * model.layers[0][...]

    model = Model()
    for size in range(2, 5):
        train_step(model, ones(size), 0.5)
    for size in (2, 3):
        model.method(ones(size))

    @nnx.jit
    def evaluate(model, batch):
        return model.scale[...] * batch[0] + batch[1]

    cached = nnx.cached_partial(evaluate, model)
    for size in (2, 3):
        cached((ones(size), ones(1)))


def filter_jit():
    import equinox

    class Model(equinox.Module):
        layers: list[Any]
        name: str = equinox.field(static=True)

        @equinox.filter_jit
        def method(self, x):
            return x * self.layers[0]

        def __call__(self, x):
            return x * self.layers[0]

    @equinox.filter_jit
    def train_step(model, x, rate):
        return model.layers[0] * x * rate

    model = Model([ones(1)], "a")
    for size in (2, 3):
        train_step(model, ones(size), rate=0.5)
    train_step(model, ones(3), 0.25)
    train_step(Model([ones(1)], "b"), ones(3), 0.25)
    for size in (2, 3):
        model.method(ones(size))
    equinox.filter_jit(model)(ones(2))


def main():
    events = []
    ledger = Ledger(events.append)
    ledger.attach()
    calls = []
    LEDGERS.append(ledger)
    ledger.on_call = lambda function, name, args, kwargs: calls.append(name)
    told = {}

    def tell(name, run):
        events.clear()
        calls.clear()
        run()
        ledger.finish()
        told[name] = {
            "rows": [{"event": event.type, **dataclasses.asdict(event)} for event in events],
            "calls": [*calls],
        }

    cases = {name: each for name, each in globals().items() if inspect.isfunction(each) and name not in SHARED}
    libraries = {name: cases.pop(name) for name in OF_LIBRARIES}
    for name, run in cases.items():
        tell(name, run)
    gc.collect()
    told["end"] = {
        "running": [stage.function for stage in ledger.running()],
        "alive": [reference() is not None for reference in KEPT],
        "seconds": ledger.stage_seconds(),
        "threads": threading.active_count(),
    }
    for name, run in libraries.items():
        with contextlib.suppress(ModuleNotFoundError):
            tell(name, run)
    told["problems"] = ledger.problems
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
