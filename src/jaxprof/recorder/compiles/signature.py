"""What a compilation depends on, as far as it can be seen: the arguments' leaves, static arguments, options,
configuration; and the signatures compiled so far, by function.

Signatures outlive the call and are compared with later ones: they hold text and numbers, no arrays and no functions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events import NOWHERE, ProgramArray, SignatureLeaf, SourceLocation
from jaxprof.recorder.compiles.call_source import Made
from jaxprof.recorder.compiles.values import array_bytes, array_type

LEAVES_SHOWN = 64
SIGNATURES_A_FUNCTION, LEAVES_A_FUNCTION, FUNCTIONS = 256, 50_000, 2_000
"""How many signatures are kept for each function, with how many leaves in all, and for how many functions: of more, the
oldest go."""


@frozen
class Leaf:
    """One leaf of the arguments, or one static argument."""

    shape: tuple[Any, ...] = ()
    dtype: str = ""
    """Short name of the dtype: `f32`; empty for a static argument."""
    weak_type: bool = False
    sharding: str = ""
    """Sharding as text; empty if the value is not committed to a device."""
    placed: int = 0
    """Hash that distinguishes shardings with the same text."""
    static: str = ""
    """Value of a static argument, as text."""
    static_hash: int = 0
    digest: int = field(default=0, compare=False, repr=False)
    """Hash of the fields above, computed once."""

    def __post_init__(self) -> None:
        content = (self.shape, self.dtype, self.weak_type, self.sharding, self.placed, self.static, self.static_hash)
        object.__setattr__(self, "digest", hash(content))

    def __hash__(self) -> int:
        return self.digest

    @property
    def is_static(self) -> bool:
        """Whether the argument is static: the program was compiled for its value."""
        return not self.dtype

    @property
    def type(self) -> str:
        """`f32[4]`, or the value of a static argument."""
        return self.static if self.is_static else array_type(self.shape, self.dtype)


@dataclass(slots=True)
class Signature:
    """Everything by which compilations are compared: what `digest` covers never changes."""

    function: object = None
    """Identifies the function object; None if it was not seen."""
    written: object = field(default=None, compare=False)
    """Identifies the object of a library's wrapper around the function, which may pass JAX several functions for one of
    the user's."""
    names: tuple[str, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    keywords: tuple[str, ...] = ()
    """Names of the arguments passed by name: JAX compiles again if they are passed by position."""
    structure: int = 0
    """Hash of the arguments' containers, and of what they hold besides leaves."""
    statics: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """The part of `structure` that can be written as text: the path of a node, and what the node holds."""
    under: str = ""
    """Transformations through which the jit was called: `vmap`, `grad`."""
    options: tuple[tuple[str, str], ...] = ()
    """The options of `jax.jit`."""
    config: tuple[tuple[str, str], ...] = ()
    numpy: Mapping[int, int] = field(default_factory=dict, compare=False)
    """Bytes that every call copies to the device, by the index of each leaf that was a NumPy array. Such a leaf causes
    no new compilation."""
    replaced: frozenset[int] = field(default=frozenset(), compare=False)
    """The leaves of `numpy` that the call's result replaces, so that only the first call has them."""
    aligned: frozenset[int] = field(default=frozenset(), compare=False)
    """The leaves of `numpy` whose memory a device on the host could use without a copy."""
    shared: frozenset[int] = field(default=frozenset(), compare=False)
    """The leaves of `numpy` that are used in place, without a copy."""
    numbers: int = field(default=0, compare=False)
    """Python's numbers among the leaves. A result that takes the place of one is an array, whose type is as weak only
    if it depends on nothing else."""
    donated: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Index of each donated leaf, by JAX's own name for it."""
    made: Made | None = field(default=None, compare=False)
    """How the function was made, if another function makes it."""
    digest: int = field(default=0, compare=False, repr=False)
    """Hash of the fields above, computed once."""

    def __post_init__(self) -> None:
        content = (self.function, self.names, self.leaves, self.keywords, self.structure, self.under)
        self.digest = hash((*content, self.options, self.config))

    def __hash__(self) -> int:
        return self.digest

    def rows(self) -> list[SignatureLeaf]:
        """Return the leaves as the ledger shows them, at most `LEAVES_SHOWN`."""
        return [
            SignatureLeaf(
                name=name,
                type=leaf.type,
                static=leaf.is_static,
                weak_type=leaf.weak_type,
                sharding=leaf.sharding,
                bytes=self.numpy.get(at),
                replaced=at in self.replaced,
                zero_copy=at in self.shared,
            )
            for at, (name, leaf) in enumerate(zip(self.names[:LEAVES_SHOWN], self.leaves, strict=False))
        ]

    def same_function(self, other: Signature) -> bool:
        """Whether both belong to the same function object, as far as the user can tell."""
        return self.function == other.function or (self.written is not None and self.written == other.written)

    @property
    def numpy_bytes(self) -> int:
        """Bytes that every such call copies from NumPy to the device, over all leaves."""
        return sum(size for at, size in self.numpy.items() if at not in self.replaced | self.shared)

    def unused_donations(self, taken: Mapping[str, bool]) -> list[ProgramArray]:
        """Return the donated leaves that the program takes (`taken`, by JAX's name) but whose buffer no output can
        reuse."""
        unused = [at for name, at in self.donated.items() if taken.get(name) is False]
        return [
            ProgramArray(name=self.names[at], type=leaf.type, bytes=array_bytes(leaf.shape, leaf.dtype))
            for at in unused
            for leaf in (self.leaves[at],)
        ]

    @property
    def known(self) -> bool:
        """Whether anything of the call was seen."""
        return self.function is not None or bool(self.leaves)


@frozen
class FunctionKey:
    """Functions with the same key are compared with each other: the same definition, wrapped in the same way."""

    name: str
    file: str = ""
    line: int = 0
    wrapped_at: tuple[str, int] = ("", 0)
    under: str = ""


@dataclass(slots=True)
class _Record:
    signatures: dict[Signature, tuple[SourceLocation, int]] = field(default_factory=dict)
    """Call location and number of earlier cache clears by signature, oldest first."""
    leaves: int = 0


class History:
    """The signatures with which each function was compiled."""

    def __init__(self) -> None:
        self._records: OrderedDict[FunctionKey, _Record] = OrderedDict()

    def earlier(self, key: FunctionKey, now: Signature) -> Iterator[Signature]:
        """Return the signatures of a function: an equal one first, then the most recent first."""
        record = self._records.get(key)
        if record is not None:
            if now in record.signatures:
                yield now
            yield from reversed(record.signatures)

    def known(self, key: FunctionKey) -> bool:
        """Whether the function was compiled before."""
        return key in self._records

    def last_call(self, key: FunctionKey, signature: Signature) -> tuple[SourceLocation, int]:
        """Return the location from which the last compilation with this signature was called, and how often JAX's
        caches had been cleared before."""
        record = self._records.get(key)
        return record.signatures.get(signature, (NOWHERE, 0)) if record is not None else (NOWHERE, 0)

    def add(self, key: FunctionKey, signature: Signature, called_from: SourceLocation, clears: int = 0) -> None:
        """Add a compilation."""
        record = self._records.get(key)
        if record is None:
            if len(self._records) >= FUNCTIONS:
                self._records.popitem(last=False)
            record = self._records[key] = _Record()
        self._records.move_to_end(key)
        if record.signatures.pop(signature, None) is None:
            record.leaves += len(signature.leaves)
        record.signatures[signature] = called_from, clears
        while len(record.signatures) > 1 and (
            len(record.signatures) > SIGNATURES_A_FUNCTION or record.leaves > LEAVES_A_FUNCTION
        ):
            gone = next(iter(record.signatures))
            del record.signatures[gone]
            record.leaves -= len(gone.leaves)
