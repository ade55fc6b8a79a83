# about: a class with odd names turns text lines into features by a Python comprehension before each step
# how: script
# expect: data_waits
import jax
import jax.numpy as jnp
import numpy as np

LINES = [f"{n * 7919 % 10007};{n % 13};{(n * 31) % 997 / 7:.3f};acct{n % 211}" for n in range(20_000)]


class Well:
    def __init__(self, lines, size):
        self.lines, self.size, self.depth = lines, size, 0

    def bucket(self):
        chosen = [self.lines[(self.depth + n) % len(self.lines)] for n in range(self.size)]
        self.depth += self.size
        parts = [line.split(";") for line in chosen]
        return np.array(
            [[float(a) / 1e4, float(b), float(c), float(hash(d) % 1024) / 1024] for a, b, c, d in parts], np.float32
        )


@jax.jit
def absorb(centre, rows):
    distance = jnp.sum((rows[:, None] - centre) ** 2, -1)
    weight = jax.nn.softmax(-distance)
    return 0.99 * centre + 0.01 * (weight.T @ rows) / (weight.sum(0)[:, None] + 1e-6)


well = Well(LINES, 2048)
centre = jax.random.normal(jax.random.key(0), (16, 4))
for _ in range(500):
    centre = absorb(centre, well.bucket())
print(centre)
