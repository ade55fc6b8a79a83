# about: np.asarray of the small result of each call, to count what is right
# how: script
# expect: host_sync
import jax
import jax.numpy as jnp
import numpy as np


def dense(key, m, n):
    return {"w": jax.random.normal(key, (m, n)) / m**0.5, "b": jnp.zeros(n)}


@jax.jit
def classify(net, frames):
    x = frames
    for layer in net[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return jnp.argmax(x @ net[-1]["w"] + net[-1]["b"], axis=-1)


keys = jax.random.split(jax.random.key(1), 4)
net = [dense(keys[0], 80, 256), dense(keys[1], 256, 256), dense(keys[2], 256, 40)]
frames = jax.random.normal(keys[3], (16, 80))
truth = np.zeros((32, 16), np.int32)

right = 0
for sweep in range(200):
    for batch in range(32):
        guess = np.asarray(classify(net, frames))
        right += int((guess == truth[batch]).sum())
print(right)
