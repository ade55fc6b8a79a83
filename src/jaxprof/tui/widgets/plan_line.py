"""What Enter will do on Home, in one line: how many runs of what, where, and about how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from jaxprof.errors import JaxprofError
from jaxprof.safe_text import safe
from jaxprof.units import seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.tui.choices import Choices
    from jaxprof.workloads.model import WorkloadCard


class PlanLine(Static):
    """Empty until there is something that can be run."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def show(self, chosen: Sequence[WorkloadCard], choices: Choices) -> None:
        """Says what would be run, or which of the choices does not hold."""
        if chosen:
            self.update(_plan(chosen, choices), layout=False)


def _plan(chosen: Sequence[WorkloadCard], choices: Choices) -> Content:
    from jaxprof.worker import expected_seconds

    try:
        planned = choices.plan(chosen)
    except JaxprofError as error:
        return Content.styled(f" {safe(error.what)}", "$error")
    what = chosen[0].name if len(chosen) == 1 else f"{len(chosen)} workloads"
    runs = f"{len(planned)} run{'s' if len(planned) != 1 else ''}"
    return Content.assemble(
        (" ⏎ ", "bold $footer-key-foreground"),
        (safe(what), "bold"),
        (f" · {runs} · {choices.preset} sizes · on {', '.join(choices.devices)} · ", "$text-muted"),
        (f"about {seconds(expected_seconds(planned), 2)} or more", "$text-muted"),
    )
