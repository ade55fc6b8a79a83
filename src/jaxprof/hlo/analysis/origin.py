"""Where a kernel came from: JAX's path of transformations and scopes, source lines, forward or backward.

JAX writes into `op_name` the stack of names under which an operation was traced: `jit(f)/transpose(jvp(attn))/dot`.
Transformations wrap names (`jvp`, `transpose`, `vmap`), functions under `jit` are names of their own, and scopes set by
`jax.named_scope` stand between the slashes. Only the position separates the structure words of JAX's control flow
(`while/body`) from scopes; a scope called `body` right after `while` counts as the loop's.

`Kernel.origins` keeps values for each kernel that was asked, and reads the module's instructions one by one. Half a
million kernels have a few thousand different origins. To filter, sort and group by them, `OriginColumns` keeps each
origin once, and a kernel is a few numbers. Reading them still takes seconds, so it can be cancelled.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from io import TextIOWrapper
from typing import TYPE_CHECKING, NamedTuple

from jaxprof.files import open_regular
from jaxprof.frozen import frozen
from jaxprof.hlo import not_collecting
from jaxprof.hlo.read.plain import plain_instructions
from jaxprof.hlo.read.record import Metadata, read_metadata
from jaxprof.hlo.source import Frame, is_own, own_frame

if TYPE_CHECKING:
    from jaxprof.hlo.model import Computation, Instruction


_WRAPPED = re.compile(r"([A-Za-z_]\w*)\((.*)\)$")
_CALLS = frozenset({"jit", "pjit", "pmap", "xmap", "shard_map", "core_call", "xla_call"})
_STRUCTURE = frozenset(
    {
        "while", "body", "cond", "scan", "closed_call", "core_closed_call", "checkpoint", "remat", "remat2",
        "rematted_computation", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "pjit", "branch",
        "custom_lin", "shard_map", "main",
    }
)  # fmt: skip
_BRANCH = re.compile(r"branch_\d+_fun$|true_fun$|false_fun$")
_REMAT = frozenset({"rematted_computation"})


@frozen
class OpPath:
    """The parts of an `op_name`."""

    functions: tuple[str, ...]
    """Names under `jit`, outermost first: `("step", "softmax")`."""
    scopes: tuple[str, ...]
    """Named scopes, and functions that were called inside the outermost one; these make up the tree of scopes."""
    primitive: str
    """The operation, such as `dot_general`; empty if the path has only one part."""
    direction: str
    """`backward` for what transposition produced, `forward` for what differentiation recorded, else empty."""
    recomputed: bool
    """Whether the operation recomputes a value that `jax.checkpoint` did not keep."""


class HloSourceLocation(NamedTuple):
    """A line of a source file; lines count from 1."""

    file: str
    line: int

    @property
    def is_own(self) -> bool:
        """Whether the file is outside installed packages."""
        return is_own(self.file)

    @property
    def short(self) -> str:
        """The line without its folder: `model.py:88`."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"


class Origin(NamedTuple):
    """A place that instructions of a kernel came from."""

    op_name: str
    source: HloSourceLocation | None
    """Innermost line of the user's code; for a stack entirely in installed packages, the innermost line."""
    stack: tuple[Frame, ...]
    """Frames of the stack, innermost first; empty if the module does not say."""
    instructions: int
    """Number of the kernel's instructions that came from here."""

    @property
    def frame(self) -> Frame | None:
        """Frame of `source`."""
        return own_frame(self.stack)

    @property
    def is_own(self) -> bool:
        """Whether the line is the user's own rather than an installed package's."""
        return self.source is not None and self.source.is_own

    @property
    def path(self) -> OpPath:
        return op_path(self.op_name)


def _parts(op_name: str) -> list[str]:
    """Split the path at slashes outside parentheses."""
    parts: list[str] = []
    depth = start = 0
    for at, character in enumerate(op_name):
        if character == "(":
            depth += 1
        elif character == ")":
            depth = max(0, depth - 1)
        elif character == "/" and depth == 0:
            parts.append(op_name[start:at])
            start = at + 1
    parts.append(op_name[start:])
    return [part for part in parts if part]


