"""A loop of psums in which process 1 (alone, the only one) comes to stand still in the way that the first argument
names. `ready-INDEX` appears in the current folder just before."""

import ctypes
import gc
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp

IS_JOB = "JAX_COORDINATOR_ADDRESS" in os.environ
if IS_JOB:
    jax.distributed.initialize()
from jax.experimental.multihost_utils import process_allgather  # noqa: E402

KIND, INDEX = sys.argv[1], jax.process_index()
x = jnp.ones((50, 50))
step = jax.jit(lambda x: (x @ x).sum())


def together(shape=(1,)):
    """One step of all processes."""
    process_allgather(jnp.ones(shape)) if IS_JOB else step(x).block_until_ready()


def lock():
    """Waits for a lock that it holds itself."""
    held = threading.Lock()
    held.acquire()
    held.acquire()


def fifo():
    """Opens a pipe that nobody writes."""
    os.mkfifo("pipe")
    Path("pipe").read_text()


def collect():
    """Does nothing but collect garbage."""
    kept = [[number] for number in range(3_000_000)]
    while kept:
        gc.collect()


def compile_for_ever():
    """Compiles a module of a hundred thousand operations."""

    def long(x):
        for number in range(20_000):
            x = jnp.sin(x) * number + x @ x
        return x

    jax.jit(long)(x).block_until_ready()


def skip():
    """Goes on alone."""
    while True:
        step(x).block_until_ready()


def swallow():
    """Goes on after every exception."""
    while True:
        try:
            time.sleep(1)
        except BaseException as error:  # noqa: BLE001
            print("swallowed", error)


def ignore():
    """Takes no signal."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)


def fail():
    """Raises, and waits in JAX's shutdown for the others."""
    raise ValueError("the data is gone")


def clean_up():
    """Needs three seconds after an interrupt."""
    try:
        time.sleep(900)
    except KeyboardInterrupt:
        time.sleep(3)
        Path("cleaned").touch()
        raise


KINDS = {
    "sleep": lambda: time.sleep(900), "lock": lock, "fifo": fifo, "queue": lambda: queue.Queue().get(), "skip": skip,
    "order": lambda: together((7,)), "compile": compile_for_ever, "collect": collect, "ignore": ignore,
    "swallow": swallow, "fail": fail, "clean_up": clean_up,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP), "locked": lambda: ctypes.PyDLL(None).sleep(900),
}  # fmt: skip

for _ in range(20):
    together()
Path(f"ready-{INDEX}").touch()
if INDEX == 1 or not IS_JOB:
    KINDS[KIND]()
while True:
    together()
