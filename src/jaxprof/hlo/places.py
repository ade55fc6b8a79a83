"""Link the stages of a program: where a line of a stage came from, and which lines of a stage came from a place.

JAX writes the same two things into every stage: the source line, and the path of names under which an operation was
traced (`jit(f)/jvp(attn)/dot_general`). HLO keeps both in its metadata, StableHLO in MLIR's locations, a jaxpr in
comments. They are removed from the text of the latter two, which is then shorter and easier to read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.hlo.read.syntax import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jaxprof.hlo.model import Instruction, Module

MOST_LINES = 200
"""Most matching lines that are searched in one stage."""


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """What a line says about where it came from."""

    place: HloSourceLocation | None = None
    op_name: str = ""
    """Path that ends with the operation; in a jaxpr it begins at the jaxpr's own function."""

    def __bool__(self) -> bool:
        return self.place is not None or bool(self.op_name)


@dataclass(slots=True)
class ListedPlaces:
    """Places of a text from which they were removed. Lines count from 0."""

    by_line: dict[int, LineOrigin] = field(default_factory=dict)

    def of(self, line: int) -> LineOrigin | None:
        """Return where a line came from; None if the text does not say."""
        return self.by_line.get(line)

    def lines(self, spot: LineOrigin) -> Sequence[int]:
        """Return the lines that came from the same place, only those of the same operation if there are any."""
        if spot.place is None:
            return []
        return closest(spot, [(line, other) for line, other in self.by_line.items() if other.place == spot.place])


class HloPlaces:
    """Places of HLO text: read from the model for a line, and found in the text for a place."""

    def __init__(self, modules: Sequence[Module], instruction: Callable[[int], Instruction | None]) -> None:
        """Search the text of `modules`; `instruction` finds the instruction that a line of the text belongs to."""
        self._modules = modules
        self._instruction = instruction

    def of(self, line: int) -> LineOrigin | None:
        instruction = self._instruction(line)
        if instruction is None:
            return None
        stack = instruction.stack
        place = HloSourceLocation(stack[0].file, stack[0].line) if stack and stack[0].file else None
        return LineOrigin(place, instruction.metadata.first_name) or None

    def lines(self, spot: LineOrigin) -> Sequence[int]:
        if spot.place is None:
            return []
        candidates: list[tuple[int, LineOrigin]] = []
        for module in self._modules:
            pattern = _hlo_pattern(module, spot.place)
            if pattern is None:
                continue
            source = module.source
            for match in pattern.finditer(source.text, *module.span):
                line = source.line(match.start()) - 1
                here = self.of(line)
                if here is not None and here.place == spot.place:
                    candidates.append((line, here))
                if len(candidates) >= MOST_LINES:
                    break
        return closest(spot, candidates)


Places = ListedPlaces | HloPlaces
"""Lookup between the lines of a text and the places that they came from."""


def _hlo_pattern(module: Module, place: HloSourceLocation) -> re.Pattern[str] | None:
    """Return a pattern for the metadata of instructions from `place`."""
    frames = [
        str(number)
        for number, (frame, _) in module.tables.frames.items()
        if frame.file == place.file and frame.line == place.line
    ]
    if frames:
        return re.compile(rf"\bstack_frame_id=(?:{'|'.join(frames)})\b")
    if module.tables.frames:
        return None
    return re.compile(rf"\bsource_line={place.line}\b")


def closest(spot: LineOrigin, spots: Sequence[tuple[int, LineOrigin]]) -> list[int]:
    """Return the lines of the same operation among lines from the same place; all of them if none is known to be."""
    same = [line for line, other in spots if same_operation(spot.op_name, other.op_name)]
    return list(dict.fromkeys(same or [line for line, _ in spots]))


def same_operation(one: str, other: str) -> bool:
    """Return whether two paths mean the same operation: they are equal, or one extends the other outwards."""
    if not one or not other:
        return False
    return one == other or one.endswith("/" + other) or other.endswith("/" + one)


# -- StableHLO --------------------------------------------------------------------------------------------------------

_STRING = r'"(?:[^"\\]|\\.)*+"'
_LOCATION = re.compile(rf" loc\((#loc\d*|{_STRING}|unknown)\)")
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_FILE = re.compile(rf"({_STRING}):(\d{{1,18}})(?::\d+)?")
_NAMED = re.compile(rf"({_STRING})(?:\((#loc\d*)\))?$")
_REFERENCE = re.compile(r"#loc\d*")


def without_locations(text: str) -> tuple[str, ListedPlaces]:
    """Return StableHLO without its locations, and the places that they stand for. Text without locations is returned
    unchanged."""
    places = ListedPlaces()
    if "loc(" not in text:
        return text, places
    aliases: dict[str, str] = {}
    kept: list[tuple[str, str]] = []
    for line in text.split("\n"):
        alias = _ALIAS.match(line)
        if alias is not None:
            aliases[alias[1]] = alias[2]
            continue
        last = ""
        for match in _LOCATION.finditer(line):
            last = match[1]
        kept.append((_LOCATION.sub("", line) if last else line, last))
    spots: dict[str, LineOrigin] = {}
    for number, (_, location) in enumerate(kept):
        if location.startswith("#"):
            if location not in spots:
                spots[location] = _resolve(location, aliases)
            if spots[location].place is not None:
                places.by_line[number] = spots[location]
    return "\n".join(line for line, _ in kept), places


def _resolve(location: str, aliases: dict[str, str]) -> LineOrigin:
    """Return the outermost name that is a path, and the innermost file and line."""
    op_name = ""
    for _ in range(64):
        text = aliases.get(location, "")
        file = _FILE.match(text)
        if file is not None:
            return LineOrigin(HloSourceLocation(unquote(file[1]), int(file[2])), op_name)
        named = _NAMED.match(text)
        if named is not None and not op_name:
            op_name = unquote(named[1])
        inner = _REFERENCE.search(text)
        if inner is None:
            break
        location = inner[0]
    return LineOrigin(None, op_name)


# -- jaxprs -----------------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"\s+# (?P<file>\S.*?):(?P<line>\d{1,18})[-:\d]* \((?P<function>[^()]*(?:\([^()]*\))?)\)")
_NAMES = re.compile(r"\s*# \[(?P<names>.*)\]\s*$")
_PRIMITIVE = re.compile(r" = ([a-z_]\w*)")


def without_comments(text: str) -> tuple[str, ListedPlaces]:
    """Return a jaxpr without the comments on where its equations came from, and the places. Text without them is
    returned unchanged."""
    places = ListedPlaces()
    if " # " not in text:
        return text, places
    kept: list[str] = []
    for line in text.split("\n"):
        names = _NAMES.search(line)
        head = line[: names.start()] if names is not None else line
        comment = _COMMENT.search(head)
        shown = head[: comment.start()] if comment is not None else head.rstrip() if names is not None else head
        if comment is not None:
            primitive = _PRIMITIVE.search(shown)
            place = HloSourceLocation(comment["file"], int(comment["line"]))
            places.by_line[len(kept)] = LineOrigin(place, primitive[1] if primitive is not None else "")
        if names is not None and (kept or shown.strip()):
            _prefix(places, len(kept) if shown.strip() else len(kept) - 1, names["names"])
        if shown.strip() or names is None:
            kept.append(shown)
    return "\n".join(kept), places


def _prefix(places: ListedPlaces, line: int, names: str) -> None:
    """Add the names to the front of a line's path, if it has one."""
    spot = places.by_line.get(line)
    if spot is not None and names:
        places.by_line[line] = LineOrigin(spot.place, f"{names}/{spot.op_name}" if spot.op_name else names)
