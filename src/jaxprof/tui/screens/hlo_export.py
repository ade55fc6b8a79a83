"""What the HLO screen can write to files: asks what, then where, and tells what prevented it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.safe_text import safe
from jaxprof.tui.dialogs.choose import Choose, Option
from jaxprof.tui.dialogs.save_as import SaveAs
from jaxprof.tui.programs.export import kernel_graph, kernels_csv, write

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Kernel
    from jaxprof.hlo.model import Module
    from jaxprof.tui.app import JaxprofApp
    from jaxprof.tui.programs.ranking import Ranked

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Export:
    """Something that can be written."""

    option: Option
    file_name: str
    make: Callable[[], str]


def exports(module: Module, kernel: Kernel | None, rows: Sequence[Ranked]) -> list[Export]:
    """The table as it stands, and the kernel under the cursor as graphs."""
    found = [Export(Option("the table as CSV", "its rows as they stand"), "kernels.csv", partial(kernels_csv, rows))]
    if kernel is None:
        return found
    name = "".join(character if character.isalnum() or character in "._-" else "_" for character in kernel.name)
    return found + [
        Export(
            Option(f"{words} as {form.upper()}", kernel.name),
            f"{name[:_LONGEST_NAME]}-{what}.{form}",
            partial(kernel_graph, module, kernel, what, form),
        )
        for what, words in (("inside", "what is inside"), ("near", "with its neighbours"))
        for form in ("svg", "dot")
    ]


def ask_and_write(app: JaxprofApp, found: Sequence[Export]) -> None:
    """Asks which of them, then for a place in the current folder, and writes it."""

    def chosen(number: int | None) -> None:
        if number is not None:
            export = found[number]
            dialog = SaveAs("Write to a file", export.option.label, "", Path.cwd() / export.file_name)
            app.push_screen(dialog, partial(_write, app, export))

    app.push_screen(Choose("Write to a file", [export.option for export in found]), chosen)


def _write(app: JaxprofApp, export: Export, path: Path | None) -> None:
    if path is None:
        return
    place = Path.cwd() / path
    place = place / export.file_name if place.is_dir() else place
    try:
        write(place, export.make())
    except JaxprofError as error:
        app.tell(error)
    else:
        app.notify(safe(str(place)), title="Written", markup=False)
