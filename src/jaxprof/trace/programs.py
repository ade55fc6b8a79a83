"""The programs of a profile: the HLO that lies in it, and the ops that are each program's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxprof.errors import JaxprofError
from jaxprof.hlo.proto import text as hlo_text
from jaxprof.trace.model import Op, ProgramText, Trace

Program = tuple[str, int | None]
"""A module's name and its program id."""


def program_of(op: Op) -> Program:
    """Which program an op belongs to."""
    return (op.module, op.program)


def proto_of(trace: Trace, program: Program) -> ProgramText | None:
    """The HLO of a program: by its id, or where the profile gives none, by a name that only one module has."""
    name, identity = program
    if identity is not None:
        found = [known for known in trace.programs if known.program == identity]
        if found:
            return found[0]
    named = [known for known in trace.programs if known.name == name]
    return named[0] if len(named) == 1 else None


def text_of(trace: Trace, program: Program) -> tuple[str | None, str]:
    """The HLO text of a program, and why there is none."""
    found = proto_of(trace, program)
    if found is None:
        return None, "the profile does not hold its HLO"
    try:
        return hlo_text(found.proto), ""
    except (JaxprofError, RecursionError) as error:
        return None, f"its HLO cannot be read: {error}"


def programs_with_ops(trace: Trace) -> Iterator[Program]:
    """Programs of which an op ran, in the order in which they were met."""
    used = {index for lane in trace.op_lanes() for index in np.unique(lane.op_of).tolist()}
    yield from dict.fromkeys(program_of(op) for index, op in enumerate(trace.ops) if index in used)
