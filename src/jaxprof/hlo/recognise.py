"""What a text or a file that is not HLO seems to be, so that the error can say so."""

from __future__ import annotations

import re
from typing import Final

from jaxprof.hlo.errors import HloError

_TEXTS: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = tuple(
    (re.compile(pattern, re.MULTILINE), what, mend)
    for pattern, what, mend in (
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
    for pattern, what, mend in _TEXTS:
        if pattern.search(head):
            return HloError(f"this is {what}, not HLO", mend)
    shown = next((line.strip() for line in head.splitlines() if line.strip()), "")[:60]
    return HloError(
        f"this is not HLO: no HloModule line and no computation was found (line 1 of the content: {shown!r})",
        "HLO comes from jax.jit(f).lower(...).compile().as_text(), or from XLA_FLAGS=--xla_dump_to=FOLDER.",
    )


def is_other_text(text: str) -> bool:
    """The text has the marks of another format, which a loose reading could mistake for HLO without a header."""
    head = text[:65536]
    return any(pattern.search(head) for pattern, _, _ in _TEXTS)
