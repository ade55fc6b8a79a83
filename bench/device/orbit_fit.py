# about: a Jacobian of 300 results by six arguments is taken in reverse, one result at a time
# cause: backward
# expect: costly_backward
# run: normal_equations
# mended: normal_equations_forward
# targets: h100, tpu-v5e
import jax
import jax.numpy as jnp


def observe(elements, times):
    a, e, inclination, node, perigee, phase = elements
    mean = phase + times * a**-1.5
    eccentric = mean
    for _ in range(6):
        eccentric = eccentric - (eccentric - e * jnp.sin(eccentric) - mean) / (1 - e * jnp.cos(eccentric))
    x, y = a * (jnp.cos(eccentric) - e), a * jnp.sqrt(1 - e * e) * jnp.sin(eccentric)
    u = x * jnp.cos(perigee) - y * jnp.sin(perigee)
    return u * jnp.cos(node) - (x * jnp.sin(perigee) + y * jnp.cos(perigee)) * jnp.sin(node) * jnp.cos(inclination)


@jax.jit
def normal_equations(elements, times):
    jacobian = jax.jacrev(observe)(elements, times)  # <- cause
    return jacobian.T @ jacobian


def normal_equations_inputs():
    return jnp.array([1.2, 0.1, 0.4, 0.3, 0.8, 0.1]), jnp.linspace(0, 40, 300)


@jax.jit
def normal_equations_forward(elements, times):
    jacobian = jax.jacfwd(observe)(elements, times)
    return jacobian.T @ jacobian


normal_equations_forward_inputs = normal_equations_inputs
