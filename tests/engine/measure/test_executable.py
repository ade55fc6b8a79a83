"""The buffer assignment of real executables, against the sizes that XLA sums up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxprof.engine.measure.stages import buffers_of, flops_of, memory_of
from jaxprof.errors import HloError
from jaxprof.trace.buffers import allocations


def _compiled(donate: tuple[int, ...] = ()) -> Any:
    def step(w: Any, x: Any) -> Any:
        def body(carry: Any, _: None) -> Any:
            return jnp.tanh(carry @ w), carry.sum()

        return w * 2.0, jax.lax.scan(body, x, None, length=4)[0]

    arrays = (jax.ShapeDtypeStruct((128, 128), jnp.float32), jax.ShapeDtypeStruct((64, 128), jnp.float32))
    return jax.jit(step, donate_argnums=donate).lower(*arrays).compile()


@pytest.mark.parametrize("donate", [(), (0,)])
def test_the_parts_are_those_of_the_memory_analysis(donate):
    compiled = _compiled(donate)
    known = compiled.memory_analysis()
    found = buffers_of(compiled, compiled.as_text())
    assert found.parts["argument"] == known.argument_size_in_bytes
    assert found.parts.get("output", 0) == known.output_size_in_bytes - known.alias_size_in_bytes
    assert found.parts["temporary"] == known.temp_size_in_bytes
    assert found.peak_bytes == sum(found.parts.values())
    sizes = [row.bytes for row in found.buffers]
    assert sizes == sorted(sizes, reverse=True)


def test_a_buffer_names_its_instruction_and_its_line():
    compiled = _compiled()
    found = buffers_of(compiled, compiled.as_text())
    first = next(row for row in found.buffers if row.kind == "argument")
    assert (first.kind, first.op_name, first.shape) == ("argument", "w", "f32[128,128]{1,0}")
    made_here = [row for row in found.buffers if row.file == __file__]
    assert made_here
    assert all(isinstance(row.line, int) for row in made_here)


def test_an_assignment_of_another_module_is_refused():
    compiled = _compiled()
    assignment = compiled.memory_analysis().serialized_buffer_assignment_proto
    with pytest.raises(HloError):
        allocations(assignment, b"")
    with pytest.raises(HloError):
        allocations(assignment[: len(assignment) // 2 + 1], b"")


def refuse() -> None:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("analysis", "flops"),
    [
        ({"flops": 7.0, "bytes accessed": 3}, 7.0),
        ([{"flops": 7.0}, {"flops": 9.0}], 7.0),
        ({"flops": 0.0}, 0.0),
        ({"flops": -1.0}, None),
        ({"flops": float("nan")}, None),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_what_xla_does_not_know_is_unknown(analysis, flops):
    assert flops_of(SimpleNamespace(cost_analysis=lambda: analysis)) == flops


def test_the_memory_of_a_program_is_told_part_by_part_as_far_as_it_is_known():
    known = SimpleNamespace(argument_size_in_bytes=5, temp_size_in_bytes=0, alias_size_in_bytes=None)
    found = memory_of(SimpleNamespace(memory_analysis=lambda: known))
    assert (found.argument_bytes, found.temporary_bytes, found.alias_bytes, found.output_bytes) == (5, 0, None, None)
    assert memory_of(SimpleNamespace(memory_analysis=lambda: None)) is None
    assert memory_of(SimpleNamespace(memory_analysis=refuse)) is None
