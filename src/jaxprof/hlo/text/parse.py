"""Find the modules and computations in a text: the index, which is all that is read initially.

One traversal with a regular expression stops at the few lines that matter (`HloModule`, a computation's header, a
closing brace) and skips the instructions; these are split later, computation by computation. The beginning of a file
shows whether it is HLO at all.

Computations that a short form implies are found afterwards, because they belong to the module. XLA prints `custom-call-
start(%x), custom_call_target="f"` for an `async-start` that calls a computation which holds one `custom-call`, and
leaves that computation out. XLA's parser restores it as `async_wrapped`, and so does this one. `find` over the text
costs a few milliseconds. A computation written in place of a name, which XLA never prints, is not read: its caller then
calls nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from jaxprof.base.errors import HloError
from jaxprof.base.limits import INSTRUCTIONS
from jaxprof.hlo.source import Problem, Source, Tables
from jaxprof.hlo.text import attributes, end_of_brackets, record, skip_blank, unsugar
from jaxprof.hlo.text.model import Computation, Module

_NAME = r"(?:%[^\s=%,(){}\"/]++|[A-Za-z_][\w.\-$]*+)"
_LANDMARK_LINE = (
    r"(?P<indent>[ \t]*+)(?:(?P<close>\})(?![)\]}]|[ \t]*,(?![ \t]*execution_thread))|(?P<comment>/\*)"
    rf"|(?P<module>HloModule)\b"
    rf"|(?:(?P<entry>ENTRY)\b[ \t]*+(?P<entry_name>{_NAME})?|(?P<name>{_NAME}))[ \t]*+(?P<open>[({{]))"
)
_LANDMARK = re.compile("\n" + _LANDMARK_LINE)
_FIRST_LANDMARK = re.compile("(?:\ufeff)?" + _LANDMARK_LINE)
_PRINTED_HEADER = re.compile(
    r"(?:, execution_thread=\"[^\"\n]*+\")?\n++((?:ENTRY )?)%?([^\s=%,(){}\"/]++) (?:\([^\n]*+(?<=\{)|\{)(?=\n)"
)
_FIRST_COLUMN = re.compile(r"\n(?=[^ \t\r\n])")
_RESULT = re.compile(r"\s*+(?:->\s*+(?:\w+\[[^\[\]{}]*\](?:\{[^{}]*\})?|(?P<tuple>\()))?")
_BRACE = re.compile(r"\s*\{")
_MODULE_NAME = re.compile(r"HloModule[ \t]*([^\s,]*)")


def modules(text: str) -> list[Module]:
    """Return the modules in `text`, in order: one for each `HloModule` line, one for computations without such a line.

    Cost: one traversal of the text. Raises HloError if there is neither a module nor a computation, and beyond the
    limit `instructions`; anything else that cannot be read is in `jaxprof.hlo.kernels.notices`.
    """
    if text.count(" = ") > INSTRUCTIONS.most:
        raise HloError(f"the text has {INSTRUCTIONS.words}", INSTRUCTIONS.hint)
    index = _Index(Source(text))
    indexed = index.modules()
    if not indexed or (index.headerless and _is_doubtful(indexed)):
        raise not_hlo(text)
    for module in indexed:
        find_implied(module)
        module.siblings = tuple(indexed)
    return indexed


def module(text: str) -> Module:
    """Return the first module in `text`. Raises HloError as `modules` does."""
    return modules(text)[0]


def _is_doubtful(indexed: list[Module]) -> bool:
    """Return whether a text without a `HloModule` line does not look like HLO in any instruction."""
    if _other_text(indexed[0].source.text):
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
    """Offset up to which braces are counted, for a brace that is indented more than the header."""
    depth: int = 0


class _Index:
    """State of the single traversal: what it has found so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.headerless = False
        self._found: list[Module] = []
        self._open: _Open | None = None
        self._ahead = 4 * len(source.text) + 1024
        """Characters that may still be looked at ahead, so that malformed text costs linear time as well."""

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
                at = self._index_printed(at)
            # Hand-written computations may follow each other on one line.
            landmark = (None if self._open else _FIRST_LANDMARK.match(text, at)) or _LANDMARK.search(text, at)
        self._give_up("the text ends inside the computation", len(text), cut_off=True)
        return self._found

    def _index_printed(self, at: int) -> int:
        """Index the computations from `at` on that have XLA's own layout, in a fifth of the time.

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
            if text[end : end + 2] not in ("}\n", "}") and not text.startswith("}, execution_thread=", end):
                break
            start, after_entry = header.span(1)
            made = Computation(module, header[2], (start, body, end), after_entry > start)
            if not computations or computations.setdefault(made.name, made) is not made:
                self._add_computation(made)
            at = end + 1
        return at

    def _begin_module(self, landmark: re.Match[str]) -> int:
        start = landmark.start("module")
        self._give_up("a module begins inside the computation", landmark.start())
        text = self.text
        name = _MODULE_NAME.match(text, start)
        assert name is not None
        end = text.find("\n", name.end())
        while end >= 0 and text[max(end - 80, start) : end].rstrip().endswith(","):  # a header on several lines
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
        if skip_blank(text, body, line_end) < line_end and self._ahead > 0:
            # If instructions follow on the line of the header, the closing brace need not begin a line either.
            end = end_of_brackets(text, body - 1, len(text))
            self._ahead -= (end if end >= 0 else len(text)) - body
            if end >= 0:
                self._finish(end - 1)
                return end
        return body

    def _body(self, landmark: re.Match[str]) -> int:
        """Return the offset after the brace that opens the body, or -1 if the line is no header."""
        text = self.text
        if landmark["open"] == "{":
            return landmark.end()
        at = landmark.end()
        line_end = text.find("\n", at)
        line_end = line_end if line_end >= 0 else len(text)
        if text[max(at, line_end - 80) : line_end].rstrip().endswith("{") and text.find("->", at, line_end) >= 0:
            return text.rindex("{", at, line_end) + 1
        if self._open or self._ahead <= 0:
            return -1
        end = end_of_brackets(text, at - 1, len(text))
        self._ahead -= (end if end >= 0 else len(text)) - at
        result = _RESULT.match(text, end) if end >= 0 else None
        if result is None:
            return -1
        end = end_of_brackets(text, result.end() - 1, len(text)) if result["tuple"] else result.end()
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
        self._add_computation(Computation(self._found[-1], current.name, span, current.is_entry))

    def _add_computation(self, computation: Computation) -> None:
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


_TEXTS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), what, hint)
    for pattern, what, hint in (
        (
            r"^[ \t]*+(?:module\b[^\n]*(?:\{|attributes)|func\.func\b|#loc\d*\b"
            r"|%\S+ = \"?(?:stablehlo|mhlo|chlo|func|arith)\.)",
            "StableHLO (MLIR) text",
            "That is the program before XLA; compile it, or dump HLO with XLA_FLAGS=--xla_dump_to=FOLDER.",
        ),
        (r"^[ \t]*+\{ *lambda\b", "a jaxpr", "HLO comes from jax.jit(f).lower(...).compile().as_text()."),
        (r"^; ModuleID|^define [^\n]*\{|^target triple", "LLVM IR", "Give the module's HLO dump, not its LLVM dump."),
        (r"^\.version \d|^\.target sm_", "PTX assembly", "Give the module's HLO dump, not its PTX dump."),
        (r"^(?:hlo_module\s*\{|computations\s*\{|name: \")", "a protobuf in text form", "Give the HLO text instead."),
        (r"\A\s*<(?:!DOCTYPE|html|\?xml)", "HTML or XML", ""),
        (r"\A\s*[\[{]\s*[\"\]}{]", "JSON", ""),
    )
)


def not_hlo(text: str) -> HloError:
    """Return the error for a text in which no module and no computation was found."""
    if not text.strip():
        return HloError("the HLO text is empty")
    if other := _other_text(text):
        return HloError(f"this is {other[0]}, not HLO", other[1])
    return HloError(  # no word of the file: it may be any, and the answer may go to whom may not read it
        "this is not HLO: no HloModule line and no computation was found",
        "HLO comes from jax.jit(f).lower(...).compile().as_text(), or from XLA_FLAGS=--xla_dump_to=FOLDER.",
    )


def _other_text(text: str) -> tuple[str, str] | None:
    """Return the format whose marks the text has, and a hint; None without any. A loose reading could mistake it for
    HLO without a header."""
    head = text[:65536]
    return next(((what, hint) for pattern, what, hint in _TEXTS if pattern.search(head)), None)


_JSON = re.compile(rb"\s*[\[{]\s*[\"\[{]")
_ENTRY = re.compile(rb"^ENTRY [^\n]*\{", re.MULTILINE)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_MODULE_PROTO = re.compile(rb"(?:\x0a%(n)s)?\x0a%(n)s[\x20-\x7e\x80-\xff]+\x12" % {b"n": _VARINT}, re.DOTALL)
"""An HloModuleProto: its name (field 1), and the tag of its entry's name (2). An HloProto has it as its field 1. The
first field of an XSpace is a plane, which begins with a number (field 1), or with its name in field 2.
"""


def begins_like_hlo(head: bytes) -> bool:
    """Return whether `head` begins an HLO text with a `HloModule` or `ENTRY` line, or the proto of a module."""
    if _JSON.match(head):
        return False
    if head.startswith(b"\x0a") and _BINARY.search(head):
        return _MODULE_PROTO.match(head) is not None
    return b"HloModule " in head or _ENTRY.search(head) is not None


_OF_THE_START = frozenset(
    {"async_execution_thread", "metadata", "control-predecessors", "frontend_attributes", "sharding"}
)
_START = "-start("
_OPCODE_BEFORE = re.compile(r"[\w\-]+$", re.ASCII)


class _ImpliedText(Source):
    """Generated text of a computation that the module leaves out."""

    __slots__ = ("_line",)

    def __init__(self, text: str, line: int) -> None:
        """Take `line`, the line of the instruction that implies the computation, for every line in it."""
        super().__init__(text)
        self._line: Final = line

    def line(self, offset: int) -> int:
        return self._line


def find_implied(module: Module) -> None:
    """Add the computations that a short form implies to the module, each before the one that calls it."""
    if module.source.text.find(_START, *module.span) < 0:
        return
    names = (f"async_wrapped.{number}" if number else "async_wrapped" for number in count())
    found: dict[str, list[Computation]] = {}
    for holder in module.computations.values():
        for start in _short_forms(holder):
            name = next(name for name in names if name not in module.computations)  # as XLA makes names unique
            written, span = _inner_computation(name, start)
            source = _ImpliedText(written, module.source.line(start.inside[0]))
            found.setdefault(holder.name, []).append(Computation(module, name, span, source=source))
            module._implied[start.inside[0]] = name
    module._insert(found)


def _short_forms(holder: Computation) -> Iterator[record.Record]:
    """Yield the instructions in a short form: `custom-call-start(%x), custom_call_target="f"`."""
    _, at, end = holder.span
    text = holder.source.text
    while (at := text.find(_START, at, end)) >= 0:
        opcode = _OPCODE_BEFORE.search(text, max(at - 64, 0), at)
        at += len(_START)
        if opcode is not None and unsugar(f"{opcode[0]}-start")[1]:
            instruction = holder.at(at)
            if instruction is not None and instruction.parts.inside[0] == at:
                yield instruction.parts


def _inner_computation(name: str, start: record.Record) -> tuple[str, tuple[int, int, int]]:
    """Return the text of the computation that the short form `start` leaves out, and its `Computation.span`.

    Its parameters have the shapes that the start's own shape lists first, its root the one that it lists second.
    """
    _, wrapped = unsugar(start.opcode)
    members = start.shape.tuple_shapes
    operands = members[0].tuple_shapes if members else ()
    result = members[1] if len(members) > 1 else start.shape
    names = [f"async_param.{number}" if number else "async_param" for number in range(len(operands))]
    attributes = "".join(
        f", {item.name}={start.text[item.start : item.end]}"
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
