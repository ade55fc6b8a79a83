"""The dialogs of the Start screen: parameters of a workload, a user's own workload, devices to compile a workload for;
and what is done with the file of a kept session, or the folder of a job: rename or delete it.

Each field is parsed as for a run, and shows its error below.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.base import units
from jaxprof.base.errors import JaxprofError, UsageError, unknown_name
from jaxprof.base.files import with_home
from jaxprof.base.text import safe
from jaxprof.facts.devices import ListedDevice
from jaxprof.tui.kit.dialogs import Choose, Confirm, Draw, FormDialog, FormField, Option, ReportDialog, Texts, ask_text
from jaxprof.tui.kit.table_columns import report_contents
from jaxprof.workloads.model import Parameter, WorkloadInfo

if TYPE_CHECKING:
    from textual.app import App

    from jaxprof.runner.planning import PlannedRun
    from jaxprof.session import Entry
    from jaxprof.tui.home.plan_options import HomeOptions
    from jaxprof.tui.shell.device_monitor import DeviceRow
    from jaxprof.tui.shell.profiler import Profiler
    from jaxprof.workloads.scripts import SourceFunction


_BUDGET = Parameter(
    name="budget", description="seconds of sampling per run, for all workloads", kind="float", minimum=1e-3, maximum=1e6
)
_LAUNCHES = Parameter(
    name="launches",
    description="processes of each run, which share its budget; of one, variation between processes is not measured",
    minimum=1,
    maximum=100,
)
_SWEEP_HINT = "n=1e3..1e7, n=1e3..1e7:12 or n=100,200,400"


def ask_parameters(app: App[Any], info: WorkloadInfo, choices: HomeOptions, taken: Callable[[], object]) -> None:
    """Ask for the parameters, sweep, variants, budget and launches of a workload, and put them into `choices`."""
    chosen, preset = choices.of(info.name), info.presets.get(choices.preset, {})
    every = [variant.name for variant in info.variants]
    numbered = {f"p{index}": parameter for index, parameter in enumerate(info.parameters)}
    usual = {name: _value_text(preset.get(parameter.name, "")) for name, parameter in numbered.items()}
    fields = {
        name: _number(parameter, chosen.settings.get(parameter.name, usual[name]), parameter.bounds, usual[name])
        for name, parameter in numbered.items()
    }
    if fields:
        fields["sweep"] = FormField("sweep", chosen.sweep, _SWEEP_HINT, lambda text: _sweep_sizes(info, text))
    fields |= {
        "variants": FormField(
            "variants",
            ", ".join(variant.name for variant in choices.variants_of(info)),
            f"of {', '.join(every)}; the others are left out",
            lambda text: _variants(info, text),
        ),
        "budget": _number(_BUDGET, f"{choices.budget_seconds:g}"),
        "launches": _number(_LAUNCHES, str(choices.launches)),
    }
    usual |= {"variants": ", ".join(every)} | ({"sweep": ""} if "sweep" in fields else {})

    def take(texts: Texts) -> None:
        settings = {each.name: texts[name] for name, each in numbered.items() if texts[name] != usual[name]}
        named = _variants(info, texts["variants"])
        variants = () if named.issuperset(every) else tuple(named)
        choices.change(info.name, settings=settings, sweep=texts.get("sweep", ""), variants=variants)
        choices.budget_seconds = float(_BUDGET.read(texts["budget"]))
        choices.launches = int(_LAUNCHES.read(texts["launches"]))
        taken()

    FormDialog(f"Parameters of {info.name}", fields, "Apply", "applies", usual=usual).ask(app, take)


def _sweep_sizes(info: WorkloadInfo, text: str) -> str:
    if not text:
        return ""
    from jaxprof.runner.planning import read_sweep

    _, values = read_sweep(text, info.parameters)
    return f"{len(values)} sizes: " + ", ".join(_value_text(value) for value in values)


def _variants(info: WorkloadInfo, text: str) -> set[str]:
    """Return the variants named in `text`. Raises UsageError for an unknown one, and without the baseline."""
    named, known = set(text.replace(",", " ").split()), [variant.name for variant in info.variants]
    for name in sorted(named.difference(known)):
        raise unknown_name("variant", name, known)
    if info.baseline not in named:
        raise UsageError(f"{info.baseline} is missing", "It is the baseline: the others are compared with it.")
    return named


def _number(parameter: Parameter, value: str, bounds: str = "", usual: str = "0") -> FormField:
    """Return the field of a parameter; one that usually has no value may stay empty."""
    hint = parameter.description + (f" ({bounds})" if bounds else "")
    return FormField(parameter.name, value, hint, lambda text: [parameter.read(text)] if text or usual else [])


def _value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def split_specs(text: str) -> list[str]:
    """Return the specs in `text`, separated by blanks, semicolons, or commas outside brackets."""
    return [part for part in re.split(r"[;\s]+|,(?![^\[]*\])", text) if part]


def ask_devices(app: Profiler, info: WorkloadInfo, choices: HomeOptions) -> None:
    from jaxprof.devices.absent import parse_targets
    from jaxprof.runner.planning import plan_compiles

    options = choices.of(info.name)
    explanation = (
        "Compiles for these devices without running anything. Times are lower bounds from the vendors' figures."
    )
    devices = "h100, a100:8, 4xh100:8, tpu-v5e, tpu-v6e:4x4; several with commas"

    def plan(text: str) -> list[PlannedRun]:
        return plan_compiles(info, "", options, parse_targets(text))

    field = FormField("devices", "h100", devices, lambda text: [plan(text)])
    title = f"Compile {info.name} for"
    ask_text(app, title, field, lambda text: app.start_runs(plan(text)), "compiles", question=explanation)


def ask_function(
    app: Profiler, choices: HomeOptions, take: Callable[[list[WorkloadInfo]], object], asks: str = ""
) -> None:
    """Ask for a user's function and its argument specs, at first those in `asks`, import it in a child, and store them
    in `choices`. For a file alone, ask which of its functions."""
    words = (
        "path/to/file.py:function or package.module:function, then one spec per argument; "
        "a file alone lists its functions."
    )
    offered: list[SourceFunction] = []
    described: list[WorkloadInfo] = []

    def read(text: str) -> tuple[str, tuple[str, ...]]:
        from jaxprof.analysis.target import whole_word

        target, _, specs = text.partition(" ")
        return whole_word(target), tuple(split_specs(specs))

    def confirm(texts: Texts) -> None:
        from jaxprof.runner.engine_questions import describe
        from jaxprof.workloads.scripts import functions_of

        target, arguments = read(texts["function"])
        folder = with_home(target)
        if folder.is_dir() and not (folder / "__init__.py").is_file():
            first = next((path.name for path in sorted(folder.glob("*.py"))), "file.py")
            raise UsageError(f"{target} is a folder", f"Give a file in it, such as {folder / first}.")
        offered[:] = functions_of(Path(target)) if target.endswith(".py") and not arguments else []
        if not offered:
            described[:] = describe(app.live.interpreter(), [target], arguments)

    def add(texts: Texts) -> None:
        target, arguments = read(texts["function"])
        if offered:
            choose(target)
            return
        for info in described:
            choices.change(info.name, arguments=arguments)
        take(described)

    def choose(target: str) -> None:
        names = [function.name for function in offered]
        lines = [Option(f"{function.name}({function.parameters})", function.description) for function in offered]
        title = f"Which function of {Path(target).name}?"
        Choose(title, lines).ask(app, lambda index: ask(f"{target}:{names[index]} "))

    def ask(value: str) -> None:
        hint = "No spec is needed if @jaxprof.workload declares them."
        field = FormField("function", value, hint, example="train.py:step f32[1024,1024] i32[8]", goes_on=True)
        FormDialog(
            "Add a function", {"function": field}, "OK", "adds",
            question=words, confirm=confirm, waiting="Importing it in a child process…",
        ).ask(app, add)  # fmt: skip

    ask(asks)


WIRING_SECONDS = 10.0
"""Longest wait for a driver that is slow to report how a GPU is connected."""


def show_device(app: App[Any], row: DeviceRow) -> None:
    """Show who uses a device, its clocks and links, once its driver has reported them."""

    def read() -> Draw:
        from jaxprof.devices.live.nvidia import nvml_threads
        from jaxprof.report import Prose
        from jaxprof.report.device_list import device_pieces

        wiring = nvml_threads().wiring(row.device, WIRING_SECONDS)
        pieces = list(device_pieces(ListedDevice(row.device, row.reading, wiring=wiring)))
        if wiring is None and row.device.nvml_key is not None:
            pieces += ["", Prose(f"NVIDIA's driver has not reported its links in {WIRING_SECONDS:.0f} s.")]
        return lambda width: list(report_contents(pieces, width))

    ReportDialog("Device", read, "Asking the driver…").ask(app, lambda answer: None)


# -- kept sessions --------------------------------------------------------------------------------------------

Listed = Callable[["Path | None"], object]
"""Lists the sessions again; the cursor then goes to the one at the path, if there is one."""


def rename(app: Profiler, entry: Entry, listed: Listed) -> None:
    renamed = list[Path]()

    def take(name: str) -> None:
        app.session_moved(entry.path, renamed[0])
        listed(renamed[0])

    def find(name: str) -> None:
        renamed.append(app.library().rename(entry.path, name))

    title = "Rename the session" if entry.job is None else "Rename the job"
    ask_text(app, title, FormField("new name", safe(entry.name), ""), take, "renames", find=find)


def delete(app: Profiler, entry: Entry, listed: Listed) -> None:
    words = ", ".join(entry.workloads) or "no runs"
    title, what = "Delete this session?", f"{entry.name}: {words}"
    if entry.job is not None:
        count = units.counted(len(entry.job.processes), "process", "processes")
        title, what = "Delete this job?", f"{entry.path}: {words}, the sessions of {count} and their roll-ups"
    question = f"{what}, {units.bytes_(entry.size_bytes)}. This cannot be undone."

    def take(answer: object) -> None:
        try:
            app.library().delete(entry.path)
        except JaxprofError as error:
            app.tell(error)
        listed(None)

    Confirm(title, question, "Delete").ask(app, take)
