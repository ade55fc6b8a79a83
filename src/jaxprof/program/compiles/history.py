"""The signatures that were compiled before, function by function: bounded, and without a reference to anything live."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from jaxprof.program.compiles.signature import Signature

SIGNATURES_A_FUNCTION: Final = 256
LEAVES_A_FUNCTION: Final = 50_000
FUNCTIONS: Final = 2_000


@dataclass(frozen=True, slots=True)
class FunctionKey:
    """Functions with the same one are compared with each other: the same definition, wrapped in the same way."""

    name: str
    file: str = ""
    line: int = 0
    wrapped_at: tuple[str, int] = ("", 0)
    under: str = ""


@dataclass(slots=True)
class _Record:
    signatures: dict[Signature, dict[str, Any]] = field(default_factory=dict)
    """Oldest first."""
    leaves: int = 0


class History:
    """What each function was compiled with; the value of a signature is where the call came from."""

    def __init__(self) -> None:
        self._records: OrderedDict[FunctionKey, _Record] = OrderedDict()

    def earlier(self, key: FunctionKey, now: Signature) -> Iterator[Signature]:
        """The signatures of a function: an equal one first, then the most recent first."""
        record = self._records.get(key)
        if record is not None:
            if now in record.signatures:
                yield now
            yield from reversed(record.signatures)

    def place(self, key: FunctionKey, signature: Signature) -> dict[str, Any]:
        """Where the compilation with this signature was called from."""
        record = self._records.get(key)
        return record.signatures.get(signature, {}) if record is not None else {}

    def add(self, key: FunctionKey, signature: Signature, called_from: dict[str, Any]) -> None:
        """A compilation took place."""
        record = self._records.get(key)
        if record is None:
            if len(self._records) >= FUNCTIONS:
                self._records.popitem(last=False)
            record = self._records[key] = _Record()
        self._records.move_to_end(key)
        if record.signatures.pop(signature, None) is None:
            record.leaves += len(signature.leaves)
        record.signatures[signature] = called_from
        while len(record.signatures) > 1 and (
            len(record.signatures) > SIGNATURES_A_FUNCTION or record.leaves > LEAVES_A_FUNCTION
        ):
            gone = next(iter(record.signatures))
            del record.signatures[gone]
            record.leaves -= len(gone.leaves)
