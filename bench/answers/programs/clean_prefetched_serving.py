# about: nothing: a thread prepares requests faster than the model answers them, and answers are fetched in bulk
# how: script
# expect: -
# allow: cache_off
import queue
import threading

import jax
import jax.numpy as jnp
import numpy as np

requests = queue.Queue(maxsize=8)


def frontend(count):
    for n in range(count):
        requests.put(jax.device_put(np.full((256, 512), n % 7, np.float32)))
    requests.put(None)


@jax.jit
def answer(weights, x):
    for w in weights:
        x = jax.nn.relu(x @ w)
    return x.sum(axis=1)


weights = [jnp.full((512, 512), 0.01) for _ in range(8)]
threading.Thread(target=frontend, args=(250,), daemon=True).start()
answers = []
while (request := requests.get()) is not None:
    answers.append(answer(weights, request))
print(np.concatenate(jax.device_get(answers)).mean())
