# about: a recurrent network steps through time by a Python loop inside the jitted function
# how: script
# expect: large_program | slow_tracing
import equinox as eqx
import jax
import jax.numpy as jnp


@eqx.filter_jit
def run_cells(cell, signals, state):
    outputs = []
    for t in range(signals.shape[0]):
        state = cell(signals[t], state)
        outputs.append(state)
    return jnp.stack(outputs)


cell = eqx.nn.GRUCell(8, 32, key=jax.random.key(0))
signals = jax.random.normal(jax.random.key(1), (160, 8))
for trial in range(50):
    out = run_cells(cell, signals, jnp.full(32, trial / 50))
print(out.shape, out.mean())
