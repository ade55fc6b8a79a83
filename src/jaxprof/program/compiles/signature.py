"""What a compilation depends on, as far as it can be seen: the leaves of the arguments, static ones, options, config.

Signatures outlive the call and are compared with later ones: they hold words and numbers, no arrays and no functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from jaxprof.program.compiles.values import array_type

LEAVES_SHOWN: Final = 64


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the arguments, or one static argument."""

    shape: tuple[Any, ...] = ()
    dtype: str = ""
    """Short: `f32`; empty for a static argument."""
    weak: bool = False
    sharding: str = ""
    """Empty where the value is not committed to a device."""
    placed: int = 0
    """Tells shardings apart that read the same."""
    static: str = ""
    """The value of a static argument, in words."""
    static_hash: int = 0
    digest: int = field(default=0, compare=False, repr=False)
    """Hash of the fields above, reckoned once."""

    def __post_init__(self) -> None:
        content = (self.shape, self.dtype, self.weak, self.sharding, self.placed, self.static, self.static_hash)
        object.__setattr__(self, "digest", hash(content))

    def __hash__(self) -> int:
        return self.digest

    @property
    def is_static(self) -> bool:
        """Whether the program was made for its value."""
        return not self.dtype

    @property
    def type(self) -> str:
        """`f32[4]`, or the value of a static one."""
        return self.static if self.is_static else array_type(self.shape, self.dtype)


@dataclass(frozen=True, slots=True)
class Signature:
    """All that a compilation is compared by."""

    function: object = None
    """Which function object; None where it was not seen."""
    names: tuple[str, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    keywords: tuple[str, ...] = ()
    """The arguments that were passed by name: JAX compiles again for the same ones by position."""
    structure: int = 0
    """Hash of the containers of the arguments, with what they hold besides leaves."""
    under: str = ""
    """The transformations outside of the jit that it was called through: `vmap`, `grad`."""
    options: tuple[tuple[str, str], ...] = ()
    """Those of `jax.jit`."""
    config: tuple[tuple[str, str], ...] = ()
    digest: int = field(default=0, compare=False, repr=False)
    """Hash of the fields above, reckoned once."""

    def __post_init__(self) -> None:
        content = (self.function, self.names, self.leaves, self.keywords, self.structure, self.under)
        object.__setattr__(self, "digest", hash((*content, self.options, self.config)))

    def __hash__(self) -> int:
        return self.digest

    def rows(self) -> list[dict[str, Any]]:
        """The leaves as the ledger shows them, at most `LEAVES_SHOWN`."""
        return [_row(name, leaf) for name, leaf in zip(self.names[:LEAVES_SHOWN], self.leaves, strict=False)]

    @property
    def known(self) -> bool:
        """Whether anything of the call was seen."""
        return self.function is not None or bool(self.leaves)


def _row(name: str, leaf: Leaf) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "type": leaf.type}
    if leaf.is_static:
        row["static"] = True
    if leaf.weak:
        row["weak_type"] = True
    if leaf.sharding:
        row["sharding"] = leaf.sharding
    return row
