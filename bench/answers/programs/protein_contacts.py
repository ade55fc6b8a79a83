# about: Newton's method asks in an `if` whether it has converged, in each of its small passes
# how: script
# expect: host_sync | dispatch_bound
import equinox as eqx
import jax
import jax.numpy as jnp


class Energy(eqx.Module):
    couplings: jax.Array
    fields: jax.Array

    def __call__(self, x):
        return 0.5 * x @ self.couplings @ x - self.fields @ x + jnp.sum(x**4)


@jax.jit
def descend(energy, x, rate):
    gradient = jax.grad(energy)(x)
    return x - rate * gradient, jnp.linalg.norm(gradient)


def relax(energy, x, tolerance=1e-30, limit=1200):
    for _ in range(limit):
        x, size = descend(energy, x, 1e-3)
        if size < tolerance:
            break
    return x


key = jax.random.key(3)
a = jax.random.normal(key, (420, 420)) / 30
energy = Energy(a @ a.T, jax.random.normal(key, (420,)))
starts = jax.random.normal(key, (4, 420))
for start in starts:
    print(float(energy(relax(energy, start))))
