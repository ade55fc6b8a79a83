"""The places of a module that could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.hlo.read.plain import is_sound
from jaxprof.hlo.source import Problem

if TYPE_CHECKING:
    from jaxprof.hlo.model import Computation, Instruction, Module


def problems(module: Module) -> tuple[Problem, ...]:
    """Every place that could not be read, in the order of the lines. Reads the whole module."""
    places = [*module._index_problems]
    for computation in module.computations.values():
        places += problems_in(computation)
    return tuple(sorted(places, key=lambda problem: problem.line))


def problems_in(computation: Computation) -> tuple[Problem, ...]:
    """The lines of a computation that could not be read, including the shape of their value."""
    if is_sound(computation.source.text, *computation.span[1:]):
        return ()
    return tuple(
        Problem(instruction.line, message, instruction.text[:200])
        for instruction in computation.instructions
        if (message := _trouble(instruction))
    )


def _trouble(instruction: Instruction) -> str:
    if not instruction.readable:
        return "not an instruction"
    if not instruction.shape.dtype:
        return "no array of such a shape can exist, or its text cannot be read"
    if instruction.takes_compact_element:
        return "an element of a tuple (name#0) is read as the whole tuple: dump without --xla_dump_compact_gte"
    if instruction.binds_late:
        return "operands that come after an asynchronous operation has begun are not read"
    return ""
