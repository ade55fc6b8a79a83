"""The calls of `hot_loop`, as many as the first argument says. The file of the second gets when the loop began and
ended, and its CPU seconds. Under callgrind its counts are written before and after the loop.
"""

import json
import os
import subprocess
import sys
import time

import jax
import jax.numpy as jnp


@jax.jit
def move(x):
    return x * 0.999 + 0.001


def dump_counts():
    if "COUNTING" in os.environ:
        dump = subprocess.Popen(
            ["vgdb", f"--pid={os.getpid()}", "dump"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while dump.poll() is None:  # valgrind answers while a thread runs
            time.sleep(0.02)


x = move(jnp.zeros(8))
dump_counts()
began, cpu = time.monotonic(), time.thread_time()
for _ in range(int(sys.argv[1])):
    x = move(x)
ended, cpu = time.monotonic(), time.thread_time() - cpu
dump_counts()
with open(sys.argv[2], "w") as file:
    json.dump([began, ended, cpu], file)
