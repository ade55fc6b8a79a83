# about: people are added to a grid one by one with .at[].add, outside any jit
# how: script
# expect: op_by_op_loop
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
places = rng.integers(0, 64, (4000, 2))
heat = jnp.zeros((64, 64))
for row, column in places:
    heat = heat.at[row, column].add(1.0)
    heat = heat * 0.9999
print(heat.max())
