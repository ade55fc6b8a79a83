"""The arrays that are alive when memory has run out, by line: real JAX, in this process."""

import jax.numpy as jnp
import pytest

from jaxprof.recorder.live_arrays import arrays_by_line
from jaxprof.recorder.recorder import failure


def made(count):
    return [jnp.full((512, 512), float(number)) for number in range(count)]


def held_at(line):
    return [
        (each.count, each.bytes)
        for each in arrays_by_line()
        if each.location.file == __file__ and each.location.line == line
    ]


def test_arrays_are_counted_at_the_line_that_made_them():
    line = made.__code__.co_firstlineno + 1
    assert held_at(line) == []
    kept = made(3)
    assert held_at(line) == [(3, 3 * 512 * 512 * 4)]
    del kept
    assert held_at(line) == [], "what is freed does not count"


@pytest.mark.parametrize(("words", "kept"), [("RESOURCE_EXHAUSTED: Out of memory", "Peak buffers"), ("INTERNAL", "")])
def test_a_message_is_kept_whole_only_if_memory_ran_out(words, kept):
    ended = failure(RuntimeError(f"{words}\nPeak buffers"), 5.0)
    assert (ended["error"], ended["error_details"]) == (f"RuntimeError: {words}", kept)
