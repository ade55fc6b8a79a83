"""Computations that a text has only inside an instruction: written in place of a name, or left out by a short form.

Looked for when a module is indexed, because they belong to its computations. `find` over the text costs a few
milliseconds; a module that XLA printed has none of the first kind.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from jaxprof.hlo import record
from jaxprof.hlo.model import Computation
from jaxprof.hlo.source import Source
from jaxprof.hlo.sugar import unsugared, wrapped_computation
from jaxprof.hlo.syntax import balanced_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.hlo.model import Module

_CALLING: Final = ("to_apply={", "calls={", "body={", "condition={", "select={", "scatter={", "computations={")
_BEGINS = re.compile(r"\s*(?:ROOT\s+)?%?[^\s=%,(){}\"/]+\s*=\s")
_OPCODE_BEFORE = re.compile(r"[\w\-]+$", re.ASCII)


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
        """What was found, by the name of the computation that holds it."""
        self._module = module
        self._text = module.source.text
        self._holders = sorted(module.computations.values(), key=lambda computation: computation.body)
        self._firsts = [computation.body[0] for computation in self._holders]
        self._budget = record.Budget(2 * len(self._text) + 1024)
        self._numbers: dict[str, int] = {}

    def _holder(self, at: int) -> Computation | None:
        number = bisect_right(self._firsts, at) - 1
        return self._holders[number] if number >= 0 and at < self._holders[number].body[1] else None

    def _free_name(self, name: str) -> str:
        """`name`, or `name.1` and so on, as XLA makes names unique."""
        number = self._numbers.get(name, 0)
        while (free := f"{name}.{number}" if number else name) in self._module.computations:
            number += 1
        self._numbers[name] = number + 1
        return free

    def _occurrences(self, part: str) -> Iterator[int]:
        start, limit = self._module.span
        at = self._text.find(part, start, limit)
        while at >= 0:
            yield at
            at = self._text.find(part, at + len(part), limit)

    def written_in_place(self) -> None:
        """`to_apply={ a = f32[] parameter(0) ... }`"""
        module, text = self._module, self._text
        for brace in sorted(at + len(part) - 1 for part in _CALLING for at in self._occurrences(part)):
            holder = self._holder(brace)
            if holder is None or self._budget.left <= 0 or not _BEGINS.match(text, brace + 1, holder.body[1]):
                continue
            end = balanced_end(text, brace, holder.body[1])
            self._budget.left -= (end if end >= 0 else holder.body[1]) - brace
            if end >= 0:
                name = self._free_name("_")
                made = Computation(module, name, module.source, (brace, brace), (brace + 1, end - 1))
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
                source_text, header, body = wrapped_computation(name, start, module._in_place)
                source = Source(source_text, module.source.line(at))
                made = Computation(module, name, source, header, body, is_synthetic=True)
                self.found.setdefault(holder.name, []).append(made)
                module._in_place[start.inside[0]] = name

    def _starting(self, opened: int, holder: Computation) -> record.Record | None:
        """The instruction whose operands begin at `opened`; its name may stand a line or two before."""
        text = self._text
        line_end = text.find("\n", opened, holder.body[1])
        line_end = line_end if line_end >= 0 else holder.body[1]
        begin = opened
        for _ in range(3):
            begin = max(text.rfind("\n", holder.body[0], begin), holder.body[0])
            start, _ = record.read_whole(text, begin, line_end, holder.body[1], self._budget)
            if start is not None and start.inside[0] == opened:
                return start
        return None
