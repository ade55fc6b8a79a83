# about: one jitted function over very many agents; the temperature is an argument
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def play(values, counts, key, temperature):
    keys = jax.random.split(key, values.shape[0])

    def one(values, counts, key):
        chosen = jax.random.categorical(key, values / temperature)
        reward = jax.random.normal(jax.random.fold_in(key, 1)) + chosen / 10
        counts = counts.at[chosen].add(1)
        return values.at[chosen].add((reward - values[chosen]) / counts[chosen]), counts

    return jax.vmap(one)(values, counts, keys)


class Agents:
    def __init__(self, agents, arms):
        self.values, self.counts = jnp.zeros((agents, arms)), jnp.zeros((agents, arms))

    def learn(self, rounds):
        for number in range(rounds):
            for pull in range(3):
                self.values, self.counts = play(self.values, self.counts, keys[pull], 1.0 / (1 + number))


keys = [jax.random.key(pull) for pull in range(3)]
agents = Agents(20_000, 10)
agents.learn(int(30 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
print(agents.values[0])
