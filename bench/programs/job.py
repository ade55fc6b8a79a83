"""Data-parallel training with a psum in each step, one of whose processes is made slow or fails, as its arguments say.

    jaxprof script -n 4 bench/programs/job.py HOW INDEX STEPS

HOW: `none`, `data` (fetching takes 5 ms more), `host` (Python between steps takes 5 ms more), `recompile` (a function
of its own, for another shape every 20 steps), `compute` (its device computes 5 ms more), `stop` (SIGSTOP for a
second, in the middle), `raise` (an exception) or `kill` (SIGKILL). Prints, from process 0, the seconds of its loop.
"""

import os
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.distributed.initialize()
how, late, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
index = jax.process_index()
mesh = Mesh(np.array(jax.devices()), ("data",))


def spin(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def local(weights, rows, work):
    out = jax.lax.fori_loop(0, work[0], lambda _, rows: jnp.tanh(rows @ weights), rows)
    return weights - 1e-3 * jax.lax.psum(rows.T @ out, "data")


def put(array):
    return jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), array)


def batch(number):
    if how == "data" and index == late:
        spin(0.005)
    return put(np.random.default_rng(number).normal(size=(32, 128)).astype("float32"))


step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False))
extra = jax.jit(lambda rows: (rows * 2).sum())
weights = jax.device_put(jnp.zeros((128, 128)), NamedSharding(mesh, P()))
work = put(np.array([84 if how == "compute" and index == late else 4], "int32"))
weights = step(weights, batch(0), work).block_until_ready()
began = time.perf_counter()
for number in range(steps):
    weights = step(weights, batch(number), work).block_until_ready()
    if index == late:
        if how == "host":
            spin(0.005)
        elif how == "recompile" and number % 20 == 0:
            extra(np.ones(10 + number, "float32"))
        elif how == "stop" and number == steps // 2:
            subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
        elif how == "raise" and number == steps // 2:
            raise ValueError("the shard is damaged")
        elif how == "kill" and number == steps // 2:
            os.kill(os.getpid(), signal.SIGKILL)
if index == 0:
    print(f"loop {time.perf_counter() - began:.4f}", flush=True)
