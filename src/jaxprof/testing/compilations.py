"""What a test compiles, function by function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jaxprof.events import Compiled
from jaxprof.recorder.compiles.ledger import Ledger
from jaxprof.recorder.compiles.signature import FunctionKey


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation of a test."""

    key: FunctionKey
    """Compilations of the same function, wrapped in the same way, have the same key."""
    event: Compiled


class CompileWatch:
    """The compilations of this process from `start` to `stop`."""

    def __init__(self) -> None:
        self.seen: list[Compilation] = []
        self.watching = False
        self._ledger: Ledger | None = None

    def start(self) -> None:
        """Empties JAX's caches, and begins. Raises ImportError without jax."""
        import jax

        jax.clear_caches()
        self._ledger = Ledger(lambda event: None)
        self._ledger.on_row = self._take
        self._ledger.attach()
        self.watching = True

    def stop(self) -> None:
        """Ends. A second call does nothing."""
        if self.watching and self._ledger is not None:
            self.watching = False
            self._ledger.finish()
            self._ledger.detach()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is compiled inside is not counted."""
        if not self.watching or self._ledger is None:
            yield
            return
        self._ledger.detach()
        try:
            yield
        finally:
            self._ledger.attach()

    def by_function(self) -> dict[FunctionKey, list[Compiled]]:
        """The compilations of the test's own functions: neither single operations nor functions of libraries."""
        grouped: dict[FunctionKey, list[Compiled]] = {}
        for compilation in self.seen:
            if not compilation.event.op_by_op and not compilation.event.library:
                grouped.setdefault(compilation.key, []).append(compilation.event)
        return grouped

    def _take(self, key: FunctionKey, event: Compiled) -> None:
        if event.compile_seconds is not None:
            self.seen.append(Compilation(key, event))
