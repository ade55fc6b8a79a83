"""Loops whose time is known by clocks of their own: `bound_loops.py NAME SECONDS FILE` writes the truth, then runs.

A loop is first run for half a second with clocks around its pieces, then without them, for the recording. Of a piece
that calls a compiled function, the time beyond the thread's own is the device's; where the thread computes the function
itself (`inline`), all beyond an empty call; a `callback` says how long the Python took that the function calls;
`queued` calls are timed once the queue is full, and what the thread waits there for a processor that the device has is
no part's.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

Piece = tuple[str, Callable[[], object]]
Run = Callable[[int], object]
LOOPS: dict[str, Callable[[], tuple[list[Piece], Run]]] = {}
MATRIX = jnp.ones((160, 160)) / 160


def loop(function: Callable[[], tuple[list[Piece], Run]]) -> Callable[[], tuple[list[Piece], Run]]:
    LOOPS[function.__name__] = function
    return function


@jax.jit
def products(x: jax.Array, count: int) -> jax.Array:
    """About 0.1 ms each; not inline, as it has many operations of floating point."""
    return jax.lax.fori_loop(0, count, lambda _, y: y @ MATRIX, x @ MATRIX)


@jax.jit
def counting(x: jax.Array, count: int) -> jax.Array:
    """Few operations for XLA, which has the calling thread compute it."""
    return jax.lax.fori_loop(0, count, lambda _, y: y * 1.0001 + 1, x)


@jax.jit
def empty(x: jax.Array) -> jax.Array:
    return x + 1


def spin(microseconds: float) -> int:
    """Python that holds the interpreter's lock."""
    end, turns = time.perf_counter() + microseconds * 1e-6, 0
    while time.perf_counter() < end:
        turns += 1
    return turns


def device(count: int, waits: bool = True) -> tuple[list[Piece], Run]:
    out = [MATRIX]

    def call() -> None:
        out[0] = products(MATRIX, count)

    def run(passes: int) -> None:
        for _ in range(passes):
            y = products(MATRIX, count)
            if waits:
                y.block_until_ready()
        jax.block_until_ready(y)

    if not waits:
        return [("queued", call)], run
    return [("call", call), ("wait", lambda: out[0].block_until_ready())], run


for _name, _count in {"100us": 0, "1ms": 10, "10ms": 100, "100ms": 1000, "500ms": 5000}.items():
    LOOPS[f"device_{_name}"] = lambda count=_count: device(count)
LOOPS["queued_100us"] = lambda: device(0, waits=False)
LOOPS["queued_10ms"] = lambda: device(100, waits=False)


@loop
def device_5us() -> tuple[list[Piece], Run]:
    x = jnp.ones(600)

    def run(passes: int) -> None:
        for _ in range(passes):
            counting(x, 8)

    return [("inline", lambda: counting(x, 8))], run


@loop
def small_product() -> tuple[list[Piece], Run]:
    x, out = jnp.ones((48, 48)), [jnp.ones(1)]
    product = jax.jit(lambda x: x @ x)

    def call() -> None:
        out[0] = product(x)

    def run(passes: int) -> None:
        for _ in range(passes):
            y = product(x)
            y.block_until_ready()

    return [("call", call), ("wait", lambda: out[0].block_until_ready())], run


def inline(count: int) -> tuple[list[Piece], Run]:
    x = jnp.ones(4)

    def run(passes: int) -> None:
        for _ in range(passes):
            counting(x, count)

    return [("inline", lambda: counting(x, count))], run


LOOPS["inline_300us"] = lambda: inline(80_000)
LOOPS["inline_5ms"] = lambda: inline(1_400_000)
LOOPS["empty"] = lambda: inline(1)


def of_nnx(size: int) -> tuple[list[Piece], Run]:
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self) -> None:
            self.layers = nnx.List([nnx.Linear(size, size, rngs=nnx.Rngs(i)) for i in range(8)])

        def __call__(self, x: jax.Array) -> jax.Array:
            for layer in self.layers:
                x = nnx.relu(layer(x))
            return x

    model, x, out = Model(), jnp.ones((size, size)), [jnp.ones(1)]

    @nnx.jit
    def step(model: Model, x: jax.Array) -> jax.Array:
        for layer in model.layers:
            layer.bias[...] = layer.bias[...] * 0.999
        return model(x)

    def run(passes: int) -> None:
        for _ in range(passes):
            y = step(model, x)
        y.block_until_ready()

    def call() -> None:
        out[0] = step(model, x)

    return [("queued", call)], run


LOOPS["nnx_small"] = lambda: of_nnx(8)
LOOPS["nnx_large"] = lambda: of_nnx(512)


def of_equinox(size: int) -> tuple[list[Piece], Run]:
    import equinox as eqx

    model = eqx.nn.MLP(size, size, size, 6, key=jax.random.key(0))
    x = jnp.ones((size, size))

    @eqx.filter_jit
    def step(model: eqx.nn.MLP, x: jax.Array) -> jax.Array:
        return jax.vmap(model)(x)

    out = [x]

    def call() -> None:
        out[0] = step(model, x)

    def run(passes: int) -> None:
        for _ in range(passes):
            y = step(model, x)
            y.block_until_ready()

    return [("call", call), ("wait", lambda: out[0].block_until_ready())], run


