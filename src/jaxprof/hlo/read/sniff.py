"""What a file is by its beginning: HLO, or something else that the error can name."""

from __future__ import annotations

import re
from typing import Final

from jaxprof.errors import HloError

_TEXTS: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = tuple(
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
    """The error for a text in which no module and no computation was found."""
    if not text.strip():
        return HloError("the HLO text is empty")
    head = text[:65536]
    for pattern, what, hint in _TEXTS:
        if pattern.search(head):
            return HloError(f"this is {what}, not HLO", hint)
    shown = next((line.strip() for line in head.splitlines() if line.strip()), "")[:60]
    return HloError(
        f"this is not HLO: no HloModule line and no computation was found (line 1 of the content: {shown!r})",
        "HLO comes from jax.jit(f).lower(...).compile().as_text(), or from XLA_FLAGS=--xla_dump_to=FOLDER.",
    )


def is_other_text(text: str) -> bool:
    """The text has the marks of another format, which a loose reading could mistake for HLO without a header."""
    head = text[:65536]
    return any(pattern.search(head) for pattern, _, _ in _TEXTS)


_JSON = re.compile(rb"\s*[\[{]\s*[\"\[{]")
_ENTRY = re.compile(rb"^ENTRY [^\n]*\{", re.MULTILINE)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_VARINT: Final = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_MODULE_PROTO = re.compile(rb"(?:\x0a%(n)s)?\x0a%(n)s[\x20-\x7e\x80-\xff]+\x12" % {b"n": _VARINT}, re.DOTALL)
"""An HloModuleProto: its name (field 1), and the tag of its entry's name (2). An HloProto has it as its field 1. The
first field of an XSpace is a plane, which begins with a number (field 1), or with its name in field 2."""


def begins_like_hlo(head: bytes) -> bool:
    """What begins with `head` is an HLO text with a `HloModule` or `ENTRY` line, or the proto of a module."""
    if _JSON.match(head):
        return False
    if head.startswith(b"\x0a") and _BINARY.search(head):
        return _MODULE_PROTO.match(head) is not None
    return b"HloModule " in head or _ENTRY.search(head) is not None
