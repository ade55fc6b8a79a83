# about: nothing; a program that is over at once, of which nothing can be said
# verdict: -
# forbid: *
import jax
import jax.numpy as jnp


@jax.jit
def selu(x, alpha=1.67, scale=1.05):
    return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


for _ in range(3):
    print(selu(jnp.arange(5.0)))
