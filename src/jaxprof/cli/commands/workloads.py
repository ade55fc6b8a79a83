"""`jaxprof workloads`: the catalogue. Imports no jax: the declarations import it inside their functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jaxprof.cli.complete import complete_workload
from jaxprof.cli.output import format_option, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.workloads.model import Parameter, Published, WorkloadCard

WIDTH = 80


@click.command("workloads")
@click.argument("name", required=False, shell_complete=complete_workload)
@click.option("--python", metavar="PATH", help="The interpreter that describes a function of your own.")
@click.option("--arg", "arguments", multiple=True, metavar="SPEC", help="An argument of your function: f32[1024,1024].")
@format_option("text", "json")
def command(name: str | None, python: str | None, arguments: tuple[str, ...], form: str) -> None:
    """List what can be run, or tell all about the workload NAME (built in, or a function of your own)."""
    from dataclasses import asdict

    cards = _cards(name, python, arguments)
    if form == "json":
        print_json([asdict(card) for card in cards])
    elif name is None:
        click.echo("\n".join(_list(cards)))
    else:
        click.echo("\n".join(_detail(cards[0])))


def _cards(name: str | None, python: str | None, arguments: tuple[str, ...]) -> list[WorkloadCard]:
    from jaxprof import workloads
    from jaxprof.workloads.model import card

    if name is None:
        return workloads.cards()
    if not (":" in name or "/" in name or name.endswith(".py")):
        return [card(workloads.built_in(name))]
    from pathlib import Path

    from jaxprof.cli.choosing import describe_own
    from jaxprof.worker import find_interpreter

    return describe_own([name], find_interpreter(Path(python) if python else None), arguments)


def _list(cards: list[WorkloadCard]) -> list[str]:
    from jaxprof.report.table import table

    rows = [("name", "computes", "variants")]
    rows += [(one.name, one.title, ", ".join(variant.name for variant in one.variants)) for one in cards]
    return table(rows, indent="", widest=(0, 44, 60))


def _detail(card: WorkloadCard) -> Iterator[str]:
    from jaxprof.report.table import table, wrap
    from jaxprof.safe_text import safe, safe_lines

    yield safe(f"{card.name}: {card.title}")
    yield ""
    yield from wrap(card.description, width=WIDTH, indent="")
    if card.parameters:
        presets = list(card.presets)
        rows = [("parameter", *presets, "bounds", "")]
        rows += [
            (
                one.name,
                *(_value(card.presets[preset].get(one.name)) for preset in presets),
                _bounds(one),
                one.description,
            )
            for one in card.parameters
        ]
        yield ""
        yield from table(rows, indent="")
    rows = [("variant", "how", "")]
    rows += [
        (f"{one.name} (baseline)" if one.name == card.baseline else one.name, one.how, one.description)
        for one in card.variants
    ]
    yield ""
    yield from table(rows, indent="")
    if card.published:
        yield ""
        yield from _published(card.published)
    sources: dict[str, list[str]] = {}
    for variant in card.variants:
        if variant.source:
            sources.setdefault(variant.source, []).append(variant.name)
    for source, names in sources.items():
        yield ""
        yield safe(f"{', '.join(names)}:")
        yield from (f"    {line}".rstrip() for line in safe_lines(source.rstrip()))


def _published(figures: tuple[Published, ...]) -> Iterator[str]:
    from jaxprof.report.table import table, wrap
    from jaxprof.units import seconds

    numbers = {
        caveat: at for at, caveat in enumerate(dict.fromkeys(one.caveat for one in figures if one.caveat), start=1)
    }
    rows = [("published", "phase", "figure", "statistic", "on", "source", "")]
    rows += [
        (
            one.variant,
            one.phase.replace("_", " "),
            seconds(one.seconds) if one.seconds is not None else one.text or "-",
            one.statistic,
            one.hardware,
            one.source,
            f"[{numbers[one.caveat]}]" if one.caveat else "",
        )
        for one in figures
    ]
    yield from table(rows, indent="")
    for caveat, at in numbers.items():
        yield from wrap(caveat, width=WIDTH, indent="    ", first=f"[{at}] ")


def _value(value: object) -> str:
    from jaxprof.units import integer

    if isinstance(value, int) and not isinstance(value, bool):
        return integer(value)
    return "-" if value is None else str(value)


def _bounds(parameter: Parameter) -> str:
    if parameter.kind == "choice":
        return " | ".join(parameter.choices)
    low = "" if parameter.minimum is None else f"{parameter.minimum:g}"
    high = "" if parameter.maximum is None else f"{parameter.maximum:g}"
    return f"{low}..{high}" if low or high else "-"
