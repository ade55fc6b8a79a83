"""The dialogs of the Home screen: parameters of a workload, a user's own workload, devices to compile a workload for.

Each field is parsed as for a run, and shows its error below.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from jaxprof.errors import JaxprofError, UsageError
from jaxprof.files import with_home
from jaxprof.text import safe, safe_lines
from jaxprof.tui.kit.dialogs import Dialog, FormDialog, form_keys
from jaxprof.tui.kit.threads import in_thread
from jaxprof.workloads.model import WorkloadInfo
from jaxprof.workloads.specs import split_shard

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.runner import Interpreter, PlannedRun
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
            from jaxprof.runner import read_sweep

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


Added = tuple[list[WorkloadInfo], tuple[str, ...]]
"""The workloads of a user's function or file, and the argument specs that they need."""


class OwnWorkload(Dialog[Added], keys="form"):
    """Asks for a user's function, and for the argument specs that it needs."""

    def __init__(self, interpreter: Callable[[], Interpreter], folder: Path) -> None:
        super().__init__()
        self._interpreter, self._folder = interpreter, folder
        self._waiting = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide-dialog") as box:
            box.border_title = "Add a function"
            box.border_subtitle = form_keys("adds")
            target_hint = "path/to/file.py:function or package.module:function"
            yield from self.field("target", "target", "", target_hint, "train.py:step")
            arguments_hint = "one spec per argument; empty if @jaxprof.workload declares them"
            yield from self.field("arguments", "arguments", "", arguments_hint, "f32[1024,1024] i32[8]")
            yield Static("", id="said", markup=False, classes="dialog-said")
            yield from self.buttons("Add")

    def on_input_submitted(self) -> None:
        self._ask()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "take":
            self._ask()
        else:
            self.dismiss(None)

    def _ask(self) -> None:
        if self._waiting:
            return
        target = self.query_one("#target", Input).value.strip()
        try:
            target = whole_target(target, self._folder)
        except UsageError as error:
            self._refuse(error)
            return
        arguments = tuple(split_specs(self.query_one("#arguments", Input).value))
        self._waiting = True
        message = self.query_one("#said", Static)
        message.remove_class("wrong")
        message.update("importing it in a child process…")
        from jaxprof.runner import describe

        in_thread(
            self,
            lambda: describe(self._interpreter(), [target], arguments),
            "describe",
            then=partial(self._take_infos, arguments),
            failed=self._refuse,
        )

    def _take_infos(self, arguments: tuple[str, ...], infos: list[WorkloadInfo]) -> None:
        self.dismiss((infos, arguments))  # not returned: a message handler must not await it

    def _refuse(self, error: JaxprofError) -> None:
        self._waiting = False
        message = self.query_one("#said", Static)
        message.add_class("wrong")
        message.update("\n".join(safe_lines(str(error))))


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


EXPLANATION = "Compiles for these devices without running anything. Times are lower bounds from the vendors' figures."
HINTS = {
    "devices": "h100, a100:8, 4xh100:8, tpu-v5e, tpu-v6e:4x4; separate several with commas",
    "mesh": "data=4,model=2: for code that shards by axis names; empty if the code makes its own mesh",
    "shard": "x=data,- or params/*/kernel=-,model: an input's split, one entry per dimension; separate several with ;",
}


class CompileForDialog(FormDialog["list[PlannedRun]"]):
    """Asks for the devices, the mesh, and how inputs are split over it, in the syntax of the command line (`--for`,
    `--mesh`, `--shard`)."""

    def __init__(self, info: WorkloadInfo, choices: HomeOptions) -> None:
        super().__init__()
        self._info = info
        self._choices = choices

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide-dialog", can_focus=False) as box:
            box.border_title = Content(safe(f"Compile {self._info.name} for"))
            box.border_subtitle = form_keys("compiles")
            yield Static(EXPLANATION, markup=False, classes="dialog-text")
            yield from self.field("devices", "devices", "h100", HINTS["devices"])
            yield from self.field("mesh", "mesh", "", HINTS["mesh"], "data=4,model=2")
            yield from self.field("shard", "shard", "", HINTS["shard"], "x=data,-")
            yield from self.buttons("Compile")

    def read(self, name: str, text: str) -> str:
        from jaxprof.devices.targets import parse_mesh, parse_targets

        if name == "devices":
            targets = parse_targets(text)
            many = [f"{target.label} has {target.devices} devices" for target in targets if target.devices > 1]
            return ", ".join(many) or HINTS["devices"]
        if name == "mesh" and text:
            parse_mesh(text)
        for entry in _shard_entries(text) if name == "shard" else ():
            split_shard(entry)
        return HINTS[name]

    def filled(self) -> list[PlannedRun]:
        from jaxprof.devices.targets import parse_mesh, parse_targets
        from jaxprof.runner import PlanOptions, plan_compiles

        chosen = self._choices.of(self._info.name)
        options = PlanOptions(preset=self._choices.preset, settings=chosen.settings, arguments=chosen.arguments)
        axes = self.value("mesh")
        return plan_compiles(
            self._info,
            "",
            options,
            parse_targets(self.value("devices")),
            _shard_entries(self.value("shard")),
            parse_mesh(axes) if axes else {},
        )

    def misfit(self, error: JaxprofError) -> None:
        self.refuse("mesh" if self.value("mesh") else "devices", error)


def _shard_entries(text: str) -> list[str]:
    """Return the entries of the field, each as `--shard` takes it."""
    return [part.strip() for part in text.split(";") if part.strip()]


def ask_devices(app: Profiler, info: WorkloadInfo, choices: HomeOptions) -> None:
    """Ask for devices that are not here, and queue the compilation for them."""
    CompileForDialog(info, choices).ask(app, app.start_runs)


def ask_parameters(app: Profiler, info: WorkloadInfo, choices: HomeOptions, changed: Callable[[], object]) -> None:
    """Ask for sizes, sweep, time budget and launches of a workload, and store them in `choices`."""

    def take(answer: ChosenParameters) -> None:
        chosen = choices.of(info.name)
        chosen.settings, chosen.sweep = answer.settings, answer.sweep
        choices.budget_seconds, choices.launches = answer.budget_seconds, answer.launches
        changed()

    ParametersDialog(info, choices).ask(app, take)


def ask_own(app: Profiler, choices: HomeOptions, take: Callable[[list[WorkloadInfo]], object]) -> None:
    """Ask for a user's function, and store its argument specs in `choices`."""

    def keep(added: Added) -> None:
        infos, arguments = added
        for info in infos:
            choices.of(info.name).arguments = arguments
        take(infos)

    OwnWorkload(app.live.interpreter, Path.cwd()).ask(app, keep)