LOOPS["filter_jit_small"] = lambda: of_equinox(8)
LOOPS["filter_jit_large"] = lambda: of_equinox(512)


def leaves(count: int, *, used: bool, products_after: int = 0) -> tuple[list[Piece], Run]:
    tree = {f"p{index}": jnp.ones(3) for index in range(count)}
    out = [MATRIX]

    @jax.jit
    def step(tree: dict[str, jax.Array], x: jax.Array) -> object:
        y = jax.lax.fori_loop(0, products_after, lambda _, y: y @ MATRIX, x) if products_after else x + tree["p0"][0]
        return (jax.tree.map(lambda leaf: leaf * 0.999, tree) if used else tree["p1"]), y

    def call() -> None:
        out[0] = step(tree, MATRIX)  # type: ignore[call-overload]

    def run(passes: int) -> None:
        for _ in range(passes):
            kept, y = step(tree, MATRIX)
            y.block_until_ready()
        del kept

    return [("call", call), ("wait", lambda: out[0][1].block_until_ready())], run


LOOPS["leaves_3000_unused"] = lambda: leaves(3000, used=False)
LOOPS["leaves_300"] = lambda: leaves(300, used=True)
LOOPS["leaves_300_device"] = lambda: leaves(300, used=True, products_after=60)


class Trainer:
    """A trainer as people write them: the step is a method, and keeps its books in Python."""

    def __init__(self, count: int, book_microseconds: float) -> None:
        self.count, self.microseconds, self.y = count, book_microseconds, MATRIX

    def book(self) -> None:
        spin(self.microseconds)

    def call(self) -> None:
        self.y = products(MATRIX, self.count)

    def wait(self) -> None:
        self.y.block_until_ready()

    def step(self) -> None:
        self.book()
        self.y = products(MATRIX, self.count)
        self.y.block_until_ready()

    def epoch(self, passes: int) -> None:
        for _ in range(passes):
            self.step()


def booked(count: int, microseconds: float, *, nested: bool = False) -> tuple[list[Piece], Run]:
    trainer = Trainer(count, microseconds)

    def run(passes: int) -> None:
        for _ in range(passes):
            trainer.book()
            y = products(MATRIX, count)
            y.block_until_ready()

    return [("host", trainer.book), ("call", trainer.call), ("wait", trainer.wait)], (trainer.epoch if nested else run)


LOOPS["book_most"] = lambda: booked(5, 3000)
LOOPS["book_some"] = lambda: booked(20, 500)
LOOPS["book_brief"] = lambda: booked(0, 700)
LOOPS["book_in_method"] = lambda: booked(5, 3000, nested=True)
LOOPS["book_little_in_method"] = lambda: booked(30, 300, nested=True)


@loop
def callback() -> tuple[list[Piece], Run]:
    took = [0.0]

    def host(x: np.ndarray) -> np.ndarray:
        began = time.perf_counter()
        spin(1500)
        took[0] += time.perf_counter() - began
        return x

    step = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float32), x) + 1)

    def run(passes: int) -> None:
        for _ in range(passes):
            step(1.0).block_until_ready()

    def called() -> float:
        before = took[0]
        step(1.0).block_until_ready()
        return took[0] - before

    return [("callback", called)], run


def fetched(count: int) -> tuple[list[Piece], Run]:
    total, out = jax.jit(lambda x: products(x, count).sum()), [jnp.ones(1)]

    def call() -> None:
        out[0] = total(MATRIX)

    def run(passes: int) -> float:
        kept = 0.0
        for _ in range(passes):
            y = total(MATRIX)
            kept += y.item()
        return kept

    return [("call", call), ("wait", lambda: out[0].item())], run


LOOPS["item_200us"] = lambda: fetched(1)
LOOPS["item_3ms"] = lambda: fetched(30)


def fed(make: Callable[[], np.ndarray], count: int) -> tuple[list[Piece], Run]:
    out = [MATRIX]

    def call() -> None:
        out[0] = products(MATRIX, count)

    def batches(passes: int):  # type: ignore[no-untyped-def]
        for _ in range(passes):
            yield make()

    def run(passes: int) -> None:
        for batch in batches(passes):
            y = products(batch, count)
            y.block_until_ready()

    return [("data", make), ("call", call), ("wait", lambda: out[0].block_until_ready())], run


def slept() -> np.ndarray:
    time.sleep(0.005)
    return np.ones((160, 160), np.float32)


def parsed() -> np.ndarray:
    spin(4000)
    return np.ones((160, 160), np.float32)


LOOPS["data_sleeps"] = lambda: fed(slept, 8)
LOOPS["data_python"] = lambda: fed(parsed, 8)
LOOPS["data_hardly"] = lambda: fed(lambda: np.ones((160, 160), np.float32), 40)


@loop
def logged_beside() -> tuple[list[Piece], Run]:
    """Another thread holds the lock for a third of the time."""

    def log() -> None:
        while True:
            spin(2000)
            time.sleep(0.004)

    threading.Thread(target=log, daemon=True).start()
    return device(30)


