# about: the folder of the compilation cache is made anew at each start
# verdict: - | device-bound | dispatch-bound | compile-bound
# expect: cache_never_found
# lines: cache_never_found@cache
# forbid: recompile_in_loop, varying_shapes, cache_off
# allow: many_tiny_jits
# mended: tide_model_kept
import sys
import tempfile

import jax
import jax.numpy as jnp

folder = tempfile.mkdtemp()
jax.config.update("jax_compilation_cache_dir", folder)  # <- cache
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


@jax.jit
def fit(weights, times, levels):
    def loss(weights):
        waves = jnp.stack([jnp.sin(times * (1 + k) + weights[k]) for k in range(40)])
        return jnp.mean((jnp.einsum("k,kt->t", weights[40:], waves) - levels) ** 2)

    return weights - 0.01 * jax.grad(loss)(weights)


times = jnp.linspace(0.0, 50.0, 4000)
weights = jnp.ones(80)
for _ in range(int(200 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    weights = fit(weights, times, jnp.cos(times))
print(weights[:3])