@lru_cache(maxsize=4096)
def op_path(op_name: str) -> OpPath:
    """Split an `op_name` into its parts. Never raises: what it does not recognise becomes a scope."""
    functions: list[str] = []
    scopes: list[str] = []
    transformations: set[str] = set()
    parts = _parts(op_name)
    if len(parts) == 1 and not _WRAPPED.match(parts[0]):
        parts = []  # the name of an argument, `x` or `params['w']`
    primitive = parts.pop() if len(parts) > 1 and not _WRAPPED.match(parts[-1]) else ""
    recomputed = False
    for part in parts:
        inner, is_function = part, False
        for _ in range(16):
            wrapped = _WRAPPED.match(inner)
            if wrapped is None:
                break
            inner = wrapped[2]
            if wrapped[1] in _CALLS:
                is_function = True
            else:
                transformations.add(wrapped[1])
        recomputed |= inner in _REMAT
        if is_function:
            if inner == "main":  # older JAX: jit(f)/jit(main)
                continue
            if functions and inner:
                scopes.append(inner)
            functions.append(inner)
        elif inner and inner not in _STRUCTURE and not _BRANCH.match(inner):
            scopes.extend(piece for piece in inner.split("/") if piece)
    direction = "backward" if "transpose" in transformations else "forward" if "jvp" in transformations else ""
    return OpPath(tuple(functions), tuple(scopes), primitive, direction, recomputed)


def place_of(stack: tuple[Frame, ...]) -> HloSourceLocation | None:
    """Return the place that a stack is attributed to: the line of `own_frame`."""
    frame = own_frame(stack)
    return HloSourceLocation(frame.file, frame.line) if frame is not None else None


def origins(
    own: Metadata, inside: Iterable[Metadata], stack_of: Callable[[Metadata], tuple[Frame, ...]]
) -> tuple[Origin, ...]:
    """Return the places that a kernel came from: first its `own`, then those of the instructions inside it, most
    frequent first.

    The result depends on the arguments alone: kernels with the same metadata have the same origins.
    """
    own_key = (own.first_name, own.stack_frame_id or own.source_line)
    inside = [metadata for metadata in inside if metadata.text]
    if not inside:
        stack = stack_of(own) if any(own_key) else ()
        return (Origin(own_key[0], place_of(stack), stack, 1),) if any(own_key) else ()
    counts: dict[tuple[str, int], int] = {}
    samples: dict[tuple[str, int], Metadata] = {}
    for metadata in inside:
        key = (metadata.first_name, metadata.stack_frame_id or metadata.source_line)
        counts[key] = counts.get(key, 0) + 1
        samples.setdefault(key, metadata)
    if own.op_name or own_key[1]:
        samples.setdefault(own_key, own)
        counts.setdefault(own_key, 1)
    merged: dict[tuple[str, HloSourceLocation | None], Origin] = {}
    for key in sorted(samples, key=lambda key: (key != own_key, not key[1], -counts[key])):
        name, number = key
        if not name and not number:
            continue
        stack = stack_of(samples[key])
        place = place_of(stack)
        same = merged.get((name, place))
        total = counts[key] + (same.instructions if same else 0)
        merged[name, place] = Origin(name, place, same.stack if same else stack, total)
    return tuple(merged.values())


def sources_of(places: Iterable[HloSourceLocation | None]) -> tuple[HloSourceLocation, ...]:
    """Return the distinct lines of a kernel's origins: the user's own first, otherwise in the order of the origins."""
    stated = [place for place in places if place is not None]
    if len(stated) < 2:
        return tuple(stated)
    return tuple(dict.fromkeys(sorted(stated, key=lambda place: not place.is_own)))


def source_lines(place: HloSourceLocation, around: int = 0) -> tuple[tuple[int, str], ...]:
    """Return the line itself with `around` lines on each side, numbered; empty if the file cannot be read here."""
    first = max(1, place.line - around)
    try:
        with TextIOWrapper(open_regular(place.file), encoding="utf-8", errors="replace") as file:
            return tuple(
                (number, line.rstrip("\r\n"))
                for number, line in zip(range(1, place.line + around + 1), file, strict=False)
                if number >= first
            )
    except (OSError, ValueError):
        return ()


_PAGE = 16384
"""Kernels between two checks for cancellation."""
_MOST_KNOWN = 1 << 14
"""Most distinct metadata of kernels whose origins are remembered while they are read."""
_DEEPEST = 8
"""Most nested fusions, as `kinds.fused` follows them."""

Place = tuple[str, HloSourceLocation | None]
"""`op_name` and `source` of an origin."""


