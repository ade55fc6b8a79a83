# about: a row is appended under vmap(cond), so each step selects between two whole logs
# cause: loop carry
# expect: whole_carry
# run: record
# mended: record_dropped
# targets: h100, tpu-v5e
"""256 sensors, each with a log of the readings above its threshold."""

import jax
import jax.numpy as jnp

SENSORS, LONGEST = 256, 2048


def append(log, count, value):
    return jax.lax.cond(  # <- cause
        value > 1.5,
        lambda: (log.at[count].set(value), count + 1),  # <- cause
        lambda: (log, count),  # <- cause
    )


def record(logs, counts, readings):
    def tick(carry, row):
        return jax.vmap(append)(*carry, row), None  # <- cause

    return jax.lax.scan(tick, (logs, counts), readings)[0]  # <- cause


def record_inputs(random):
    readings = random.standard_normal((400, SENSORS), dtype="float32")
    return jnp.zeros((SENSORS, LONGEST)), jnp.zeros(SENSORS, jnp.int32), readings


def record_dropped(logs, counts, readings):
    sensors = jnp.arange(SENSORS)

    def tick(carry, row):
        logs, counts = carry
        above = row > 1.5
        logs = logs.at[sensors, jnp.where(above, counts, LONGEST)].set(row, mode="drop")
        return (logs, counts + above), None

    return jax.lax.scan(tick, (logs, counts), readings)[0]


record_dropped_inputs = record_inputs
