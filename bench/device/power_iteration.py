# about: vmap of a while_loop: all matrices iterate until the slowest has converged
# cause: longest lane
# expect: longest_lane
# run: leading_eigenvalues
# mended: leading_eigenvalues_each
# trial: map
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp
import numpy as np


def leading(matrix):
    def going(state):
        _, change, n = state
        return (change > 1e-5) & (n < 3000)

    def improve(state):
        v, _, n = state
        w = matrix @ v  # <- cause
        w = w / jnp.linalg.norm(w)
        return w, jnp.max(jnp.abs(w - v)), n + 1

    start = jnp.ones(matrix.shape[0]) / matrix.shape[0] ** 0.5, jnp.inf, 0
    v, _, _ = jax.lax.while_loop(going, improve, start)  # <- cause
    return v @ matrix @ v


def leading_eigenvalues(matrices):
    return jax.vmap(leading)(matrices)  # <- cause


def leading_eigenvalues_inputs(random, size=96):
    rows = []
    for gap in np.where(np.arange(48) % 24 == 0, 0.003, 0.5):
        q = np.linalg.qr(random.standard_normal((size, size)))[0]
        values = np.linspace(0.1, 1 - gap, size)
        values[-1] = 1.0
        rows.append((q * values) @ q.T)
    return np.array(rows, "float32")


def leading_eigenvalues_each(matrices):
    return jax.lax.map(leading, matrices)


leading_eigenvalues_each_inputs = leading_eigenvalues_inputs
