"""Where a kernel came from: JAX's path of transformations and scopes, source lines, forward or backward.

JAX writes into `op_name` the stack of names under which an operation was traced: `jit(f)/transpose(jvp(attn))/dot`.
Transformations wrap names (`jvp`, `transpose`, `vmap`), functions under `jit` are names of their own, and scopes set by
`jax.named_scope` stand between the slashes. Only the position separates the structure words of JAX's control flow
(`while/body`) from scopes; a scope called `body` right after `while` counts as the loop's.

`Kernel.origins` keeps values for each kernel that was asked, and reads the module's instructions one by one. Half a
million kernels have a few thousand different ones. To filter, sort and group by them, `OriginColumns` keeps each once,
and a kernel is a number. Reading them still takes seconds, so it can be cancelled.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from jaxprof.base.files import is_own
from jaxprof.base.values import frozen, not_collecting
from jaxprof.hlo.kernels import CONTROL
from jaxprof.hlo.source import Frame, own_and_library
from jaxprof.hlo.text.record import Metadata, plain_instructions, read_metadata

if TYPE_CHECKING:
    from jaxprof.hlo.text.model import Computation, Instruction, Module


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
_OPERATIONS = {"dot_general": "matmul", "conv_general_dilated": "conv"}
"""Primitives that people know by another name."""


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

    @property
    def label(self) -> str:
        """The layer, or else the function, and the operation, `∂` in front of one that goes backward: `Dense_3 ∂
        matmul`; empty without an operation."""
        if not self.primitive:
            return ""
        layer = "/".join(self.scopes[-2:] or self.functions[-1:])
        backward = "∂" if self.direction == "backward" else ""
        return " ".join(filter(None, (layer, backward, _OPERATIONS.get(self.primitive, self.primitive))))


class HloSourceLocation(NamedTuple):
    """A line of a source file; lines count from 1."""

    file: str
    line: int

    @classmethod
    def of(cls, frame: Frame | None) -> HloSourceLocation | None:
        return cls(frame.file, frame.line) if frame is not None else None

    @property
    def is_own(self) -> bool:
        """Whether the file is outside installed packages."""
        return is_own(self.file)

    @property
    def short(self) -> str:
        """The line without its folder: `model.py:88`."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"


class Origin(NamedTuple):
    """A location that instructions of a kernel came from."""

    op_name: str
    source: HloSourceLocation | None
    """Innermost line of the user's code; for a stack entirely in installed packages, the innermost line."""
    frame: Frame | None
    library: HloSourceLocation | None = None
    """Innermost line of the library that the user's code calls there; None if the operation is the user's."""

    @property
    def is_own(self) -> bool:
        """Whether the line is the user's own rather than an installed package's."""
        return self.source is not None and self.source.is_own

    @property
    def path(self) -> OpPath:
        return op_path(self.op_name)


@lru_cache(maxsize=4096)
def op_path(op_name: str) -> OpPath:
    """Split an `op_name` into its parts. Never raises: what it does not recognise becomes a scope."""
    functions: list[str] = []
    scopes: list[str] = []
    transformations: set[str] = set()
    # split at slashes outside parentheses
    pieces: list[str] = []
    depth = start = 0
    for at, character in enumerate(op_name):
        if character == "(":
            depth += 1
        elif character == ")":
            depth = max(0, depth - 1)
        elif character == "/" and depth == 0:
            pieces.append(op_name[start:at])
            start = at + 1
    pieces.append(op_name[start:])
    parts = [part for part in pieces if part]
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
    direction = "forward" if "jvp" in transformations else ""
    if "transpose" in transformations:  # it transposes a linearised function, which `jvp` has made
        direction = "backward"
    return OpPath(tuple(functions), tuple(scopes), primitive, direction, recomputed)


def origins(
    own: Metadata, inside: Iterable[Metadata], stack_of: Callable[[Metadata], tuple[Frame, ...]]
) -> tuple[Origin, ...]:
    """Return the locations that a kernel came from: first its `own`, then those of the instructions inside it, most
    frequent first.

    The result depends on the arguments alone: kernels with the same metadata have the same origins.
    """
    counts: Counter[tuple[str, int]] = Counter()
    samples: dict[tuple[str, int], Metadata] = {}
    for metadata in inside:
        if metadata.text:
            key = _identity(metadata)
            counts[key] += 1
            samples.setdefault(key, metadata)
    own_key = _identity(own)
    samples.setdefault(own_key, own)
    merged: dict[tuple[str, HloSourceLocation | None], Origin] = {}
    for key in sorted(samples, key=lambda key: (key != own_key, not key[1], -counts[key])):
        if any(key):
            frame, library = own_and_library(stack_of(samples[key]))
            location = HloSourceLocation.of(frame)
            merged.setdefault((key[0], location), Origin(key[0], location, frame, HloSourceLocation.of(library)))
    return tuple(merged.values())


