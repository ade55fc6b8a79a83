"""Notices about parts of a module that are missing or could not be read, shown before anything else about the module.

A `serious` notice means that the figures do not describe the intended module: the text was truncated, a line could not
be read, or XLA's passes have not run. The others name what was assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from jaxprof.base.units import and_more, counted, integer
from jaxprof.base.values import frozen
from jaxprof.hlo.kernels import CONTROL
from jaxprof.hlo.shape import parse_shape
from jaxprof.hlo.source import Problem
from jaxprof.hlo.text import operand_names
from jaxprof.hlo.text.model import Computation, Instruction, Module, once_per_module
from jaxprof.hlo.text.record import CALLED, COMPUTATION_NAME, NO_OPERANDS, PLAIN_PARTS


def problems(module: Module) -> tuple[Problem, ...]:
    """Return every part that could not be read, in the order of the lines."""
    found = [
        Problem(instruction.line, message, instruction.text[:200])
        for computation in _scan(module)[0]
        for instruction in computation.instructions
        if (message := _problem_of(instruction))
    ]
    return tuple(sorted([*module._index_problems, *found], key=lambda problem: problem.line))


@once_per_module
def _scan(module: Module) -> tuple[list[Computation], set[str]]:
    """Return the computations in which a scan of the text cannot rule out that something is missing or unreadable, and
    the shapes in the others, as written. The scan does not read the instructions one by one."""
    doubtful: list[Computation] = []
    known_shapes: set[str] = set()
    for computation in module.computations.values():
        shapes = shapes_if_whole(computation)
        if shapes is None:
            doubtful.append(computation)
        else:
            known_shapes |= shapes
    return doubtful, known_shapes


def shapes_if_whole(computation: Computation) -> set[str] | None:
    """Return the shapes in a computation, as written; None if a line is not plain, or uses a value of no instruction
    there or a computation that the text lacks.

    For 3 MB of HLO this takes 40 ms, and reading every instruction 250 ms.
    """
    text, (_, at, end) = computation.source.text, computation.span
    while end > at and text[end - 1].isspace():
        end -= 1
    # A set of the names of a million instructions would take as much memory as their text.
    known = computation.by_name.keys() if end - at > 16 << 20 else None
    there = computation.module.computations
    names, shapes, operands = set(), set(), []
    while at < end:
        stop = text.find("\n", at + _AT_ONCE, end)
        stop = stop if stop >= 0 else end
        lines = PLAIN_PARTS.findall(text, at, stop)
        if text[at] != "\n" or len(lines) != text.count("\n", at, stop):
            return None
        shapes.update([shape for _, shape, _, _, _ in lines])
        taking = [(inside, rest) for _, _, opcode, inside, rest in lines if opcode not in NO_OPERANDS]
        operands += [inside for inside, _ in taking if inside]
        if known is None:
            names.update([name for name, _, _, _, _ in lines])
        elif _all_known(operands, known):
            operands.clear()
        else:
            return None
        rest = "\n".join([rest for _, rest in taking])
        called = [name for value in CALLED.findall(rest) for name in COMPUTATION_NAME.findall(value)]
        # A comment between an attribute's name and its value is legal, but no printer writes it.
        if "/*" in rest or not all(map(there.__contains__, called)):
            return None
        at = stop
    return shapes if _all_known(operands, names) else None


_AT_ONCE = 1 << 18
"""Characters that are compared at once."""


def _all_known(operands: list[str], known: Set[str]) -> bool:
    """Return whether these lists of operands name nothing but known values."""
    first, *names = ", ".join(["", *operands]).split(", %")  # as XLA prints them; else a part is no name
    return (not first and known >= set(names)) or all(known >= set(operand_names(inside)) for inside in operands)


def _problem_of(instruction: Instruction) -> str:
    if not instruction.readable:
        return "not an instruction"
    if not instruction.shape.dtype:
        return "the shape is impossible or cannot be read"
    if instruction.parts.has_compact_element:
        return "an element of a tuple (name#0) is read as the whole tuple: dump without --xla_dump_compact_gte"
    if instruction.opcode == "async-update" and len(instruction.operands) > 1:
        return "operands added after an asynchronous operation started are ignored"
    return ""


NOT_OPTIMISED = "not-optimised"
_NAMED = 3
"""Places that a notice names; it gives the number of the others."""
_TRUNCATED = "The file is incomplete: copy or dump it again."


@frozen
class Notice:
    """One thing that is missing or could not be read."""

    code: str
    """`truncated`, `no-entry`, `entry-assumed`, `unreadable`, `missing`, `unknown-size`, `not-optimised`."""
    message: str
    hint: str = ""
    serious: bool = True
    """Whether kernels, findings and totals cannot be right."""

    def __str__(self) -> str:
        """`truncated: the text ends inside the computation 'main'. The file is incomplete: ...`"""
        return f"{self.code.replace('-', ' ')}: {self.message}" + (f". {self.hint}" if self.hint else "")


@once_per_module
def notices(module: Module) -> tuple[Notice, ...]:
    """Return which parts of `module` are missing or could not be read."""
    return (*_of_outline(module), *_of_contents(module))


def outline(module: Module) -> tuple[Notice, ...]:
    """Return the notices from the index of the text, which cost nothing: where it ends, and whether XLA's passes have
    run."""
    return tuple(_of_outline(module))


def _of_outline(module: Module) -> Iterator[Notice]:
    truncated = [problem for problem in module._index_problems if problem.cut_off]
    if truncated:
        yield Notice("truncated", f"{truncated[0].message}, which begins on line {truncated[0].line}", _TRUNCATED)
    count = len(module.computations)
    marked = any(computation.is_entry for computation in module.computations.values())
    if not count:
        yield Notice("no-entry", "the module has a header but no computation", _TRUNCATED)
    elif module.entry is None:
        message = f"the entry is missing: none of {integer(count)} computations has the arrays that the header states"
        yield Notice("no-entry", message, _TRUNCATED)
    elif not marked:
        # XLA's reader takes the last computation, which even a truncated text has.
        entry = module.entry.name
        alone = [name for name in module.computations if name != entry and name not in module.callers]
        message = f"no computation is marked ENTRY: the last one, {entry!r}, is taken for it, as XLA does"
        if alone:
            called_by_none = and_more([*map(repr, alone)], _NAMED)
            yield Notice("no-entry", f"{message}; nothing calls {called_by_none}", _TRUNCATED)
        else:
            yield Notice("entry-assumed", message, serious=False)
    if count and not module.is_optimised:
        yield Notice(
            NOT_OPTIMISED,
            "XLA's passes have not run: the module is neither scheduled nor fused, so these are single operations, not "
            "kernels",
            "Compile it, or give the text after optimisation.",
        )


def _of_contents(module: Module) -> Iterator[Notice]:
    """Yield the notices from the instructions, which are read one by one only where a scan of the text cannot rule out
    that there are any."""
    doubtful, shapes = _scan(module)
    unread = [problem for problem in problems(module) if not problem.cut_off]
    if unread:
        lines = and_more([integer(problem.line) for problem in unread], _NAMED)
        message = f"{counted(len(unread), 'part')} cannot be read (line {lines})"
        yield Notice("unreadable", f"{message}: {unread[0].message}: {' '.join(unread[0].text.split())[:60]!r}")
    missing: set[str] = set()
    for computation in doubtful:
        for instruction in computation.instructions:
            missing.update(name for name in instruction.operands if name not in computation.by_name)
            missing.update(name for name in instruction.called if name not in module.computations)
    if names := sorted(missing):
        single = len(names) == 1
        message = f"{and_more([*map(repr, names)], _NAMED)} {'is' if single else 'are'} used, but not in the text"
        yield Notice("missing", message, "Lines are missing: copy or dump the file again.")
    if doubtful or not all(parse_shape(shape).known for shape in shapes):
        from jaxprof.hlo.kernels.kernels import kernels  # thirty modules that a text without doubts does not need

        if unsized := [
            repr(kernel.name) for kernel in kernels(module) if kernel.unsized and kernel.opcode not in CONTROL
        ]:
            message = f"the size of {and_more(unsized, _NAMED)} is unknown, and counts as 0"
            yield Notice("unknown-size", message, "The dtype is unknown to this version, or a dimension has no bound.")
