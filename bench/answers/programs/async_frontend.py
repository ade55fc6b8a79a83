# about: an asyncio server jits a new lambda for each request
# how: script
# expect: recompile_in_loop | closure_varies
# set: holdout
import asyncio

import jax
import jax.numpy as jnp

WEIGHTS = jax.random.normal(jax.random.key(0), (128, 128)) / 12


async def client(inbox, count):
    for n in range(count):
        await inbox.put((n, jnp.full((128,), float(n), jnp.float32)))
        await asyncio.sleep(0)
    await inbox.put(None)


async def server(inbox, answers):
    while True:
        request = await inbox.get()
        if request is None:
            return
        number, x = request
        think = jax.jit(lambda w, v: jnp.tanh(jnp.tanh(w @ v) @ w).sum())
        answers[number] = think(WEIGHTS, x)


async def main():
    inbox, answers = asyncio.Queue(4), {}
    await asyncio.gather(client(inbox, 30), server(inbox, answers))
    return answers


print(sum(float(a) for a in asyncio.run(main()).values()))
