"""Print what can be run, for `jaxprof run` without a name and for `run --describe NAME`. Imports no jax: the
declarations import it inside their functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jaxprof import workloads
from jaxprof.cli.answers import command_line, print_answer
from jaxprof.cli.options import refuse
from jaxprof.cli.output import note
from jaxprof.facts import Fact, at, column, pick
from jaxprof.facts.listed import WORKLOAD
from jaxprof.grouping import grouped
from jaxprof.report.renderers import Table, text_lines, wrap
from jaxprof.text import safe, safe_lines
from jaxprof.units import value_text
from jaxprof.workloads import is_own
from jaxprof.workloads.model import Parameter, WorkloadInfo, workload_info


def print_catalogue(name: str | None, python: Path | None, arguments: tuple[str, ...], form: str) -> None:
    """List what can be run, or describe the workload `name` (built in, or a function of the user's own)."""
    infos = _infos(name, python, arguments)
    several = name is None or len(infos) > 1
    next_commands = [command_line("run", *(["--describe"] if several else []), info.target) for info in infos[:1]]
    if not several:
        print_answer(form, "workload", {"workloads": infos}, _detail_lines(infos[0]), next_commands)
        return
    variants = column("variants", lambda info: ", ".join(variant.name for variant in info.variants), widest=60)
    listed = text_lines(Table((*pick(WORKLOAD, "name", "title"), variants), infos), indent="")
    print_answer(form, "workloads", {"workloads": infos}, listed, next_commands)
    if name is not None and form == "text":
        note(f"jaxprof run --describe {infos[0].origin} describes one.")


def _infos(name: str | None, python: Path | None, arguments: tuple[str, ...]) -> list[WorkloadInfo]:
    if name is not None and is_own(name):
        from jaxprof.runner.engine_process import describe
        from jaxprof.runner.interpreter import find_interpreter

        return describe(find_interpreter(python), [name], arguments)
    hint = "Name it: jaxprof run --describe FILE.py:FUNCTION ..."
    refuse(("arguments", "python"), "applies to a function of your own", hint)
    return workloads.infos() if name is None else [workload_info(workloads.built_in(name))]


def _detail_lines(info: WorkloadInfo) -> Iterator[str]:
    yield safe(f"{info.name}: {info.title}")
    yield ""
    yield from wrap(info.description, first="")
    if info.parameters:
        yield ""
        yield from text_lines(_parameters(info), indent="")
    variants = (
        column("variant", lambda variant: variant.name + (" (baseline)" if variant.name == info.baseline else "")),
        column("how", at("how")),
        column("", at("description")),
    )
    yield ""
    yield from text_lines(Table(variants, info.variants), indent="")
    if info.published:
        yield ""
        yield "published"
    for each in info.published:
        words = f"{each.variant} {each.phase.replace('_', ' ')}: {each.figure}, {each.statistic}, on {each.hardware}"
        yield from wrap(f"{words} ({each.source}). {each.caveat}".rstrip(), hang=4)
    for source, names in grouped((each.source, each.name) for each in info.variants if each.source).items():
        yield ""
        yield safe(f"{', '.join(names)}:")
        yield from (f"    {line}".rstrip() for line in safe_lines(source.rstrip()))


def _parameters(info: WorkloadInfo) -> Table[Parameter]:
    """Return the table of the parameters, with a column for each preset."""

    def of_preset(preset: str) -> Fact[Parameter]:
        return column(preset, lambda parameter: info.presets[preset].get(parameter.name), value_text, right=False)

    presets = map(of_preset, info.presets)
    first, last = column("parameter", at("name")), column("", at("description"))
    return Table((first, *presets, column("bounds", _bounds), last), info.parameters)


def _bounds(parameter: Parameter) -> str:
    if parameter.kind == "choice":
        return " | ".join(parameter.choices)
    low = "" if parameter.minimum is None else f"{parameter.minimum:g}"
    high = "" if parameter.maximum is None else f"{parameter.maximum:g}"
    return f"{low}..{high}" if low or high else "-"
