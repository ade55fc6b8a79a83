"""What a program would need with a change: real JAX on shapes, in this process, and nothing of it is left behind."""

import importlib
import sys
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import pytest

from engine.measure.heard import of, reporter
from jaxprof.engine.measure import jax_run, remedies
from jaxprof.engine.measure.control import Cancelled, CapReached, Reporter, RunControl
from jaxprof.engine.measure.remedies import try_remedies
from jaxprof.engine.measure.run import measure_request
from jaxprof.engine.measure.sampling import here
from jaxprof.engine.measure.stages import compile_stages, memory_of
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import BuffersReported, RemedyTried, RunSpec


def rows(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


STATE, BATCH, LAYERS = rows(128, 128), rows(4096, 128), rows(12, 128, 128)


def layer(x, w):
    return jnp.tanh(x @ w), None


def block(x, w, name="relu"):
    return jnp.sin(jnp.tanh(x @ w)) if name == "relu" else x


def update(state, batch):
    return state - 1e-3 * (batch.T @ batch)


def scanned(params, x):
    return params - jax.grad(lambda w: (jax.lax.scan(layer, x, w)[0] ** 2).mean())(params)


def scanned_twice(params, x):
    first = jax.grad(lambda w: (jax.lax.scan(layer, x, w)[0] ** 2).mean())(params)
    return first + jax.grad(lambda w: (jax.lax.scan(layer, -x, w)[0] ** 2).mean())(params)


def blocks(params, x):
    def loss(w):
        return (block(block(x, w), w) ** 2).mean()

    return params - jax.grad(loss)(params)


def forward(params, x):
    return block(x, params).sum()


def looked_up(table, index):
    return (jnp.sin(table[index]) @ jnp.ones((128, 512))).sum(0)


def events_of(function, *arguments):
    heard, events = reporter()
    try_remedies(heard, function, arguments, partial(compile_stages, keep_constants=False))
    return events


def tried(function, *arguments):
    """Return what was tried, by its name."""
    return {event.remedy: event for event in events_of(function, *arguments)}


def peak(function, *arguments):
    memory = memory_of(jax.jit(function).lower(*arguments).compile())
    return memory.argument_bytes + memory.output_bytes + memory.temporary_bytes - memory.alias_bytes


def test_donation_saves_the_result_it_takes():
    def decay(state, batch):
        return state * 0.9 + batch.sum()

    found = tried(decay, STATE, BATCH)["donate"]
    assert found.subject == "state"
    assert found.peak_bytes == peak(decay, STATE, BATCH) - 4 * 128 * 128
    assert "donate" not in tried(forward, STATE, BATCH), "no result has the shape of an argument"


def test_a_scan_is_checkpointed_where_it_is_the_only_one():
    found = tried(scanned, LAYERS, BATCH)["checkpoint_scan"]
    assert (found.location.file, found.location.function) == (__file__, "<lambda>")
    assert found.peak_bytes < 0.7 * peak(scanned, LAYERS, BATCH)
    assert "checkpoint_scan" not in tried(scanned_twice, LAYERS, BATCH), "which of the two is unknown"
    assert "checkpoint_scan" not in tried(update, STATE, BATCH)


@jax.tree_util.register_pytree_node_class
class Block:
    def __init__(self, weights):
        self.weights = weights

    def tree_flatten(self):
        return [self.weights], None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)

    @staticmethod
    def wave(x):
        return jnp.sin(x)

    def __call__(self, x, name="relu"):
        return self.wave(jnp.tanh(x @ self.weights)) if name == "relu" else x


def of_class(block, params, x):
    """A step whose loss calls an object of a class twice."""

    def loss(w):
        made = block(w)
        return (made(made(x, name="relu"), name="relu") ** 2).mean()

    return params - jax.grad(loss)(params)


def step_of_methods(params, x):
    return of_class(Block, params, x)


