"""Compile a workload for devices that are not here: asked for on Home, shown on HLO once it is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.tui.dialogs.ask_text import AskText

if TYPE_CHECKING:
    from jaxprof.tui.app import JaxprofApp
    from jaxprof.tui.choices import Choices
    from jaxprof.workloads.model import WorkloadCard

EXPLANATION = (
    "Lowers and compiles it there, runs nothing: kernels, costs and least times are estimates. "
    "One device or several: h100, a100:8, 4xh100:8, tpu-v5e, tpu-v6e:4x4; separated by commas."
)


def ask(app: JaxprofApp, card: WorkloadCard, choices: Choices) -> None:
    """Opens the dialog; what it gives joins the queue of runs. A wrong name is told with the near ones."""

    def answered(text: str | None) -> None:
        if text is None:
            return
        from jaxprof.targets import parse_targets
        from jaxprof.worker import Choice, plan_compiles

        chosen = choices.of(card.name)
        choice = Choice(preset=choices.preset, settings=chosen.settings, arguments=chosen.arguments)
        try:
            planned = plan_compiles(card, "", choice, parse_targets(text))
        except JaxprofError as error:
            app.tell(error)
            return
        app.start_runs(planned)

    app.push_screen(AskText(f"Compile {card.name} for", EXPLANATION, "h100", "Enter compiles"), answered)
