"""One function, another shape each time: it is compiled again and again."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def spread(x):
    return jnp.sqrt(jnp.mean((x - x.mean()) ** 2))


print(sum(float(spread(np.ones(size, np.float32))) for size in range(1, 60)))
