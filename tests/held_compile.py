"""A function that never finishes compiling, on a machine of any speed."""

HELD_COMPILE = """
import ctypes

import jax


def hang(*arguments, **options):
    # In C, without the interpreter's lock and deaf to signals, as XLA compiles.
    mutex = ctypes.create_string_buffer(256)
    ctypes.CDLL(None).pthread_mutex_init(mutex, None)
    while True:
        ctypes.CDLL(None).pthread_mutex_lock(mutex)


def held(x):
    jax.stages.Lowered.compile = hang  # once it is traced: what was compiled before to warm up is compiled
    return x + 1
"""
