# about: a JSON record of a thousand Python numbers is made and written to disk in each pass
# verdict: host-bound | wait-bound
# expect: host_work | host_waits
# forbid: op_by_op_loop, many_tiny_jits, host_sync, data_waits, dispatch_bound, repeated_fetch
# lines: host_work@cause, host_waits@cause
# mended: audit_trail_after
import json
import os
import sys
import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def rebalance(weights, returns):
    weights = weights * jnp.exp(0.1 * returns)
    return weights / weights.sum()


def write(file, day, limits):
    rows = [{"asset": f"A{n:04d}", "limit": limit} for n, limit in enumerate(limits)]  # <- cause
    record = {"day": day, "limits": rows}
    file.write(json.dumps(record, indent=1, sort_keys=True) + "\n")  # <- cause
    file.flush()  # <- cause
    os.fsync(file.fileno())  # <- cause


def backtest(days, folder):
    weights = jnp.full(1500, 1 / 1500, jnp.float32)
    returns = [jnp.sin(jnp.arange(1500.0) + day) for day in range(5)]
    limits = [1.0 / (n + 1) for n in range(1500)]
    with open(os.path.join(folder, "audit.jsonl"), "w") as file:
        for day in range(days):
            weights = rebalance(weights, returns[day % 5])
            write(file, day, limits)  # <- cause
    return weights


with tempfile.TemporaryDirectory() as folder:
    print(backtest(int(120 * float(sys.argv[1] if len(sys.argv) > 1 else 1)), folder)[:3])
