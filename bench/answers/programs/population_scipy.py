# about: SciPy's minimiser calls an objective and a gradient that are not jitted
# how: script
# expect: op_by_op_loop
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

times = jnp.linspace(0, 10, 200)
measured = 3 * jnp.exp(-0.4 * times) + jnp.sin(times)


def misfit(p):
    model = p[0] * jnp.exp(-p[1] * times) + p[2] * jnp.sin(p[3] * times) + p[4]
    return jnp.sum((model - measured) ** 2) + 1e-3 * jnp.sum(p**2)


def both(p):
    value, slope = jax.value_and_grad(misfit)(jnp.asarray(p, jnp.float32))
    return float(value), np.asarray(slope, np.float64)


for start in range(30):
    found = minimize(both, np.array([1.0, 0.1, 0.5, 1.1, 0.0]) + 0.02 * start, jac=True, method="L-BFGS-B")
print(found.x, found.fun)
