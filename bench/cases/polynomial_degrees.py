# about: the degree is a static argument and takes another value in each pass
# verdict: compile-bound
# expect: static_argument_varies
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, recompile_in_loop, closure_varies, slow_tracing, host_work
# lines: static_argument_varies@cause
# mended: polynomial_degrees_masked
import sys
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames="degree")
def fit(x, y, degree):
    design = jnp.stack([x**k for k in range(degree + 1)], axis=1)
    q, r = jnp.linalg.qr(design)
    coefficients = jax.scipy.linalg.solve_triangular(r, q.T @ y)
    return jnp.mean((design @ coefficients - y) ** 2)


def choose(x, y, most):
    errors = []
    for degree in range(1, most):
        errors.append(fit(x, y, degree=degree))  # <- cause
    return int(jnp.argmin(jnp.array(errors)))


x = jnp.linspace(-1.0, 1.0, 200)
y = jnp.sin(3 * x) + 0.1 * jnp.cos(40 * x)
print(choose(x, y, 3 + int(6 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
