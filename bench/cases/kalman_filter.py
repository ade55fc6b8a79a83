# about: a filter written in jnp, operation by operation, without jit
# verdict: dispatch-bound | host-bound
# expect: op_by_op_loop
# forbid: host_sync, data_waits, many_tiny_jits, dispatch_bound, host_work, arrays_grow
# lines: op_by_op_loop@cause
# mended: kalman_filter_scan
import sys

import jax.numpy as jnp

steps = int(3000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
F = jnp.array([[1.0, 0.1], [0.0, 1.0]])
H = jnp.array([[1.0, 0.0]])
Q = 0.01 * jnp.eye(2)
R = jnp.array([[0.5]])


def advance(mean, cov, z):
    mean = F @ mean  # <- cause
    cov = F @ cov @ F.T + Q  # <- cause
    S = H @ cov @ H.T + R  # <- cause
    K = cov @ H.T / S  # <- cause
    mean = mean + K @ (z - H @ mean)  # <- cause
    cov = (jnp.eye(2) - K @ H) @ cov  # <- cause
    return mean, cov


observations = [float(i % 17) for i in range(steps)]
mean, cov = jnp.zeros(2), jnp.eye(2)
for z in observations:
    mean, cov = advance(mean, cov, z)  # <- cause
print(mean)
