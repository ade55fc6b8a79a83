# about: a generator sleeps until its sensor answers, between steps that take much less
# verdict: data-bound
# expect: data_waits
# forbid: op_by_op_loop, many_tiny_jits, host_sync, dispatch_bound, host_work, numpy_argument
# lines: data_waits@cause
# mended: tabular_queue_ahead
import sys
import time

import jax
import jax.numpy as jnp


class Sensor:
    def __init__(self, readings):
        self.readings = readings

    def __iter__(self):
        for number in range(self.readings):
            time.sleep(0.04)  # <- cause
            yield [float(number % 7), float(number % 3)]


@jax.jit
def follow(estimate, reading):
    return 0.9 * estimate + 0.1 * jnp.stack(reading)


class Tracker:
    def __init__(self):
        self.estimate = jnp.zeros(2)

    def run(self, sensor):
        for reading in sensor:  # <- cause
            self.estimate = follow(self.estimate, reading)
        return self.estimate


print(Tracker().run(Sensor(int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))))