class OriginColumns:
    """Origins of each kernel, by the kernel's number."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        """All distinct places, in the order of their first occurrence."""
        self._starts = array("I", [0])
        self._place_numbers = array("I")
        """Places of kernel n at `_starts[n]` to `_starts[n + 1]`, in the order of `Kernel.origins`."""
        self._sources = array("i")
        """For each kernel the place whose line is its `source`; -1 if it has none."""

    def __len__(self) -> int:
        return len(self._starts) - 1

    def of(self, number: int) -> Sequence[int]:
        """Return the numbers of the places of one kernel, its own first."""
        return self._place_numbers[self._starts[number] : self._starts[number + 1]]

    def first(self, number: int) -> int:
        """Return the number of the place that is a kernel's own; -1 if the text says nothing."""
        start = self._starts[number]
        return self._place_numbers[start] if start < self._starts[number + 1] else -1

    def source(self, number: int) -> int:
        """Return the number of the place whose line is the `source` of a kernel; -1 if it has none."""
        return self._sources[number]

    def having(self, test: Callable[[Place], bool]) -> bytearray:
        """Return for each kernel 1 if one of its places passes the test, else 0. Each place is tested once."""
        passing = bytearray(map(test, self.places))
        passed = bytearray(len(self))
        if any(passing):
            held, starts = self._place_numbers, self._starts
            for number in range(len(self)):
                for at in range(starts[number], starts[number + 1]):
                    if passing[held[at]]:
                        passed[number] = 1
                        break
        return passed

    def _add(self, places: Sequence[int], source: int) -> None:
        self._place_numbers.extend(places)
        self._sources.append(source)
        self._starts.append(len(self._place_numbers))


def origin_columns(
    kernels: Iterable[Instruction], cancelled: Callable[[], bool] = lambda: False
) -> OriginColumns | None:
    """Read the origins of all kernels of a module, given by their instructions; None if `cancelled` returned True. May
    take seconds, so run it in a thread."""
    with not_collecting():
        return _read(kernels, cancelled)


def _read(kernels: Iterable[Instruction], cancelled: Callable[[], bool]) -> OriginColumns | None:
    columns = OriginColumns()
    numbers: dict[Place, int] = {}
    remembered: dict[tuple[str, ...], tuple[tuple[int, ...], int]] = {}
    for done, kernel in enumerate(kernels):
        if done % _PAGE == 0 and cancelled():
            return None
        texts = _metadata(kernel)
        numbered = remembered.get(texts) if texts is not None else None
        if numbered is None:
            places = _places(kernel, texts)
            first = next(iter(sources_of([source for _, source in places])), None)
            numbered = (
                tuple([numbers.setdefault(place, len(numbers)) for place in places]),
                next((numbers[place] for place in places if first is not None and place[1] == first), -1),
            )
            if texts is not None:
                if len(remembered) >= _MOST_KNOWN:
                    remembered.clear()
                remembered[texts] = numbered
        columns._add(*numbered)
    columns.places = list(numbers)
    return columns


def _places(instruction: Instruction, texts: tuple[str, ...] | None) -> list[Place]:
    """Return the origins of a kernel, from its metadata or, if that is not plain, from its instructions."""
    if texts is not None:
        own, *inside = map(read_metadata, texts)
    else:
        from jaxprof.hlo.analysis.kinds import fused

        own = instruction.metadata
        inside = [held.metadata for held in fused(instruction)]
    all_origins = origins(own, inside, instruction.computation.module.stack_of)
    return [(origin.op_name, origin.source) for origin in all_origins]


def _metadata(instruction: Instruction) -> tuple[str, ...] | None:
    """Return the metadata of a kernel and of the instructions inside it, as written; None if it is not plain."""
    computation = instruction.computation
    plain = plain_instructions(computation.source.text, *instruction.span) or ()
    if len(plain) != 1:
        return None
    ((_, called, own),) = plain
    texts = [own]
    return tuple(texts) if not called or _add_held(texts, computation.module.get(called), 0) else None


def _add_held(texts: list[str], computation: Computation | None, depth: int) -> bool:
    """Add the metadata of what `kinds.fused` finds in a computation; False if it is not plain."""
    if computation is None or depth > _DEEPEST:
        return True
    held = plain_instructions(computation.source.text, *computation.span[1:])
    for opcode, called, metadata in held or ():
        if opcode == "fusion":
            if not _add_held(texts, computation.module.get(called), depth + 1):
                return False
        elif opcode != "parameter":
            texts.append(metadata)
    return held is not None