def test_a_method_of_a_pytree_is_checkpointed(monkeypatch):
    monkeypatch.setattr(remedies, "is_own", lambda file: file == __file__)
    before = Block.__call__
    found = [each for each in events_of(step_of_methods, STATE, BATCH) if each.remedy == "checkpoint"]
    [method] = [each for each in found if each.subject == "Block.__call__"]
    assert method.location.line == before.__code__.co_firstlineno
    assert Block.__call__ is before
    monkeypatch.setattr(Block, "__call__", remedies._checkpoint(before))
    assert method.peak_bytes == peak(step_of_methods, STATE, BATCH)


FLAX = """
import jax, jax.numpy as jnp
from flax import {library} as library

class Block(library.Module):
{body}

{step}
"""
LINEN = FLAX.format(library="linen", body="""
    @library.compact
    def __call__(self, x, name="relu"):
        w = self.param("w", library.initializers.ones, (128, 128))
        return jnp.sin(jnp.tanh(x @ w)) if name == "relu" else x
""", step="""
class Net(library.Module):
    @library.compact
    def __call__(self, x):
        return Block()(Block()(x))

def step(params, x):
    loss = lambda p: (Net().apply({"params": {"Block_0": {"w": p}, "Block_1": {"w": p}}}, x) ** 2).mean()
    return params - jax.grad(loss)(params)
""")  # fmt: skip
NNX = FLAX.format(library="nnx", body="""
    def __init__(self, w):
        self.w = library.Param(w)
    def __call__(self, x, name="relu"):
        return jnp.sin(jnp.tanh(x @ self.w[...])) if name == "relu" else x
""", step="""
def step(params, x):
    def loss(p):
        block = Block(p)
        return (block(block(x)) ** 2).mean()
    return params - jax.grad(loss)(params)
""")  # fmt: skip
EQUINOX = """
import equinox, jax, jax.numpy as jnp

class Block(equinox.Module):
    w: jax.Array
    def __call__(self, x, name="relu"):
        return jnp.sin(jnp.tanh(x @ self.w)) if name == "relu" else x

def step(params, x):
    def loss(p):
        block = Block(p)
        return (block(block(x)) ** 2).mean()
    return params - jax.grad(loss)(params)
"""

HELD = """
import dataclasses, functools, jax, jax.numpy as jnp

class Method:
    def __init__(self, function):
        self.function = function
    def __get__(self, instance, owner):
        return self.function if instance is None else functools.partial(self.function, instance)

@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Block:
    w: jax.Array
    @Method
    def __call__(self, x):
        return jnp.sin(jnp.tanh(x @ self.w))

def step(params, x):
    def loss(p):
        block = Block(p)
        return (block.__call__(block.__call__(x)) ** 2).mean()
    return params - jax.grad(loss)(params)
"""


@pytest.mark.parametrize(("library", "source"), [("flax", LINEN), ("flax", NNX), ("equinox", EQUINOX), ("jax", HELD)])
def test_a_method_of_a_model_is_checkpointed(library, source, tmp_path, monkeypatch):
    pytest.importorskip(library)
    file = tmp_path / "model_of_a_library.py"
    file.write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, file.stem, module := importlib.import_module(file.stem))
    monkeypatch.setattr(remedies, "is_own", lambda path: path == str(file))
    written = vars(module.Block)["__call__"]
    found = [each for each in events_of(module.step, STATE, BATCH) if each.remedy == "checkpoint"]
    assert vars(module.Block)["__call__"] is written, "put back, be it a function or an object of the library"
    assert "Block.__call__" in [each.subject for each in found]
    monkeypatch.setattr(module.Block, "__call__", remedies._checkpoint(module.Block.__call__))
    assert "optimization_barrier" in jax.jit(module.step).lower(STATE, BATCH).as_text()


def test_a_function_of_the_forward_pass_is_checkpointed(monkeypatch):
    monkeypatch.setitem(globals(), "built_in", jax.jit(len))  # of which there is no code in Python
    before, scan = block, jax.lax.scan
    found = tried(blocks, STATE, BATCH)["checkpoint"]
    assert (found.subject, found.location.line) == ("block", block.__code__.co_firstlineno)
    assert (block, jax.lax.scan) == (before, scan), "put back"
    assert "checkpoint" not in tried(forward, STATE, BATCH), "nothing is differentiated"


def halves(function, *arguments):
    return [(event.subject, event.size) for event in events_of(function, *arguments) if event.remedy == "half"]


