"""Computations that occur only inside an instruction: written in place of a name, or implied by a short form.

XLA prints `custom-call-start(%x), custom_call_target="f"` for an `async-start` that calls a computation which holds one
`custom-call`, and leaves that computation out. Its reader puts it back as `async_wrapped`, and so does this one.

They are searched when a module is indexed, because they belong to its computations. `find` over the text costs a few
milliseconds; a module that XLA printed has none of the first kind.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.model import Computation
from jaxprof.hlo.read import record
from jaxprof.hlo.read.syntax import balanced_end, unsugared
from jaxprof.hlo.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jaxprof.hlo.model import Module

_CALLING: Final = ("to_apply", "calls", "body", "condition", "select", "scatter", "computations", "computation")
_WRITTEN_BY_HAND: Final = 4 << 20
_OF_THE_START: Final = frozenset(
    {"async_execution_thread", "metadata", "control-predecessors", "frontend_attributes", "sharding"}
)
_BEGINS = re.compile(r"\s*+(?:ROOT\s++(?!=))?%?[^\s=%,(){}\"/]++\s*+=\s")
_OPCODE_BEFORE = re.compile(r"[\w\-]+$", re.ASCII)


class SyntheticComputation(Computation):
    """A computation that the text leaves out, with a text generated for it."""

    __slots__ = ("_line_of_all", "_own_source")

    def __init__(self, module: Module, name: str, source: Source, span: tuple[int, int, int], line: int) -> None:
        """`line` is the line of the instruction that implies it: every line in it is reported as that line."""
        super().__init__(module, name, span)
        self._own_source: Final = source
        self._remembered = {}
        self._line_of_all: Final = line

    @property
    def source(self) -> Source:
        return self._own_source

    @property
    def is_synthetic(self) -> bool:
        return True

    def _line(self, offset: int) -> int:
        return self._line_of_all


def find_in_place(module: Module) -> None:
    """Adds such computations to the module, each before the one that calls it."""
    search = _Search(module)
    search.written_in_place()
    search.short_forms()
    if search.found:
        module._insert(search.found)


class _Search:
    def __init__(self, module: Module) -> None:
        self.found: dict[str, list[Computation]] = {}
        """The computations that were found, by the name of the computation that holds them."""
        self._module = module
        self._text = module.source.text
        self._budget = record.Budget(4 * len(self._text) + 1024)
        self._numbers: dict[str, int] = {}

    @cached_property
    def _holders(self) -> list[Computation]:
        return sorted(self._module.computations.values(), key=lambda computation: computation.span)

    @cached_property
    def _firsts(self) -> list[int]:
        return [computation.span[1] for computation in self._holders]

    def _holder(self, at: int) -> Computation | None:
        number = bisect_right(self._firsts, at) - 1
        return self._holders[number] if number >= 0 and at < self._holders[number].span[2] else None

    def _free_name(self, name: str) -> str:
        """`name`, or `name.1` and so on, as XLA makes names unique."""
        number = self._numbers.get(name, 0)
        while (free := f"{name}.{number}" if number else name) in self._module.computations:
            number += 1
        self._numbers[name] = number + 1
        return free

    def _occurrences(self, part: str) -> Iterator[int]:
        start, limit = self._module.tables.end, self._module.span[1]
        at = self._text.find(part, start, limit)
        while at >= 0:
            yield at
            at = self._text.find(part, at + len(part), limit)

    def written_in_place(self) -> None:
        """`to_apply={ a = f32[] parameter(0) ... }`"""
        module, text = self._module, self._text
        # One search more is a twentieth of the index of 100 MB, and nobody writes that much by hand on one line.
        blanks = "\n" if len(text) > _WRITTEN_BY_HAND else "\n \r\t"
        braces = sorted(at + 1 for blank in blanks for at in self._occurrences("={" + blank))
        for brace in braces:
            if not text[max(brace - 32, 0) : brace - 1].endswith(_CALLING):
                continue
            holder = self._holder(brace)
            if holder is None or self._budget.left <= 0 or not _BEGINS.match(text, brace + 1, holder.span[2]):
                continue
            end = balanced_end(text, brace, holder.span[2])
            self._budget.left -= (end if end >= 0 else holder.span[2]) - brace
            if end >= 0:
                name = self._free_name("_")
                made = Computation(module, name, (brace, brace + 1, end - 1))
                self.found.setdefault(holder.name, []).append(made)
                module._in_place[brace] = name

    def short_forms(self) -> None:
        """`custom-call-start(%x), custom_call_target="f"`"""
        module, text = self._module, self._text
        for at in self._occurrences("-start("):
            opcode = _OPCODE_BEFORE.search(text, max(at - 64, 0), at)
            holder = self._holder(at)
            if opcode is None or holder is None or not unsugared(f"{opcode[0]}-start")[1]:
                continue
            start = self._starting(at + len("-start("), holder)
            if start is not None:
                name = self._free_name("async_wrapped")
                written, span = _wrapped_computation(name, start, module._in_place)
                made = SyntheticComputation(module, name, Source(written), span, module.source.line(at))
                self.found.setdefault(holder.name, []).append(made)
                module._in_place[start.inside[0]] = name

    def _starting(self, opened: int, holder: Computation) -> record.Record | None:
        """The instruction whose operands begin at `opened`; its name may stand a line or two before."""
        text = self._text
        line_end = text.find("\n", opened, holder.span[2])
        line_end = line_end if line_end >= 0 else holder.span[2]
        begin = opened
        for _ in range(3):
            begin = max(text.rfind("\n", holder.span[1], begin), holder.span[1])
            if self._budget.left <= 0:
                break
            self._budget.left -= line_end - begin
            start, _ = record.read_whole(text, begin, line_end, holder.span[2], self._budget)
            if start is not None and start.inside[0] == opened:
                return start
        return None


def _wrapped_computation(
    name: str, start: record.Record, in_place: Mapping[int, str]
) -> tuple[str, tuple[int, int, int]]:
    """The text of the computation that the short form `start` leaves out, and its `Computation.span`.

    Its parameters have the shapes that the start's own shape lists first, its root the one that it lists second.
    `in_place` names the computations that are written in place, by the offset of their brace.
    """
    _, wrapped = unsugared(start.opcode)
    members = start.shape.tuple_shapes
    operands = members[0].tuple_shapes if members else ()
    result = members[1] if len(members) > 1 else start.shape
    names = [f"async_param.{number}" if number else "async_param" for number in range(len(operands))]
    attributes = "".join(
        f", {item.name}={'%' + named if (named := in_place.get(item.start)) else start.text[item.start : item.end]}"
        for item in start.attribute_list().found
        if item.name not in _OF_THE_START
    )
    signature = ", ".join(f"{name}: {shape.without_layout()}" for name, shape in zip(names, operands, strict=True))
    header = f"%{name} ({signature}) -> {result.without_layout()} "
    lines = [
        *(f"%{name} = {shape} parameter({n})" for n, (name, shape) in enumerate(zip(names, operands, strict=True))),
        f"ROOT %{wrapped} = {result} {wrapped}({', '.join('%' + name for name in names)}){attributes}",
    ]
    body = "".join(f"\n  {line}" for line in lines) + "\n"
    return f"{header}{{{body}}}", (0, len(header) + 1, len(header) + 1 + len(body))
