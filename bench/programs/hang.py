"""Data-parallel training in which one process hangs after a while, or all go on, as its arguments say.

    jaxprof script -n 4 bench/programs/hang.py KIND INDEX STEPS

KIND: one of those whose lines have a comment `hangs: KIND`, by which the bench finds them; or a healthy one: `none`,
`evaluation` (half a minute of another loop), `first_compile` (a slow compilation before the first step), `pause` (ten
seconds of sleep). INDEX: the process that hangs, after STEPS steps. With one process there is no collective.
"""

import fcntl
import gc
import os
import queue
import signal
import sys
import tempfile
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if os.environ.get("WORLD_SIZE", "1") != "1":
    jax.distributed.initialize()
kind, late, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
index, count = jax.process_index(), jax.process_count()
mesh = Mesh(np.array(jax.devices()).reshape(-1, min(2, count)), ("host", "pair"))
EVERY = ("host", "pair")


def shared(function):
    return jax.jit(
        jax.shard_map(function, mesh=mesh, in_specs=(P(), P(EVERY), P(EVERY)), out_specs=P(), check_vma=False)
    )


def local(weights, rows, flag):
    for _ in range(4):
        rows = jnp.tanh(rows @ weights)
    return weights - 1e-3 * jax.lax.psum(rows.T @ rows, EVERY)


def in_pairs(weights, rows, flag):
    return weights - 1e-3 * jax.lax.psum(rows.T @ rows, "pair")


def branching(weights, rows, flag):
    exchange = lambda total: jax.lax.psum(total, EVERY)  # noqa: E731
    return weights - 1e-3 * jax.lax.cond(flag[0] > 0, exchange, lambda total: total, rows.T @ rows)


def put(array):
    return jax.make_array_from_process_local_data(NamedSharding(mesh, P(EVERY)), array)


def sorted_often(values):
    for _ in range(8_000 if kind == "compile" else 300):
        values = jnp.sort(values * 1.5 + jnp.flip(values))
    return values


def collect():
    kept = [[number] for number in range(2_000_000)]
    while kept:
        gc.collect()  # hangs: gc


def hang(number):
    if kind == "sleep":
        time.sleep(1000)  # hangs: sleep
    elif kind == "lock":
        lock = threading.Lock()
        lock.acquire()
        with lock:  # hangs: lock
            pass
    elif kind == "fifo":
        path = os.path.join(tempfile.mkdtemp(), "shard-7")
        os.mkfifo(path)
        with open(path) as shard:  # hangs: fifo
            shard.read()
    elif kind == "queue":
        queue.Queue().get()  # hangs: queue
    elif kind == "compile":
        jax.jit(sorted_often)(jnp.ones(1000))  # hangs: compile
    elif kind == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)  # hangs: stop
    elif kind == "gc":
        collect()
    elif kind == "checkpoint":
        path = os.path.join(tempfile.mkdtemp(), "checkpoint.lock")
        with open(path, "w") as first, open(path, "w") as second:
            fcntl.flock(first, fcntl.LOCK_EX)
            fcntl.flock(second, fcntl.LOCK_EX)  # hangs: checkpoint
    elif kind == "gil":
        import ctypes

        ctypes.PyDLL(None).sleep(1000)  # hangs: gil
    elif kind == "endless":
        change = 1.0
        while not change < 1e-9:  # never, of a NaN
            change = float(score(jnp.full((128, 128), jnp.nan), np.ones((256, 128), "float32")))  # hangs: endless
    elif kind == "exit":
        sys.exit(0)
    elif kind == "pause":
        time.sleep(10)


def evaluate(weights):
    total, until = 0.0, time.perf_counter() + 30
    while time.perf_counter() < until:
        rows = np.random.default_rng(0).normal(size=(256, 128)).astype("float32")
        total += float(score(jnp.asarray(np.asarray(weights.addressable_data(0))), rows))
    return total


step, other, branch = shared(local), shared(in_pairs), shared(branching)
score = jax.jit(lambda weights, rows: jnp.tanh(rows @ weights).sum())


def train():
    weights = jax.device_put(jnp.full((128, 128), 0.01), NamedSharding(mesh, P()))
    rows, flag = put(np.ones((64, 128), "float32")), put(np.ones(1, "int32"))
    if kind == "first_compile":
        jax.jit(sorted_often)(jnp.ones(1000)).block_until_ready()
    if kind in ("order", "cond"):  # the first call of a collective finds its peers, and fails without them
        for each in (other, branch):
            weights = each(weights, rows, flag).block_until_ready()
    for number in range(2 * steps):
        mine = number == steps and index == late
        if mine and kind == "skip":
            continue
        if number == steps and kind == "order" and mine:
            weights = other(weights, rows, flag).block_until_ready()  # hangs: order
        if number == steps and kind == "order" and not mine:
            weights = step(weights, rows, flag).block_until_ready()
            weights = other(weights, rows, flag).block_until_ready()
        if number == steps and kind == "cond":
            here = put(np.zeros(1, "int32")) if mine else flag
            weights = branch(weights, rows, here).block_until_ready()  # hangs: cond
        weights = step(weights, rows, flag).block_until_ready()  # hangs: skip
        if number == steps and kind == "evaluation":
            evaluate(weights)
        if mine:
            hang(number)


train()
