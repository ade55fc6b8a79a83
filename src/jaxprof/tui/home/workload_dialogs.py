"""The dialogs of the Start screen: parameters of a workload, a user's own workload, devices to compile a workload for.

Each field is parsed as for a run, and shows its error below.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input

from jaxprof.errors import JaxprofError, UsageError
from jaxprof.files import with_home
from jaxprof.text import safe
from jaxprof.tui.kit.dialogs import AskText, FormDialog, form_keys
from jaxprof.tui.kit.threads import in_thread
from jaxprof.workloads.model import WorkloadInfo

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.tui.home.plan_options import HomeOptions
    from jaxprof.tui.profiler import Profiler
    from jaxprof.workloads.model import Parameter


@dataclass(frozen=True, slots=True)
class ChosenParameters:
    """The values that the user entered for a workload."""

    settings: dict[str, str]
    """Parameters that differ from the preset."""
    sweep: str
    budget_seconds: float
    launches: int


_BUDGET_HINT = "seconds of sampling per run, for all workloads"
_SWEEP_HINT = "n=1e3..1e7, n=1e3..1e7:12 or n=100,200,400"
_MOST_LAUNCHES = 100


class ParametersDialog(FormDialog[ChosenParameters]):
    """One line per parameter, then the sweep, then the time budget of each run and its launches."""

    def __init__(self, info: WorkloadInfo, choices: HomeOptions) -> None:
        super().__init__()
        self._info = info
        self._choices = choices
        self._preset = {name: _value_text(value) for name, value in info.presets.get(choices.preset, {}).items()}

    def compose(self) -> ComposeResult:
        chosen = self._choices.of(self._info.name)
        with VerticalScroll(classes="dialog wide-dialog", can_focus=False) as box:
            box.border_title = Content(safe(f"Parameters of {self._info.name}"))
            box.border_subtitle = form_keys("applies")
            for index, parameter in enumerate(self._info.parameters):
                value = chosen.settings.get(parameter.name, self._preset.get(parameter.name, ""))
                yield from self.field(f"p{index}", parameter.name, value, _parameter_hint(parameter))
            if self._info.parameters:
                yield from self.field("sweep", "sweep", chosen.sweep, _SWEEP_HINT)
            budget = f"{self._choices.budget_seconds:g}"
            yield from self.field("budget", "budget", budget, _BUDGET_HINT)
            launches = str(self._choices.launches)
            yield from self.field("launches", "launches", launches, _launches_hint(self._choices.launches))
            yield from self.buttons("Apply", "Reset")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "other":  # `FormDialog` handles the other buttons: Textual calls both handlers
            self._reset()

    def _reset(self) -> None:
        for index, parameter in enumerate(self._info.parameters):
            self.query_one(f"#p{index}", Input).value = self._preset.get(parameter.name, "")
        for field in self.query("#sweep").results(Input):
            field.value = ""
        self.query(Input).first().focus()

    def filled(self) -> ChosenParameters:
        settings = {}
        for index, parameter in enumerate(self._info.parameters):
            text = self.value(f"p{index}")
            if text != self._preset.get(parameter.name, ""):
                settings[parameter.name] = text
        sweep = self.value("sweep") if self._info.parameters else ""
        return ChosenParameters(settings, sweep, float(self.value("budget")), int(self.value("launches")))

    def read(self, name: str, text: str) -> str:
        if name == "budget":
            try:
                seconds = float(text)
            except ValueError:
                raise UsageError(f"the budget must be a number of seconds, not {text!r}", "2 is the default.") from None
            if not 0 < seconds < 1e6:
                raise UsageError("the budget must be above 0 seconds", "2 is the default.")
            return _BUDGET_HINT
        if name == "launches":
            return _launches_hint(_launches(text))
        if name == "sweep":
            if not text:
                return _SWEEP_HINT
            from jaxprof.runner.planning import read_sweep

            values = read_sweep(text, self._info.parameters).values
            return f"{len(values)} sizes: " + ", ".join(_value_text(value) for value in values)
        parameter = self._info.parameters[int(name[1:])]
        parameter.read(text)
        return _parameter_hint(parameter)


def _launches(text: str) -> int:
    """Return a number of launches. Raises UsageError."""
    advice = f"Give 1 to {_MOST_LAUNCHES}; 3 is the default."
    try:
        launches = int(text)
    except ValueError:
        raise UsageError(f"launches must be a whole number, not {text!r}", advice) from None
    if not 1 <= launches <= _MOST_LAUNCHES:
        raise UsageError(f"{launches} launches are too {'few' if launches < 1 else 'many'}", advice)
    return launches


def _launches_hint(launches: int) -> str:
    if launches == 1:
        return "one process per run: variation between processes is not measured"
    return "fresh processes of each run, which share its budget"


def _parameter_hint(parameter: Parameter) -> str:
    bounds = []
    if parameter.choices:
        bounds.append(" | ".join(parameter.choices))
    if parameter.minimum is not None:
        bounds.append(f"from {parameter.minimum:g}")
    if parameter.maximum is not None:
        bounds.append(f"to {parameter.maximum:g}")
    return parameter.description + (f" ({', '.join(bounds)})" if bounds else "")


def _value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def whole_target(text: str, folder: Path) -> str:
    """Return the target in `text`, a function or all functions of a file; a relative path starts at `folder`.

    Raises UsageError.
    """
    if not text:
        raise UsageError("no target is given", "Give path/to/file.py:function or package.module:function.")
    place, colon, function = (text, "", "") if text.endswith(".py") else text.rpartition(":")
    if not place.endswith(".py") and not (colon and function.isidentifier()):
        raise UsageError(f"{text!r} names no function", "Put its name after a colon: train.py:step.")
    if not place.endswith(".py"):
        return text
    path = (folder / with_home(place)).resolve()
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}", "A relative path starts at the folder in which jaxprof was started."
        )
    return f"{path}{colon}{function}"


def split_specs(text: str) -> list[str]:
    """Return the specs in `text`, separated by blanks, semicolons, or commas outside brackets."""
    return [part for part in re.split(r"[;\s]+|,(?![^\[]*\])", text) if part]


def ask_devices(app: Profiler, info: WorkloadInfo, choices: HomeOptions) -> None:
    """Ask for devices that are not here, and queue the compilation for them."""
    from jaxprof.devices.targets import parse_targets
    from jaxprof.runner.planning import PlanOptions, plan_compiles

    chosen = choices.of(info.name)
    options = PlanOptions(preset=choices.preset, settings=chosen.settings, arguments=chosen.arguments)
    explanation = (
        "Compiles for these devices without running anything. Times are lower bounds from the vendors' figures."
    )
    devices = "h100, a100:8, 4xh100:8, tpu-v5e, tpu-v6e:4x4; several with commas"
    dialog = AskText(f"Compile {info.name} for", explanation, "h100", "Enter compiles", devices)
    dialog.ask_until(app, lambda text: app.start_runs(plan_compiles(info, "", options, parse_targets(text))))


def ask_parameters(app: Profiler, info: WorkloadInfo, choices: HomeOptions, changed: Callable[[], object]) -> None:
    """Ask for sizes, sweep, time budget and launches of a workload, and store them in `choices`."""

    def take(answer: ChosenParameters) -> None:
        chosen = choices.of(info.name)
        chosen.settings, chosen.sweep = answer.settings, answer.sweep
        choices.budget_seconds, choices.launches = answer.budget_seconds, answer.launches
        changed()

    ParametersDialog(info, choices).ask(app, take)


def ask_own(app: Profiler, choices: HomeOptions, take: Callable[[list[WorkloadInfo]], object]) -> None:
    """Ask for a user's function and the argument specs that it needs, import it in a child process, and store the specs
    in `choices`."""
    words = "path/to/file.py:function or package.module:function, then one spec per argument."
    advice = "No spec is needed if @jaxprof.workload declares them."

    def add(text: str) -> None:
        target, _, specs = text.partition(" ")
        target, arguments = whole_target(target, Path.cwd()), tuple(split_specs(specs))

        def keep(infos: list[WorkloadInfo]) -> None:
            for info in infos:
                choices.of(info.name).arguments = arguments
            take(infos)

        def refuse(error: JaxprofError) -> None:
            app.tell(error)
            ask(text)

        from jaxprof.runner.engine_process import describe

        app.say("Importing it in a child process…", target)
        in_thread(
            app, lambda: describe(app.live.interpreter(), [target], arguments), "describe", then=keep, failed=refuse
        )

    def ask(value: str) -> None:
        dialog = AskText("Add a function", words, value, "Enter adds", advice, "train.py:step f32[1024,1024] i32[8]")
        dialog.ask_until(app, add)

    ask("")
