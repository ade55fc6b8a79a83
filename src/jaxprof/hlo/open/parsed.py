"""One parse of a text per process: screens, reports and findings of one run all use the same module.

A text is its own key, and needs no digest: Python hashes a string once, equality is exact, and the module holds the
text anyway. Modules that are still referenced are found by weak references, whatever their size. A few unreferenced
ones are kept as well, up to a budget: a report requests the same module several times and holds no reference in
between.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from jaxprof.hlo.read import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.hlo.model import Module

KEPT_CHARACTERS: Final = 16 << 20
"""Total characters of the texts whose unreferenced modules are kept. What is read of a module takes several times that.
"""
KEPT_TEXTS: Final = 64


class ParsedTexts:
    """Modules of texts, each parsed once while it is referenced or kept. Safe for any thread."""

    def __init__(self, kept_characters: int = KEPT_CHARACTERS) -> None:
        self._most = kept_characters
        self._lock = Lock()
        """Held also while a text is parsed: that is an index of it, and a thread that needs the same one waits."""
        self._alive: WeakValueDictionary[str, Module] = WeakValueDictionary()
        """First module of each text; `Module.siblings` leads to the others."""
        self._kept: OrderedDict[str, Module] = OrderedDict()
        """Kept modules, the latest last."""

    def modules(self, text: str) -> Sequence[Module]:
        """Return the modules in `text`, in order. Raises HloError as `parse.modules` does."""
        with self._lock:
            first = self._alive.get(text)
            if first is None:
                first = self._alive[text] = parse.modules(text)[0]
            self._keep(text, first)
        return first.siblings

    def release(self) -> None:
        """Drop all kept modules, which frees the unreferenced ones."""
        self._kept = OrderedDict()

    def _keep(self, text: str, module: Module) -> None:
        """Keep a module as the latest. A module above the budget is kept until another one is requested."""
        kept = self._kept
        kept[text] = module
        kept.move_to_end(text)
        characters = sum(map(len, kept))
        while len(kept) > 1 and (characters > self._most or len(kept) > KEPT_TEXTS):
            characters -= len(kept.popitem(last=False)[0])


_TEXTS: Final = ParsedTexts()


modules, release = _TEXTS.modules, _TEXTS.release
"""Texts of this process: parsed once, and released when another session is opened."""
