"""The dialogs of the Start screen: parameters of a workload, a user's own workload, devices to compile a workload for.

Each field is parsed as for a run, and shows its error below.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input

from jaxprof.errors import JaxprofError, UsageError, unknown_name
from jaxprof.files import with_home
from jaxprof.text import safe
from jaxprof.tui.kit.dialogs import AskText, FormDialog, form_keys
from jaxprof.tui.kit.threads import in_thread
from jaxprof.workloads.model import Parameter, WorkloadInfo

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.tui.home.plan_options import HomeOptions
    from jaxprof.tui.profiler import Profiler


_BUDGET = Parameter(
    name="budget", description="seconds of sampling per run, for all workloads", kind="float", minimum=1e-3, maximum=1e6
)
_LAUNCHES = Parameter(
    name="launches", description="fresh processes of each run, which share its budget", minimum=1, maximum=100
)
_ONE_LAUNCH = "one process per run: variation between processes is not measured"
_SWEEP_HINT = "n=1e3..1e7, n=1e3..1e7:12 or n=100,200,400"


class ParametersDialog(FormDialog[bool]):
    """One line per parameter, then the sweep, the variants, the time budget of each run and its launches. What the user
    enters goes into `choices`."""

    def __init__(self, info: WorkloadInfo, choices: HomeOptions) -> None:
        super().__init__()
        self._info = info
        self._choices = choices
        self._preset = {name: _value_text(value) for name, value in info.presets.get(choices.preset, {}).items()}
        self._numbers = {f"p{index}": parameter for index, parameter in enumerate(info.parameters)}
        """Parameters of the workload by the names of their fields."""

    def compose(self) -> ComposeResult:
        info, choices = self._info, self._choices
        chosen = choices.of(info.name)
        with VerticalScroll(classes="dialog wide-dialog", can_focus=False) as box:
            box.border_title = Content(safe(f"Parameters of {info.name}"))
            box.border_subtitle = form_keys("applies")
            for name, parameter in self._numbers.items():
                value = chosen.settings.get(parameter.name, self._preset.get(parameter.name, ""))
                yield from self.field(name, parameter.name, value, _parameter_hint(parameter))
            if self._numbers:
                yield from self.field("sweep", "sweep", chosen.sweep, _SWEEP_HINT)
            variants = ", ".join(variant.name for variant in choices.included(info))
            yield from self.field("variants", "variants", variants, self._variants_hint())
            yield from self.field("budget", "budget", f"{choices.budget_seconds:g}", _BUDGET.description)
            yield from self.field("launches", "launches", str(choices.launches), _launches_hint(choices.launches))
            yield from self.buttons("Apply", "Reset")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id != "other":  # `FormDialog` handles the other buttons: Textual calls both handlers
            return
        usual = {name: self._preset.get(parameter.name, "") for name, parameter in self._numbers.items()}
        usual |= {"sweep": "", "variants": ", ".join(variant.name for variant in self._info.variants)}
        for field in self.query(Input):
            field.value = usual.get(str(field.id), field.value)
        self.query(Input).first().focus()

    def filled(self) -> bool:
        chosen = self._choices.of(self._info.name)
        texts = {parameter.name: self.value(name) for name, parameter in self._numbers.items()}
        chosen.settings = {name: text for name, text in texts.items() if text != self._preset.get(name, "")}
        chosen.sweep = self.value("sweep") if self._numbers else ""
        included = self._variants(self.value("variants"))
        chosen.left_out = {variant.name for variant in self._info.variants} - included
        self._choices.budget_seconds = float(_BUDGET.read(self.value("budget")))
        self._choices.launches = int(_LAUNCHES.read(self.value("launches")))
        return True

    def read(self, name: str, text: str) -> str:
        if name == "launches":
            return _launches_hint(int(_LAUNCHES.read(text)))
        if name == "variants":
            self._variants(text)
            return self._variants_hint()
        if name == "sweep":
            if not text:
                return _SWEEP_HINT
            from jaxprof.runner.planning import read_sweep

            values = read_sweep(text, self._info.parameters).values
            return f"{len(values)} sizes: " + ", ".join(_value_text(value) for value in values)
        if name == "budget":
            _BUDGET.read(text)
            return _BUDGET.description
        self._numbers[name].read(text)
        return _parameter_hint(self._numbers[name])

    def _variants_hint(self) -> str:
        return f"of {', '.join(variant.name for variant in self._info.variants)}; the others are left out"

    def _variants(self, text: str) -> set[str]:
        """Return the variants named in `text`. Raises UsageError for an unknown one, and without the baseline."""
        named, known = set(text.replace(",", " ").split()), [variant.name for variant in self._info.variants]
        for name in sorted(named.difference(known)):
            raise unknown_name("variant", name, known)
        if self._info.baseline not in named:
            raise UsageError(
                f"{self._info.baseline} is missing", "It is the baseline: the others are compared with it."
            )
        return named


def _launches_hint(launches: int) -> str:
    return _ONE_LAUNCH if launches == 1 else _parameter_hint(_LAUNCHES)


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
