# about: an environment in Python asks the network for an action, and int() waits for it at each step
# how: script
# expect: host_sync | dispatch_bound
# set: holdout
import jax
import jax.numpy as jnp
from flax import nnx


class Agent(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = nnx.Linear(4, 64, rngs=rngs), nnx.Linear(64, 4, rngs=rngs)

    def __call__(self, seen):
        return self.b(nnx.relu(self.a(seen)))


agent = Agent(nnx.Rngs(0))
graph, weights = nnx.split(agent)


@jax.jit
def act(weights, seen):
    return jnp.argmax(nnx.merge(graph, weights)(seen))


MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
x = y = visits = 0
steps = 0
while steps < 20_000:
    move = MOVES[int(act(weights, jnp.array([x, y, 10 - x, 10 - y], jnp.float32)))]
    x, y = (x + move[0]) % 11, (y + move[1]) % 11
    visits += x == y
    steps += 1
print(visits)
