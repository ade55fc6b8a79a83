"""A module in its stages: the available texts of one program, from jaxpr to optimised HLO.

Nothing is read before it is needed, and reading blocks, so screens do it in threads. A text of HLO is parsed once per
process: screens, reports and findings of one run all use the same module. A text is its own key, and needs no digest:
Python hashes a string once, equality is exact, and the module holds the text anyway. Modules that are still referenced
are found by weak references, whatever their size. A few unreferenced ones are kept as well, up to a budget: a report
requests the same module several times and holds no reference in between.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.hlo.text.model import Module


class StageName(NamedTuple):
    """A stage: its name among the texts of a run, and its title."""

    name: str
    title: str
    short: str


STAGES = (
    StageName("jaxpr", "jaxpr", "jaxpr"),
    StageName("stablehlo", "StableHLO", "SHLO"),
    StageName("hlo_before", "HLO (unoptimised)", "unopt"),
    StageName("hlo", "HLO", "HLO"),
)
"""Stages in the order in which a program goes through them; `hlo_before` is the module before XLA's passes."""
HLO_STAGES = frozenset({"hlo", "hlo_before"})


_PLATFORMS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu", "rocm": "gpu", "tpu": "tpu"}
"""Platforms of HLO by those of devices."""


@frozen
class ModuleStages:
    key: str
    """A run's id, or a file's path with a module's number."""
    label: str
    stages: Mapping[str, Callable[[], str]]
    """Function that reads the text of each available stage. Raises JaxprofError."""
    number: int = 0
    """Index among the modules in the HLO text."""
    is_part: bool = False
    """Whether the HLO text has other modules."""
    file: str = ""
    """Name of the file that holds the module, if that says more than the label."""
    device: str = ""
    """`cuda:0`; for a dump JAX's kind of the device that it was compiled for, if the dump says it."""
    assignment: Callable[[], str] | None = None
    """Function that reads the assignment of buffers that XLA dumped beside the module; None without one."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Digests of source files at the time of the recording, by path."""

    @property
    def title(self) -> str:
        """The label, with the file if that says more."""
        return f"{self.label} · {self.file}" if self.file else self.label

    def modules(self, stage: str = "hlo") -> Sequence[Module]:
        """Return all modules in the text of an HLO stage. Raises KeyError without that stage, JaxprofError if it cannot
        be read."""
        return modules(self.stages[stage](), self.device)

    def module(self, stage: str = "hlo") -> Module:
        """Return this module in an HLO stage. Raises as `modules` does."""
        return self.own(self.modules(stage))

    def own(self, modules: Sequence[Module]) -> Module:
        """Return this module among the modules of its text; the last if the file now has fewer."""
        return modules[min(self.number, len(modules) - 1)]

    def text(self, stage: str) -> str:
        """Return the text of a stage; its own part of an HLO text with several modules. Raises as `modules` does."""
        return self.module(stage).text if self.is_part and stage in HLO_STAGES else self.stages[stage]()

    def each(self) -> list[ModuleStages]:
        """Return one value for each module of the HLO text, nearly always this one alone. Reads the text. Raises
        JaxprofError."""
        modules = self.modules()
        if len(modules) == 1:
            return [self]
        return [
            replace(self, key=f"{self.key}#{at}", label=module.name or f"module {at + 1}", number=at, is_part=True)
            for at, module in enumerate(modules)
        ]


KEPT_CHARACTERS = 16 << 20
"""Total characters of the texts whose unreferenced modules are kept. What is read of a module takes several times that.
"""
KEPT_TEXTS = 64


class ParsedTexts:
    """Modules of texts, each parsed once while it is referenced or kept. Safe for any thread."""

    def __init__(self, kept_characters: int = KEPT_CHARACTERS) -> None:
        self._most = kept_characters
        self._lock = Lock()
        """Held also while a text is parsed: that is an index of it, and a thread that needs the same one waits."""
        self._alive: WeakValueDictionary[tuple[str, str], Module] = WeakValueDictionary()
        """First module of each text, with the platform of its device; `Module.siblings` leads to the others."""
        self._kept: OrderedDict[tuple[str, str], Module] = OrderedDict()
        """Kept modules, the latest last."""

    def modules(self, text: str, device: str = "") -> Sequence[Module]:
        """Return the modules in `text`, in order. `device`: what they were compiled for, such as `cuda:0`, if that is
        known. Raises HloError as `parse.modules` does."""
        from jaxprof.hlo.text import parse  # a session whose HLO is not opened needs no reader of HLO

        with self._lock:
            key = text, _PLATFORMS.get(device.partition(":")[0], "")
            first = self._alive.get(key)
            if first is None:
                first = self._alive[key] = parse.modules(text)[0]
                for each in first.siblings:
                    each.platform = key[1]
            # A module above the budget is kept until another one is requested.
            kept = self._kept
            kept[key] = first
            kept.move_to_end(key)
            characters = sum(len(text) for text, _ in kept)
            while len(kept) > 1 and (characters > self._most or len(kept) > KEPT_TEXTS):
                characters -= len(kept.popitem(last=False)[0][0])
        return first.siblings

    def release(self) -> None:
        """Drop all kept modules, which frees the unreferenced ones."""
        self._kept = OrderedDict()


_TEXTS = ParsedTexts()


modules, release = _TEXTS.modules, _TEXTS.release
"""Texts of this process: parsed once, and released when another session is opened."""