def sharded(size: int) -> tuple[list[Piece], Run]:
    """A step over all devices, whose call waits until each has begun; `bound.py` has XLA make two of the CPU."""
    devices = jax.devices()
    mesh = jax.sharding.Mesh(np.array(devices), ("data",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    x = jax.device_put(jnp.ones((128 * len(devices), size)), rows)
    weights, out = jnp.ones((size, size)) / size, [MATRIX]

    @jax.jit
    def step(x: jax.Array) -> jax.Array:
        for _ in range(8):
            x = jnp.tanh(x @ weights)
        return jnp.mean(x * x)

    def call() -> None:
        out[0] = step(x)

    def run(passes: int) -> None:
        for _ in range(passes):
            y = step(x)
            y.block_until_ready()

    return [("call", call), ("wait", lambda: out[0].block_until_ready())], run


LOOPS["sharded_32"] = lambda: sharded(32)
LOOPS["sharded_200"] = lambda: sharded(200)


@loop
def op_by_op() -> tuple[list[Piece], Run]:
    x = jnp.ones(8)

    def work() -> jax.Array:
        return jnp.sin(x) * 2 + jnp.cos(x)

    def run(passes: int) -> None:
        for _ in range(passes):
            y = jnp.sin(x) * 2
            y = y + jnp.cos(x)

    return [("dispatch", work)], run


def delay_seconds() -> float:
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()[1]) * 1e-9


class Truth:
    """The shares of the parts by clocks, over pieces that are run between those of the recorded loop."""

    def __init__(self, pieces: list[Piece]) -> None:
        x = jnp.ones(4)
        for _, work in pieces * 3:
            work()
        self.pieces, self.empty = pieces, lambda: counting(x, 1)
        self.parts = dict.fromkeys(("device", "dispatch", "host", "data"), 0.0)
        self.delayed = self.seconds = 0.0

    def measure(self, seconds: float) -> float:
        """Adds so long, and returns the mean seconds of a pass."""
        clock, cpu = time.perf_counter, time.thread_time
        for part, work in self.pieces * QUEUE:
            if part == "queued":  # until as many are under way as there may be
                work()
        wall, own, back = ([0.0] * len(self.pieces) for _ in range(3))
        began, delayed, worked, passes = clock(), delay_seconds(), cpu(), 0
        while clock() - began < seconds or not passes:
            for index, (part, work) in enumerate(self.pieces):
                at, ran = clock(), cpu()
                result = work()
                own[index] += cpu() - ran
                wall[index] += clock() - at
                back[index] += result if part == "callback" and isinstance(result, float) else 0.0
            passes += 1
        took = clock() - began
        self.seconds += took
        self.delayed += delay_seconds() - delayed
        stretch = 1 + (delay_seconds() - delayed) / max(cpu() - worked, 1e-9)
        for (part, work), whole, ran, called in zip(self.pieces, wall, own, back, strict=True):
            if part in self.parts:
                self.parts[part] += whole
                continue
            calling = min(whole, ran * stretch)
            waited = calling - calling / stretch if part == "queued" else 0.0
            if part == "inline":
                calling *= share_of(self.empty, work)
            self.parts["host"] += called
            self.parts["dispatch"] += calling - waited - called
            self.parts["device"] += whole - calling
        return took / passes

    @property
    def shares(self) -> dict[str, float]:
        return {part: spent / sum(self.parts.values()) for part, spent in self.parts.items()}


def share_of(part: Callable[[], object], work: Callable[[], object]) -> float:
    """CPU seconds of a call over those of another one: of the quietest of some batches, in turns."""
    turns = [(usual(part), usual(work)) for _ in range(3)]
    return min(1.0, min(least for least, _ in turns) / min(whole for _, whole in turns))


def usual(work: Callable[[], object]) -> float:
    """CPU seconds of a call, in one batch."""
    ran, began, calls = time.thread_time(), time.perf_counter(), 0
    while time.perf_counter() - began < 0.004 or not calls:
        for _ in range(10 if calls else 1):
            work()
        calls += 10 if calls else 1
    return (time.thread_time() - ran) / calls


CHUNKS = 4
QUEUE = 34


def main() -> None:
    name, seconds, file = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    pieces, run = LOOPS[name]()
    truth = Truth(pieces)
    each = truth.measure(0.2)
    began = time.perf_counter()
    run(few := max(2, int(0.2 / each)))
    count = max(2, int(seconds / CHUNKS * few / (time.perf_counter() - began)))
    ran = 0.0
    for _ in range(CHUNKS):
        began = time.perf_counter()
        run(count)
        ran += time.perf_counter() - began
        truth.measure(0.1 * seconds / CHUNKS)
    delayed = truth.delayed / truth.seconds
    lines = [line for *_, line in getattr(run, "__func__", run).__code__.co_lines() if line]
    rate = {"rate": CHUNKS * count / ran, "lines": [min(lines), max(lines)]}
    file.write_text(json.dumps({"parts": truth.shares, "delayed": delayed, **rate}))


if __name__ == "__main__":
    main()
