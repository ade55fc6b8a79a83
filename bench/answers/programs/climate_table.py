# about: a table of 24 MB is read from the enclosing scope by a jitted function
# how: script
# expect: captured_constants
# allow: cache_off
import jax
import jax.numpy as jnp
import numpy as np

TABLE = np.random.default_rng(0).standard_normal((2000, 3000)).astype(np.float32)


@jax.jit
def anomaly(days, baseline):
    rows = jnp.asarray(TABLE)[days]
    return 0.9 * baseline + (rows - baseline).mean()


days = jnp.arange(1500)
baseline = jnp.float32(0)
for year in range(150):
    baseline = anomaly(days, baseline)
print(baseline)