def test_rows_are_halved_of_what_no_result_replaces():
    assert halves(update, STATE, BATCH) == [("batch", 2048)]
    assert halves(looked_up, rows(100_000, 128), rows(4095, dtype="int32")) == [("table", 50_000)], "an odd number"

    def step(x, labels):
        return (jnp.tanh(x @ x.T) * labels[:, None]).sum(0)[:3]

    assert halves(step, rows(512, 128), rows(512)) == [("x, labels", 256)], "neither goes without the other"


def test_a_halved_batch_shrinks_temporaries_and_a_table_does_not():
    table, batch = (
        event for event in events_of(looked_up, rows(100_000, 128), rows(4096, dtype="int32")) if event.size
    )
    assert (table.subject, batch.subject) == ("table", "index")
    assert batch.temporary_bytes < 0.75 * table.temporary_bytes


def test_float32_arguments_are_narrowed_and_others_not():
    assert tried(update, STATE, BATCH)["bfloat16"].subject == "state, batch"
    assert "bfloat16" not in tried(looked_up, rows(64, 8, dtype="bfloat16"), rows(4096, dtype="int32"))


def test_a_cancelled_run_tries_nothing_more():
    heard, events = reporter()
    heard.control.cancel()
    with pytest.raises(Cancelled):
        try_remedies(heard, update, (STATE, BATCH), lambda *_: pytest.fail("compiled"))
    assert events == []


def test_nothing_that_was_traced_with_a_change_is_left():
    control, jitted = RunControl(), jax.jit(blocks)
    heard = Reporter(lambda event: control.cancel() if event.remedy == "checkpoint" else None, control)
    with pytest.raises(Cancelled):
        try_remedies(heard, jitted, (STATE, BATCH), partial(compile_stages, keep_constants=False))
    assert "remat" not in str(jax.make_jaxpr(jitted)(STATE, BATCH))


def test_models_with_functions_among_their_leaves_are_tried():
    def step(model, x):
        return {**model, "weights": model["weights"] - model["activation"](x).T @ x}

    model = {"weights": STATE, "activation": jnp.tanh}
    found = tried(step, model, BATCH)
    assert (found["half"].subject, found["half"].size) == ("x", 2048)
    assert found["bfloat16"].subject == "model, x"


STEP = """
import jax.numpy as jnp

def step(state, batch):
    return state - 1e-3 * jnp.tanh(batch * state).sum(0)
"""


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Returns the events of a run of which XLA says that it needs more than is free."""
    file = tmp_path / "train.py"
    file.write_text(STEP)
    monkeypatch.setattr(jax_run, "available_host_bytes", lambda: 100)
    spec = RunSpec(workload="step", variant="jit", how="jit", device="cpu:0", target=f"{file}:step", check=False,
                   arguments=("f32[64]", "f32[512,64]"), budget_seconds=0.02)  # fmt: skip

    def events_of_run(execute, **given):
        events = []
        request = RunRequest(run="r1", spec=replace(spec, **given))
        measure_request(request, events.append, RunControl(), execute)
        return events

    return events_of_run


@pytest.mark.parametrize(
    ("execute", "given", "tried"),
    [
        (lambda work: work(), {}, {"state", "batch", "state, batch"}),
        (here, {}, set()),
        (lambda work: work(), {"side": "B"}, set()),
    ],
    ids=["a run", "in the user's process", "a side"],
)
def test_a_run_that_does_not_fit_is_tried_in_our_process(refused, execute, given, tried):
    events = refused(execute, **given)
    assert events[-1].out_of_memory
    assert {each.subject for each in of(events, RemedyTried)} == tried
    (held,) = [each for each in of(events, BuffersReported) if each.asked_bytes]
    assert held.free_bytes == 100 < held.asked_bytes


def test_a_run_whose_time_is_over_still_ran_out_of_memory(refused, monkeypatch):
    def over(*_):
        raise CapReached

    monkeypatch.setattr(remedies, "try_remedies", over)
    end = refused(lambda work: work())[-1]
    assert end.status == "failed"
    assert end.out_of_memory is True
