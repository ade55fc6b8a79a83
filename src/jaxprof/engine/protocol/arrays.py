"""How the arrays of a run are described to the client, and in the file that holds them."""

from __future__ import annotations

from jaxprof.light_dataclass import dataclass

LEAVES = "leaves"
"""The array in the file that holds the description of the others."""


@dataclass(frozen=True, slots=True)
class KeptLeaf:
    """One array of a tree."""

    path: str
    """The way to it: `[0]['w']`; empty for a tree that is one array."""
    dtype: str
    shape: tuple[int, ...]
    digest: str = ""
    """Of its numbers, where only these are told apart."""

    @property
    def spec(self) -> str:
        """`float32[1024,1024]`."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"
