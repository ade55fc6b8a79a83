# about: caches are cleared in each round with the persistent cache on, which keeps nothing that compiles so fast
# verdict: compile-bound
# expect: caches_cleared
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_sync, data_waits, host_work
# mended: nightly_cache_argument
import sys
import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def best_split(features, targets):
    order = jnp.argsort(features, axis=0)
    sums = jnp.cumsum(targets[order], axis=0)
    counts = jnp.arange(1, len(features) + 1)[:, None]
    gain = sums**2 / counts + (sums[-1] - sums) ** 2 / jnp.maximum(len(features) - counts, 1)
    return jnp.unravel_index(jnp.argmax(gain), gain.shape)


def boost(rounds):
    features = jax.random.normal(jax.random.key(0), (300, 12))
    targets = jnp.sin(features[:, 0])
    for _ in range(rounds):
        feature = best_split(features, targets)
        jax.clear_caches()  # keeps the memory low
    return feature


with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    print(boost(int(5 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
    jax.config.update("jax_compilation_cache_dir", None)
