"""Where a line of a stage of a program came from.

JAX writes the same two things into every stage: the source line, and the path of names under which an operation was
traced (`jit(f)/jvp(attn)/dot_general`). HLO keeps both in its metadata, StableHLO in MLIR's locations, a jaxpr in
comments. They are removed from the text of the latter two, which is then shorter and easier to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from jaxprof.base.values import frozen
from jaxprof.hlo.kernels.origin import HloSourceLocation
from jaxprof.hlo.source import Frame, own_and_library
from jaxprof.hlo.text import STRING, unquote


@frozen
class LineOrigin:
    """What a line says about where it came from."""

    location: HloSourceLocation | None = None
    op_name: str = ""
    """Path that ends with the operation; in a jaxpr it begins at the jaxpr's own function."""
    library: HloSourceLocation | None = None
    """Innermost line of the library that the user's code calls there, if any."""

    @staticmethod
    def of(stack: Iterable[Frame], op_name: str) -> LineOrigin | None:
        """Return the origin of a line with this stack, innermost frame first; None if it says nothing."""
        own, library = map(HloSourceLocation.of, own_and_library(stack))
        return LineOrigin(own, op_name, library) or None

    def __bool__(self) -> bool:
        return self.location is not None or bool(self.op_name)


Origins = dict[int, LineOrigin]
"""Where lines of a text came from. Lines count from 0; what the text does not say is absent."""


# -- StableHLO --------------------------------------------------------------------------------------------------------

_LOCATION = re.compile(rf" loc\((#loc\d*|{STRING}|unknown)\)")
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_FILE = re.compile(rf"({STRING}):(\d{{1,18}})(?::\d+)?")
_NAMED = re.compile(rf"({STRING})(?:\((#loc\d*)\))?$")
_REFERENCE = re.compile(r"#loc\d*")


def without_locations(text: str) -> tuple[str, Origins]:
    """Return StableHLO without its locations, and the lines that they stand for. Text without locations is returned
    unchanged."""
    origins: Origins = {}
    if "loc(" not in text:
        return text, origins
    aliases: dict[str, str] = {}
    kept: list[tuple[str, str]] = []
    for line in text.split("\n"):
        if alias := _ALIAS.match(line):
            aliases[alias[1]] = alias[2]
        else:
            locations = _LOCATION.findall(line)
            kept.append((_LOCATION.sub("", line), locations[-1] if locations else ""))
    origin_of = cache(lambda location: _resolve(location, aliases))
    for number, (_, location) in enumerate(kept):
        if location.startswith("#") and (origin := origin_of(location)):
            origins[number] = origin
    return "\n".join(line for line, _ in kept), origins


def _resolve(location: str, aliases: dict[str, str]) -> LineOrigin | None:
    """Return the outermost name that is a path, and the lines of the stack; None if there is no file."""
    op_name, stack, pending = "", [], [location]
    # A stack has two locations for each call.
    for _ in range(512):
        if not pending:
            break
        text = aliases.get(pending.pop(), "")
        if (file := _FILE.match(text)) is not None:
            stack.append(Frame(unquote(file[1]), "", int(file[2])))
            continue
        named = _NAMED.match(text)
        if named is not None and not op_name:
            op_name = unquote(named[1])
        pending += reversed(_REFERENCE.findall(text))  # a call site: the callee, then the caller
    return LineOrigin.of(stack, op_name) if stack else None


# -- jaxprs -----------------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"\s+# (?P<file>\S.*?):(?P<line>\d{1,18})[-:\d]* \((?P<function>[^()]*(?:\([^()]*\))?)\)")
_NAMES = re.compile(r"\s*# \[(?P<names>.*)\]\s*$")
_PRIMITIVE = re.compile(r" = ([a-z_]\w*)")


def without_comments(text: str) -> tuple[str, Origins]:
    """Return a jaxpr without the comments on where its equations came from, and these origins. Text without them is
    returned unchanged."""
    origins: Origins = {}
    if " # " not in text:
        return text, origins
    kept: list[str] = []
    for line in text.split("\n"):
        names = _NAMES.search(line)
        head = line[: names.start()] if names is not None else line
        comment = _COMMENT.search(head)
        shown = head[: comment.start()] if comment is not None else head
        if comment is not None:
            primitive = _PRIMITIVE.search(shown)
            location = HloSourceLocation(comment["file"], int(comment["line"]))
            origins[len(kept)] = LineOrigin(location, primitive[1] if primitive is not None else "")
        if names is not None and names["names"]:
            # A long line has the names of its path on a line of their own.
            line_number = len(kept) if shown.strip() else len(kept) - 1
            if (origin := origins.get(line_number)) is not None:
                path = f"{names['names']}/{origin.op_name}" if origin.op_name else names["names"]
                origins[line_number] = LineOrigin(origin.location, path)
        if shown.strip() or names is None:
            kept.append(shown)
    return "\n".join(kept), origins
