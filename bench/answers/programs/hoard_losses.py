# about: every step's activations are appended to a list that is never used
# how: script
# expect: arrays_grow
# allow: host_sync
import jax
import jax.numpy as jnp


@jax.jit
def forward(w, x):
    hidden = x
    for _ in range(6):
        hidden = jnp.tanh(hidden @ w)
    return w + 1e-6 * hidden[:512], hidden


w = jax.random.normal(jax.random.key(0), (512, 512)) / 25
x = jnp.ones((512, 512))
seen = []
for step in range(300):
    w, hidden = forward(w, x)
    seen.append(hidden)
    if step % 10 == 9:
        w.block_until_ready()
print(len(seen), w.mean())
