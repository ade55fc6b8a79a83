"""Every call is waited for, whatever its result is, and waiting costs as little for a tree as for an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from engine.measure.simulated_device import SimulatedDevice
from jaxprof.engine.measure.jax_run import _way_to_one, blocked_loop
from jaxprof.engine.measure.transfer import address

X = jnp.ones(8)


def walks(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], *, one_program: bool) -> int:
    """How often the loop over ten calls walks over a tree of results."""
    output = jax.block_until_ready(function(X))
    loop_for = blocked_loop(function, output, (X,), one_program=one_program, may_call=True)
    walked = []
    whole = jax.block_until_ready
    monkeypatch.setattr(jax, "block_until_ready", lambda tree: walked.append(1) or whole(tree))
    again = blocked_loop(function, output, (X,), one_program=one_program, may_call=True)
    walked.clear()
    again([(X,)] * 10)
    loop_for([(X,)] * 10)
    monkeypatch.undo()
    return len(walked)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: (x + 1,),
        lambda x: [x + i for i in range(60)],
        lambda x: {"loss": x.sum(), "state": [x + 1, (x + 2, None)]},
        lambda x: (x + 1, x),
    ],
    ids=["an array", "a tuple", "sixty", "nested", "the argument itself"],
)
def test_results_of_one_program_are_awaited_by_one_of_them(monkeypatch, function):
    assert walks(monkeypatch, jax.jit(function), one_program=True) == 0


def test_results_of_several_programs_are_all_awaited(monkeypatch):
    assert walks(monkeypatch, lambda x: [x + i for i in range(60)], one_program=False) == 10
    assert walks(monkeypatch, lambda x: (x + 1,), one_program=False) == 0, "the method of each costs less"
    assert walks(monkeypatch, lambda x: [x + i for i in range(4)], one_program=False) == 0
    assert walks(monkeypatch, lambda x: [x + i for i in range(5)], one_program=False) == 10
    assert walks(monkeypatch, lambda x: (x + 1, None), one_program=False) == 10


def test_a_call_that_consumes_its_argument_is_not_made_for_a_check():
    donating = jax.jit(lambda x: (x * 2, x[:3]), donate_argnums=0)
    given = jnp.ones(1000)
    output = donating(given)
    fresh = jnp.ones(1000)
    blocked_loop(donating, output, (fresh,), one_program=True, may_call=False)([(fresh,)])
    assert fresh.is_deleted()


@pytest.mark.parametrize(("one_program", "may_call", "made"), [(True, True, 3), (False, True, 0), (True, False, 0)])
def test_three_calls_are_made_to_find_out_what_becomes_ready_together(one_program, may_call, made):
    calls: list[int] = []
    program = jax.jit(lambda x: (x + 1, x + 2))

    def function(x: jax.Array) -> Any:
        calls.append(1)
        return program(x)

    blocked_loop(function, program(X), (X,), one_program=one_program, may_call=may_call)
    assert len(calls) == made


def test_the_array_that_is_awaited_has_an_address_which_no_argument_has():
    """An array over several devices has none: whether it was passed through is not known."""

    def refuse() -> int:
        raise ValueError("an array over several devices has no one pointer")

    made, nowhere = X + 1, SimulatedDevice().call()
    nowhere.unsafe_buffer_pointer = refuse
    given = {address(X)}
    assert _way_to_one((made, {"b": [nowhere, X]}), given) == (0,)
    assert _way_to_one((X, {"b": [made, nowhere]}), given) == (1, "b", 0)
    assert _way_to_one((nowhere, X, 3.0), given) == ()
