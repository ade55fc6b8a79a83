# about: jax.jit(partial(...)) anew in each round
# verdict: compile-bound
# expect: recompile_in_loop | closure_varies
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_sync, data_waits, host_work
# lines: recompile_in_loop@cause, closure_varies@cause
# mended: bandits_once
import functools
import sys

import jax
import jax.numpy as jnp


def play(values, counts, key, *, temperature):
    chosen = jax.random.categorical(key, values / temperature)
    reward = jax.random.normal(jax.random.fold_in(key, 1)) + chosen / 10
    counts = counts.at[chosen].add(1)
    return values.at[chosen].add((reward - values[chosen]) / counts[chosen]), counts


class Agent:
    def __init__(self, arms):
        self.values, self.counts = jnp.zeros(arms), jnp.zeros(arms)

    def learn(self, rounds):
        for number in range(rounds):
            policy = jax.jit(functools.partial(play, temperature=1.0 / (1 + number)))  # <- cause
            for pull in range(3):
                self.values, self.counts = policy(self.values, self.counts, keys[pull])  # <- cause


keys = [jax.random.key(pull) for pull in range(3)]
agent = Agent(10)
agent.learn(int(7 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
print(agent.values)
