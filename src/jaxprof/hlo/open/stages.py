"""A module in its stages: the available texts of one program, from jaxpr to optimised HLO.

Nothing is read before it is needed, and reading blocks: screens do it in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from jaxprof.hlo.model import Module


class StageName(NamedTuple):
    """A stage: its name among the texts of a run, and its title."""

    name: str
    title: str
    short: str


STAGES: Final = (
    StageName("jaxpr", "jaxpr", "jaxpr"),
    StageName("stablehlo", "StableHLO", "SHLO"),
    StageName("hlo_before", "HLO (unoptimised)", "unopt"),
    StageName("hlo", "HLO", "HLO"),
)
"""In the order in which a program goes through them; `hlo_before` is the module before XLA's passes."""
HLO_STAGES: Final = frozenset({"hlo", "hlo_before"})


@dataclass(frozen=True, slots=True)
class ModuleStages:
    """One module in its stages."""

    key: str
    """A run's id, or a file's path with a module's number."""
    label: str
    stages: Mapping[str, Callable[[], str]]
    """How to read the text of each available stage. Raises JaxprofError."""
    number: int = 0
    """Its index among the modules in its HLO text."""
    is_part: bool = False
    """Whether there are others in that text."""
    file: str = ""
    """The name of the file that holds it, where that says more than the label."""
    device: str = ""
    """`cuda:0`; of a dump JAX's kind of the device that it was compiled for, where the dump says it."""
    beside: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """How to read what else XLA dumped of it: `assignment` (of buffers)."""
    recorded_seconds: float | None = None
    """Unix time at which it was recorded: newer source files may differ from what ran."""

    @property
    def title(self) -> str:
        """The label, with the file where that says more."""
        return f"{self.label} · {self.file}" if self.file else self.label

    def modules(self, stage: str = "hlo") -> Sequence[Module]:
        """All modules in the text of an HLO stage. Raises KeyError without that stage, JaxprofError where it cannot be
        read."""
        from jaxprof.hlo.open.parsed import modules  # a session whose HLO is not opened needs no reader of HLO

        return modules(self.stages[stage]())

    def module(self, stage: str = "hlo") -> Module:
        """Its own module in an HLO stage. Raises as `modules` does."""
        return self.own(self.modules(stage))

    def own(self, modules: Sequence[Module]) -> Module:
        """Its index among the modules of its text; the last where the file now has fewer."""
        return modules[min(self.number, len(modules) - 1)]

    def text(self, stage: str) -> str:
        """The text of a stage; of an HLO text with several modules its own part. Raises as `modules` does."""
        return self.module(stage).text if self.is_part and stage in HLO_STAGES else self.stages[stage]()

    def each(self) -> list[ModuleStages]:
        """One for each module of its HLO text, nearly always itself alone. Reads the text. Raises JaxprofError."""
        modules = self.modules()
        if len(modules) == 1:
            return [self]
        return [
            replace(self, key=f"{self.key}#{at}", label=module.name or f"module {at + 1}", number=at, is_part=True)
            for at, module in enumerate(modules)
        ]
