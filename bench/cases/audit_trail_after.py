# about: one record at the end; the loop is the device's
# verdict: device-bound
# forbid: *
import json
import os
import sys
import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def rebalance(weights, returns):
    for _ in range(3):
        weights = weights * jnp.exp(0.1 * jnp.tanh(returns * weights))
    return weights / weights.sum()


def backtest(days, folder):
    weights = jnp.full(600_000, 1 / 600_000, jnp.float32)
    returns = [jnp.sin(jnp.arange(600_000.0) + day) for day in range(5)]
    for day in range(days):
        weights = rebalance(weights, returns[day % 5])
    with open(os.path.join(folder, "audit.jsonl"), "w") as file:
        file.write(json.dumps({"days": days, "weights": weights[:100].tolist()}))
    return weights


with tempfile.TemporaryDirectory() as folder:
    print(backtest(int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1)), folder)[:3])
