"""The programs that can be opened: those of the session, and those of the files that were opened beside it."""

from __future__ import annotations

from collections.abc import Sequence

from jaxprof.tui.programs.program import Program


class Shelf:
    """Knows the programs and which of them comes first; which is open is the screen's to know."""

    def __init__(self) -> None:
        self.of_session: Sequence[Program] = ()
        self._of_files: list[Program] = []

    def add_files(self, programs: Sequence[Program]) -> None:
        """Puts the programs of a file behind the others; a file that was opened before is there once."""
        keys = {program.key for program in programs}
        self._of_files = [program for program in self._of_files if program.key not in keys] + list(programs)

    @property
    def all(self) -> list[Program]:
        """Those of the session, then those of files."""
        return [*self.of_session, *self._of_files]

    def of_run(self, key: str) -> Program | None:
        """The program of that run of the session."""
        return next((program for program in self.of_session if program.key == key), None)

    def first(self, wanted: str) -> Program | None:
        """The run that the other screens show, else the first that was compiled, else the first of the files."""
        named = [program for program in self.of_session if program.key == wanted]
        with_hlo = [program for program in self.of_session if "hlo" in program.stages]
        return next(iter([*named, *with_hlo, *self.all]), None)
