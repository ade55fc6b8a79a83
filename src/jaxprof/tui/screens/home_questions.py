"""What Home asks: the parameters of a workload, and a function of the user's. Dialogs are made when asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.tui.app import JaxprofApp
    from jaxprof.tui.choices import Choices
    from jaxprof.tui.dialogs.parameters import Answer
    from jaxprof.workloads.model import WorkloadCard


def ask_parameters(app: JaxprofApp, card: WorkloadCard, choices: Choices, changed: Callable[[], object]) -> None:
    """Sizes, sweep and time budget of a workload; the answer is put into `choices`."""
    from jaxprof.tui.dialogs.parameters import ParametersDialog

    def answered(answer: Answer | None) -> None:
        if answer is None:
            return
        chosen = choices.of(card.name)
        chosen.settings, chosen.sweep = answer.settings, answer.sweep
        choices.budget_seconds = answer.budget_seconds
        changed()

    app.push_screen(ParametersDialog(card, choices), answered)


def ask_own(app: JaxprofApp, choices: Choices, take: Callable[[list[WorkloadCard]], object]) -> None:
    """A function of the user's in a file; what it is to be called with is put into `choices`."""
    from jaxprof.tui.dialogs.own_workload import OwnWorkload

    def answered(added: tuple[list[WorkloadCard], tuple[str, ...]] | None) -> None:
        if added is None:
            return
        cards, arguments = added
        for card in cards:
            choices.of(card.name).arguments = arguments
        take(cards)

    app.push_screen(OwnWorkload(app.live.interpreter, Path.cwd()), answered)
