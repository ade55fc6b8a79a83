"""An HLO module as values: modules hold computations, computations hold instructions, each read when looked at.

The model is a view over the module's text. Opening one costs an index (`jaxprof.hlo.parse`); a computation is split
into instructions when these are first asked for, and an instruction's parts are read when they are asked for, so that
a module of a million instructions costs what is looked at. Values do not change once made. Names are XLA's own.
What cannot be read keeps its text and is listed in `Module.problems`; nothing here raises on a broken text.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.computation import Computation, Problem
from jaxprof.hlo.frames import Frame, Tables
from jaxprof.hlo.instruction import Instruction
from jaxprof.hlo.record import Metadata
from jaxprof.hlo.shape import Shape
from jaxprof.hlo.source import Source
from jaxprof.hlo.syntax import items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxprof.hlo.record import Record

__all__ = ["Computation", "Frame", "Instruction", "Metadata", "Module", "Problem", "Shape", "Source"]


class Module:
    """One HLO module: what XLA compiles, or has compiled, as a unit."""

    def __init__(
        self, name: str, source: Source, attributes: Mapping[str, str], span: tuple[int, int], tables: Tables
    ) -> None:
        self.name: Final = name
        """Empty for computations without a `HloModule` line."""
        self.source: Final = source
        self.attributes: Final = attributes
        """What the header line says after the name: name to raw text."""
        self.span = span
        """Where its text begins and ends in `source.text`."""
        self.tables: Final = tables
        self._computations: dict[str, Computation] = {}
        self._in_place: dict[int, str] = {}
        self._index_problems: list[Problem] = []
        self._remembered: dict[int, Record | None] = {}

    def __repr__(self) -> str:
        return f"<Module {self.name}: {len(self._computations)} computations>"

    # What follows with an underscore is for the reader that builds the module, which is then left as it is.

    def _end(self, end: int) -> None:
        self.span = (self.span[0], end)
        self.tables.end = min(self.tables.end, end)

    def _insert(self, before: Mapping[str, Sequence[Computation]]) -> None:
        written = list(self._computations.values())
        self._computations.clear()
        for computation in written:
            for extra in (*before.get(computation.name, ()), computation):
                self._computations[extra.name] = extra

    @property
    def computations(self) -> Mapping[str, Computation]:
        """By name, in the order of the text. They are read when they are looked at."""
        return self._computations

    def __getitem__(self, name: str) -> Computation:
        """The computation of that name. Raises KeyError."""
        return self._computations[name]

    def get(self, name: str) -> Computation | None:
        return self._computations.get(name)

    @cached_property
    def entry(self) -> Computation | None:
        """The computation that runs when the module does: the one marked ENTRY, or the last; None if it has none."""
        marked = [computation for computation in self._computations.values() if computation.is_entry]
        return marked[-1] if marked else next(reversed(self._computations.values()), None)

    @property
    def is_scheduled(self) -> bool:
        """The order of the instructions is the order in which they run."""
        return self.attributes.get("is_scheduled") == "true"

    @property
    def entry_layout(self) -> str:
        """The entry's parameters and results with their layouts, as written: `(f32[8]{0})->f32[8]{0}`."""
        raw = self.attributes.get("entry_computation_layout", "")
        return raw[1:-1] if raw.startswith("{") and raw.endswith("}") else raw

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """Outputs that reuse an input's buffer (donation), as written: `{0}: (1, {}, may-alias)`."""
        return tuple(items(self.attributes.get("input_output_alias", "{}")[1:-1]))

    @cached_property
    def callers(self) -> Mapping[str, tuple[Instruction, ...]]:
        """For each computation that is called, the instructions that call it. Reads the whole module once."""
        found: dict[str, list[Instruction]] = {}
        for computation in self._computations.values():
            for instruction in computation.instructions:
                for name in instruction.called:
                    found.setdefault(name, []).append(instruction)
        return {name: tuple(instructions) for name, instructions in found.items()}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every place that could not be read, in the order of the lines. Reads the whole module."""
        found = [*self._index_problems]
        for computation in self._computations.values():
            found += computation.problems
        return tuple(sorted(found, key=lambda problem: problem.line))

    def stack(self, instruction: Instruction) -> tuple[Frame, ...]:
        """Where `instruction` was called from, innermost frame first; empty where the text does not say.

        A module without tables has one frame at the most, from `source_file` and `source_line`.
        """
        metadata = instruction.metadata
        frames = self.tables.stack(metadata.stack_frame_id)
        if frames or not metadata.source_file:
            return frames
        return (Frame(metadata.source_file, "", metadata.source_line, metadata.source_column,
                      metadata.source_end_line, metadata.source_end_column),)  # fmt: skip

    @property
    def text(self) -> str:
        return self.source.text[slice(*self.span)]
