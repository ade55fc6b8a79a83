# about: the loop waits at a queue for a thread that draws and encodes positions in Python
# how: script
# expect: data_waits
import queue
import random
import threading

import jax
import jax.numpy as jnp
import numpy as np

replays = queue.Queue(maxsize=2)
over = threading.Event()


def player():
    random.seed(0)
    while not over.is_set():
        boards = []
        for _ in range(64):
            board = [0] * 768
            for square in random.sample(range(64), 20):
                board[square * 12 + random.randrange(12)] = 1
            boards.append(board)
        outcome = [random.choice((-1, 0, 1)) for _ in boards]
        while not over.is_set():
            try:
                replays.put((np.array(boards, np.float32), np.array(outcome, np.float32)), timeout=0.1)
                break
            except queue.Full:
                pass


@jax.jit
def learn(w, boards, outcome):
    def loss(w):
        return jnp.mean((jnp.tanh(jax.nn.relu(boards @ w[0]) @ w[1])[:, 0] - outcome) ** 2)

    return jax.tree.map(lambda p, g: p - 0.01 * g, w, jax.grad(loss)(w))


threading.Thread(target=player, daemon=True).start()
w = [jnp.full((768, 64), 0.01, jnp.float32), jnp.full((64, 1), 0.01, jnp.float32)]
for _ in range(250):
    boards, outcome = replays.get()
    w = learn(w, boards, outcome)
over.set()
print(w[1].sum())
