# about: a meter takes .item() of two results of each small evaluation step, in a method
# verdict: host-bound | device-bound | dispatch-bound
# expect: host_sync
# forbid: op_by_op_loop, many_tiny_jits, repeated_fetch, arrays_grow, host_work
# lines: host_sync@cause
# mended: accuracy_meter_on_device
import sys

import jax
import jax.numpy as jnp


@jax.jit
def evaluate(w, x, y):
    logits = jnp.tanh(x @ w)
    return jnp.mean(jnp.argmax(logits, 1) == y), jnp.mean(jax.nn.logsumexp(logits, 1))


class Meter:
    def __init__(self):
        self.correct = self.loss = 0.0

    def add(self, correct, loss):
        self.correct += correct.item()  # <- cause
        self.loss += loss.item()  # <- cause


def main():
    w = jnp.eye(64, 10)
    x = jnp.sin(jnp.arange(512.0 * 64)).reshape(512, 64)
    y = jnp.arange(512) % 10
    meter = Meter()
    for _ in range(int(12_000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
        correct, loss = evaluate(w, x, y)
        meter.add(correct, loss)  # <- cause
    print(meter.correct, meter.loss)


main()
