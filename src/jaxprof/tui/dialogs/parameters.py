"""The parameters of one workload: each is read as it will be run, and what cannot be read is said beneath it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from jaxprof.errors import JaxprofError, UsageError
from jaxprof.safe_text import safe
from jaxprof.tui.dialogs.base import Dialog

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.tui.choices import Choices
    from jaxprof.workloads.model import Parameter, WorkloadCard


@dataclass(frozen=True, slots=True)
class Answer:
    """What was set."""

    settings: dict[str, str]
    """Only what differs from the preset."""
    sweep: str
    budget_seconds: float


class ParametersDialog(Dialog[Answer | None]):
    """One line a parameter; then the sweep, and the time budget of each run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", tooltip="Leave everything as it was", id="parameters.leave"),
        Binding("ctrl+r", "reset", "Reset", tooltip="Back to the preset's values", id="parameters.reset"),
        Binding("down", "app.focus_next", "Next", show=False, id="parameters.next"),
        Binding("up", "app.focus_previous", "Before", show=False, id="parameters.before"),
    ]

    def __init__(self, card: WorkloadCard, choices: Choices) -> None:
        super().__init__()
        self._card = card
        self._choices = choices
        self._preset = {name: _shown(value) for name, value in card.presets.get(choices.preset, {}).items()}

    def compose(self) -> ComposeResult:
        chosen = self._choices.of(self._card.name)
        with VerticalScroll(classes="dialog wide-dialog", can_focus=False) as box:
            box.border_title = Content(safe(f"Parameters of {self._card.name}"))
            box.border_subtitle = "Enter takes, ^r resets, Esc leaves"
            for index, parameter in enumerate(self._card.parameters):
                value = chosen.settings.get(parameter.name, self._preset.get(parameter.name, ""))
                yield from self._field(f"p{index}", parameter.name, value, _hint(parameter))
            if self._card.parameters:
                yield from self._field("sweep", "sweep", chosen.sweep, "n=1e3..1e7, n=1e3..1e7:12 or n=100,200,400")
            budget = f"{self._choices.budget_seconds:g}"
            yield from self._field(
                "budget", "budget", budget, "seconds for which each run is sampled, for all workloads"
            )
            with Horizontal(classes="dialog-buttons"):
                yield Button("Leave", id="leave", compact=True)
                yield Button("Take", id="take", variant="primary", compact=True)

    def _field(self, name: str, label: str, value: str, hint: str) -> ComposeResult:
        with Horizontal(classes="field"):
            yield Label(safe(label), markup=False, classes="field-name")
            yield Input(value, id=name, compact=True)
        yield Static(safe(hint), id=f"{name}-hint", markup=False, classes="field-hint")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._check(str(event.input.id))

    def on_input_submitted(self) -> None:
        self._take()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "take":
            self._take()
        else:
            self.dismiss(None)

    def action_leave(self) -> None:
        """Leaves everything as it was."""
        self.dismiss(None)

    def action_reset(self) -> None:
        """The preset's values, and no sweep."""
        for index, parameter in enumerate(self._card.parameters):
            self.query_one(f"#p{index}", Input).value = self._preset.get(parameter.name, "")
        for field in self.query("#sweep").results(Input):
            field.value = ""

    def _take(self) -> None:
        """Gives the answer, if everything in it can be read; otherwise goes to the first that cannot."""
        for field in self.query(Input):
            if not self._check(str(field.id)):
                field.focus()
                return
        settings = {}
        for index, parameter in enumerate(self._card.parameters):
            text = self._value(f"p{index}")
            if text != self._preset.get(parameter.name, ""):
                settings[parameter.name] = text
        sweep = self._value("sweep") if self._card.parameters else ""
        self.dismiss(Answer(settings, sweep, float(self._value("budget"))))

    def _value(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def _check(self, name: str) -> bool:
        """Whether that field can be read; what is wrong stands in the place of its hint."""
        hint = self.query_one(f"#{name}-hint", Static)
        try:
            usual = self._read(name, self._value(name))
        except JaxprofError as error:
            hint.update(safe(f"{error.what}. {error.mend}"))
            hint.add_class("wrong")
            return False
        hint.update(safe(usual))
        hint.remove_class("wrong")
        return True

    def _read(self, name: str, text: str) -> str:
        """The hint of a field that can be read. Raises UsageError."""
        if name == "budget":
            try:
                seconds = float(text)
            except ValueError:
                raise UsageError(f"the budget wants a number of seconds, not {text!r}", "2 is the default.") from None
            if not 0 < seconds < 1e6:
                raise UsageError("the budget must be above 0 seconds", "2 is the default.")
            return "seconds for which each run is sampled, for all workloads"
        if name == "sweep":
            if not text:
                return "n=1e3..1e7, n=1e3..1e7:12 or n=100,200,400"
            from jaxprof.worker import read_sweep

            values = read_sweep(text, self._card.parameters).values
            return f"{len(values)} sizes: " + ", ".join(_shown(value) for value in values)
        parameter = self._card.parameters[int(name[1:])]
        parameter.read(text)
        return _hint(parameter)


def _hint(parameter: Parameter) -> str:
    bounds = []
    if parameter.choices:
        bounds.append(" | ".join(parameter.choices))
    if parameter.minimum is not None:
        bounds.append(f"from {parameter.minimum:g}")
    if parameter.maximum is not None:
        bounds.append(f"to {parameter.maximum:g}")
    return parameter.description + (f" ({', '.join(bounds)})" if bounds else "")


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
