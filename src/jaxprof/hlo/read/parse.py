"""Finds the modules and computations in a text: the index, which is all that is read initially.

One pass of a regular expression stops at the few lines that matter (`HloModule`, a computation's header, a closing
brace) and skips the instructions; these are split later, computation by computation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jaxprof.errors import HloError
from jaxprof.hlo.frames import Tables
from jaxprof.hlo.model import Computation, Module
from jaxprof.hlo.read.in_place import find_in_place
from jaxprof.hlo.read.record import Budget
from jaxprof.hlo.read.sniff import is_other_text, not_hlo
from jaxprof.hlo.read.syntax import attributes, balanced_end, skip_blank
from jaxprof.hlo.source import Problem, Source
from jaxprof.limits import INSTRUCTIONS

_NAME: Final = r"(?:%[^\s=%,(){}\"/]++|[A-Za-z_][\w.\-$]*+)"
_LANDMARK_LINE: Final = (
    r"(?P<indent>[ \t]*+)(?:(?P<close>\})(?![)\]}]|[ \t]*,(?![ \t]*execution_thread))|(?P<comment>/\*)"
    rf"|(?P<module>HloModule)\b"
    rf"|(?:(?P<entry>ENTRY)\b[ \t]*+(?P<entry_name>{_NAME})?|(?P<name>{_NAME}))[ \t]*+(?P<open>[({{]))"
)
_LANDMARK = re.compile("\n" + _LANDMARK_LINE)
_FIRST_LANDMARK = re.compile("(?:\ufeff)?" + _LANDMARK_LINE)
_PRINTED_HEADER = re.compile(
    r"(?:, execution_thread=\"[^\"\n]*+\")?\n++((?:ENTRY )?)%?([^\s=%,(){}\"/]++) (?:\([^\n]*+(?<=\{)|\{)(?=\n)"
)
_END_ON_A_THREAD: Final = "}, execution_thread="
_FIRST_COLUMN = re.compile(r"\n(?=[^ \t\r\n])")
_RESULT = re.compile(r"\s*+(?:->\s*+(?:\w+\[[^\[\]{}]*\](?:\{[^{}]*\})?|(?P<tuple>\()))?")
_BRACE = re.compile(r"\s*\{")
_MODULE_NAME = re.compile(r"HloModule[ \t]*([^\s,]*)")


def modules(text: str) -> list[Module]:
    """The modules in `text`, in order: one for each `HloModule` line, one for computations without such a line.

    Cost: one pass over the text. Raises HloError where there is neither a module nor a computation, and beyond the
    limit `instructions`; anything else that cannot be read is in `jaxprof.hlo.problems`.
    """
    if text.count(" = ") > INSTRUCTIONS.most:
        raise HloError(f"the text has {INSTRUCTIONS.words}", INSTRUCTIONS.hint)
    index = _Index(Source(text))
    indexed = index.modules()
    if not indexed or (index.headerless and _is_doubtful(indexed)):
        raise not_hlo(text)
    for module in indexed:
        find_in_place(module)
        module.siblings = tuple(indexed)
    return indexed


def module(text: str) -> Module:
    """The first module in `text`. Raises HloError as `modules` does."""
    return modules(text)[0]


def _is_doubtful(indexed: list[Module]) -> bool:
    """Whether a text without a `HloModule` line looks like HLO, in at least one instruction."""
    if is_other_text(indexed[0].source.text):
        return True
    looked_at = 0
    for computation in indexed[0].computations.values():
        for instruction in computation.instructions[:100]:
            if instruction.readable:
                return False
            looked_at += 1
        if looked_at > 1000:
            break
    return True


@dataclass(slots=True)
class _Open:
    """A computation whose closing brace has not been reached."""

    name: str
    is_entry: bool
    indent: int
    header: int
    body: int
    counted: int
    """Braces are counted up to here, for a brace that is indented more than the header."""
    depth: int = 0


class _Index:
    """The single pass, with what it has found so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.headerless = False
        self._found: list[Module] = []
        self._open: _Open | None = None
        self._starts: list[int] = []
        self._budget = Budget(4 * len(source.text) + 1024)

    def modules(self) -> list[Module]:
        text = self.text
        landmark = _FIRST_LANDMARK.match(text) or _LANDMARK.search(text)
        while landmark:
            at = landmark.end()
            if landmark["close"]:
                self._close(landmark)
            elif landmark["comment"]:
                closed = text.find("*/", at)
                at = closed + 2 if closed >= 0 else len(text)
            elif landmark["module"]:
                at = self._begin_module(landmark)
            else:
                at = self._begin_computation(landmark)
            if self._open is None:
                at = self._printed(at)
            # Hand-written computations may follow each other on one line.
            landmark = (None if self._open else _FIRST_LANDMARK.match(text, at)) or _LANDMARK.search(text, at)
        self._give_up("the text ends inside the computation", len(text), cut_off=True)
        return self._found

    def _printed(self, at: int) -> int:
        """Indexes the computations from `at` on that have XLA's own layout, in a fifth of the time.

        In that layout they follow each other, the header is on a line of its own, and only the end is in the first
        column.
        """
        if not self._found:
            return at
        text, module = self.text, self._found[-1]
        computations = module._computations
        header_at, next_in_first_column = _PRINTED_HEADER.match, _FIRST_COLUMN.search
        while header := header_at(text, at):
            body = header.end()
            first = next_in_first_column(text, body)
            if first is None:
                break
            end = first.end()
            if text[end : end + 2] not in ("}\n", "}") and not text.startswith(_END_ON_A_THREAD, end):
                break
            start, after_entry = header.span(1)
            made = Computation(module, header[2], (start, body, end), after_entry > start)
            if not computations or computations.setdefault(made.name, made) is not made:
                self._put(made)
            at = end + 1
        return at

    def _begin_module(self, landmark: re.Match[str]) -> int:
        start = landmark.start("module")
        self._give_up("a module begins inside the computation", landmark.start())
        text = self.text
        name = _MODULE_NAME.match(text, start)
        assert name is not None
        end = text.find("\n", name.end())
        while end >= 0 and text[max(end - 80, start) : end].rstrip().endswith(","):
            end = text.find("\n", end + 1)
        end = end if end >= 0 else len(text)
        listed = attributes(text, name.end(), end)
        header = {item.name: text[item.start : item.end] for item in listed.found}
        self._add(name[1], header, start, end)
        if not listed.closed or skip_blank(text, listed.end, end) < end:
            self._problem(start, "the module's header could not be read to its end")
        return end

    def _add(self, name: str, header: dict[str, str], start: int, tables: int) -> None:
        limit = len(self.text)
        self._found.append(Module(name, self.source, header, (start, limit), Tables(self.text, tables, limit)))
        if len(self._found) > 1:
            self._found[-2]._end(start)

    def _begin_computation(self, landmark: re.Match[str]) -> int:
        text = self.text
        indent = len(landmark["indent"])
        if self._open and indent > self._open.indent:
            return landmark.end()
        body = self._body(landmark)
        if body < 0:
            return landmark.end()
        start = landmark.end("indent")
        self._give_up("another computation begins inside the computation", landmark.start())
        name = (landmark["name"] or landmark["entry_name"] or "").lstrip("%")
        self._open = _Open(name, bool(landmark["entry"]), indent, start, body, body)
        line_end = text.find("\n", body)
        line_end = line_end if line_end >= 0 else len(text)
        if skip_blank(text, body, line_end) < line_end and self._budget.left > 0:
            # Instructions on the line of the header: the closing brace need not begin a line either.
            end = balanced_end(text, body - 1, len(text))
            self._budget.left -= (end if end >= 0 else len(text)) - body
            if end >= 0:
                self._finish(end - 1)
                return end
        return body

    def _body(self, landmark: re.Match[str]) -> int:
        """The offset after the brace that opens the body, or -1 where the line is no header."""
        text = self.text
        if landmark["open"] == "{":
            return landmark.end()
        at = landmark.end()
        line_end = text.find("\n", at)
        line_end = line_end if line_end >= 0 else len(text)
        if text[max(at, line_end - 80) : line_end].rstrip().endswith("{") and text.find("->", at, line_end) >= 0:
            return text.rindex("{", at, line_end) + 1
        if self._open or self._budget.left <= 0:
            return -1
        end = balanced_end(text, at - 1, len(text))
        self._budget.left -= (end if end >= 0 else len(text)) - at
        result = _RESULT.match(text, end) if end >= 0 else None
        if result is None:
            return -1
        end = balanced_end(text, result.end() - 1, len(text)) if result["tuple"] else result.end()
        brace = _BRACE.match(text, end) if end >= 0 else None
        return brace.end() if brace else -1

    def _close(self, landmark: re.Match[str]) -> None:
        current = self._open
        if current is None:
            return
        at = landmark.start("close")
        if len(landmark["indent"]) > current.indent:
            text = self.text
            current.depth += text.count("{", current.counted, at) - text.count("}", current.counted, at)
            current.counted = at
            if current.depth > 0:
                return
        self._finish(at)

    def _finish(self, end: int) -> None:
        current = self._open
        assert current is not None
        self._open = None
        if not self._found:
            self.headerless = True
            self._add("", {}, 0, 0)
        span = (current.header, current.body, end)
        self._put(Computation(self._found[-1], current.name, span, current.is_entry))

    def _put(self, computation: Computation) -> None:
        computations = computation.module._computations
        if not computations:
            computation.module.tables.end = computation.span[0]
        if computations.setdefault(computation.name, computation) is not computation:
            message = f"a second computation has the name {computation.name!r}; it is left out"
            self._problem(computation.span[0], message)

    def _give_up(self, message: str, end: int, *, cut_off: bool = False) -> None:
        if self._open:
            header, name = self._open.header, self._open.name
            self._finish(end)
            self._problem(header, f"{message} {name!r}", cut_off=cut_off)

    def _problem(self, at: int, message: str, *, cut_off: bool = False) -> None:
        problem = Problem(self.source.line(at), message, self.text[at : at + 200], cut_off)
        self._found[-1]._index_problems.append(problem)
