# about: a tuple of Python floats from NumPy's generator makes the noise of each step on the host
# how: script
# expect: data_waits | host_work
# allow: numpy_argument
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


@jax.jit
def drift(walkers, kicks):
    return jnp.clip(walkers + 0.1 * kicks, -10, 10)


walkers = jnp.zeros((500, 1000))
for _ in range(150):
    kicks = rng.standard_normal((500, 1000)).astype(np.float32)
    walkers = drift(walkers, kicks)
print(walkers.std())