@frozen(eq=False)
class Origins:
    """All that is known of where a kernel came from. Kernels with the same metadata share one, whose equality is its
    identity."""

    each: tuple[Origin, ...]
    sources: tuple[HloSourceLocation, ...]
    """Distinct source lines, as `sources_of` orders them."""


_REMEMBERED = 1 << 14
"""Most different texts of metadata that are remembered: in some modules all differ."""


def origins_of(kernel: Instruction) -> Origins:
    """Return where a kernel came from, from its metadata or, if that is not plain, from its instructions."""
    module, opcode = kernel.computation.module, kernel.opcode
    remembered = module.once(_origin_memory)
    # The metadata of most is in the tail of their line, which many have alike.
    tail = kernel.tail if opcode not in _HOLDING else None
    line = opcode + tail if tail is not None else ""
    known = remembered.get(line)
    if known is not None:
        return known
    texts = _metadata(kernel)
    known = remembered.get(texts) if texts is not None else None
    if known is None:
        if texts is not None:
            own, *inside = map(read_metadata, texts)
        else:
            from jaxprof.hlo.kernels.kinds import instructions_in

            own = kernel.metadata
            inside = [held.metadata for held in instructions_in(kernel)]
        each = origins(own, inside, module.stack_of)
        known = Origins(each, sources_of([origin.source for origin in each]))
    if texts is not None:
        if len(remembered) >= _REMEMBERED:
            remembered.clear()
        remembered[texts] = remembered[line or texts] = known
    return known


_HOLDING = CONTROL | {"fusion", "async-start"}
"""Opcodes with which the tail of a line does not say all metadata."""


def _origin_memory(_: Module) -> dict[Hashable, Origins]:
    return {}


def _identity(metadata: Metadata) -> tuple[str, int]:
    return metadata.first_name, metadata.stack_frame_id or metadata.source_line


def sources_of(locations: Iterable[HloSourceLocation | None]) -> tuple[HloSourceLocation, ...]:
    """Return the distinct lines of a kernel's origins: the user's own first, otherwise in the order of the origins."""
    stated = [location for location in locations if location is not None]
    if len(stated) < 2:
        return tuple(stated)
    return tuple(dict.fromkeys(sorted(stated, key=lambda location: not location.is_own)))


_DEEPEST = 8
"""Most nested fusions, as `kinds.instructions_in` follows them."""

OpLocation = tuple[str, HloSourceLocation | None]
"""`op_name` and `source` of an origin."""


class OriginColumns(NamedTuple):
    """Origins of each kernel, by the kernel's number."""

    different: list[tuple[OpLocation, ...]]
    """The locations of kernels, those of one in the order of `Kernel.origins`; each distinct value once."""
    which: array[int]
    """Index into `different` of each kernel."""

    def with_more(self, kernels: Iterable[Instruction]) -> OriginColumns:
        """Return the columns with these few kernels at their end."""
        locations = list(map(_locations, kernels))
        numbers = array("I", range(len(self.different), len(self.different) + len(locations)))
        return OriginColumns([*self.different, *locations], self.which + numbers)


def source_of(locations: Iterable[OpLocation]) -> HloSourceLocation | None:
    """Return the `source` of a kernel that came from these locations."""
    return next(iter(sources_of([source for _, source in locations])), None)


def origin_columns(
    kernels: Iterable[Instruction], cancelled: Callable[[], bool] = lambda: False
) -> OriginColumns | None:
    """Read the origins of all kernels of a module, given by their instructions; None if `cancelled` returned True. May
    take seconds, so run it in a thread."""
    which = array("I")
    numbers: dict[tuple[OpLocation, ...], int] = {}
    remembered: dict[tuple[str, ...], int] = {}
    with not_collecting():
        for done, kernel in enumerate(kernels):
            if done % 16384 == 0 and cancelled():  # often enough to answer at once
                return None
            texts = _metadata(kernel)
            number = remembered.get(texts) if texts is not None else None
            if number is None:
                number = numbers.setdefault(_locations(kernel), len(numbers))
                if texts is not None:
                    if len(remembered) >= _REMEMBERED:
                        remembered.clear()
                    remembered[texts] = number
            which.append(number)
    return OriginColumns(list(numbers), which)


def _locations(kernel: Instruction) -> tuple[OpLocation, ...]:
    return tuple([(origin.op_name, origin.source) for origin in origins_of(kernel).each])


def _metadata(instruction: Instruction) -> tuple[str, ...] | None:
    """Return the metadata of a kernel and of the instructions inside it, as written; None if it is not plain."""
    computation = instruction.computation
    plain = plain_instructions(computation.source.text, *instruction.span) or ()
    if len(plain) != 1:
        return None
    ((opcode, called, own),) = plain
    if opcode in CONTROL:
        return None
    texts = [own]
    return tuple(texts) if not called or _add_held(texts, computation.module.get(called), 0) else None


def _add_held(texts: list[str], computation: Computation | None, depth: int) -> bool:
    """Add the metadata of what `kinds.instructions_in` finds in a computation; False if it is not plain."""
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
