# about: NumPy decomposes a matrix that has nothing to do with the step in each pass
# verdict: host-bound
# expect: host_work
# forbid: op_by_op_loop, many_tiny_jits, host_sync, data_waits, dispatch_bound, repeated_fetch
# lines: host_work@cause
# mended: audit_trail_after
import argparse

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(w):
    return w - 0.01 * jnp.tanh(w)


def spectrum(reference):
    return np.linalg.svd(reference, compute_uv=False)[:3]  # <- cause


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scale", nargs="?", type=float, default=1.0)
    steps = int(60 * parser.parse_args().scale)
    reference = np.random.default_rng(0).standard_normal((200, 200))
    w = jnp.ones(1000)
    history = []
    for _ in range(steps):
        w = step(w)
        reference *= 0.999
        history.append(spectrum(reference)[0])  # <- cause
    print(history[-1], w[0])


if __name__ == "__main__":
    main()
