"""Write data to stdout, the same way for every command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from jaxprof.report.table import Table

Command = TypeVar("Command", bound=Callable[..., Any])


_WRITTEN_AT_ONCE = 1 << 16


def format_option(*formats: str) -> Callable[[Command], Command]:
    """The `--format` option with these choices; the first is the default."""
    return click.option(
        "--format", "form", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
    )


def print_json(data: Any) -> None:
    """Print indented JSON on stdout, with lists of numbers on one line. An iterator becomes a list, whose items are
    written as they arrive. NaN and infinity, which JSON does not have, become null: unknown."""
    _print(chain(json_pieces(data), ["\n"]))


def print_csv(table: Table[Any]) -> None:
    """Print CSV on stdout, each row as it arrives."""
    from jaxprof.report.renderers import csv_lines

    _print(csv_lines(table))


def _print(pieces: Iterable[str]) -> None:
    """Write the pieces to stdout in batches."""
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size > _WRITTEN_AT_ONCE:
            click.echo("".join(waiting), nl=False)
            waiting, size = [], 0
    click.echo("".join(waiting), nl=False)


def json_pieces(data: Any, margin: str = "") -> Iterator[str]:
    """The text in pieces: like `json.dumps` with an indent of two, except for lists of numbers."""
    inner = margin + "  "
    if isinstance(data, Iterator):
        opened = "["
        for value in data:
            yield f"{opened}\n{inner}"
            yield from json_pieces(value, inner)
            opened = ","
        yield f"\n{margin}]" if opened == "," else "[]"
    elif isinstance(data, dict) and any(isinstance(value, _MAY_STREAM) for value in data.values()):
        opened = "{"
        for key, value in data.items():
            yield f"{opened}\n{inner}{_encode(str(key))}: "
            yield from json_pieces(value, inner)
            opened = ","
        yield f"\n{margin}}}"
    else:
        yield _text(data, margin)


def _text(data: Any, margin: str) -> str:
    """Avoids the encoder's own indentation, which is written in Python and takes five times as long."""
    inner = margin + "  "
    if isinstance(data, dict) and data:
        items = [f"{inner}{_encode(str(key))}: {_text(value, inner)}" for key, value in data.items()]
        return "{\n" + ",\n".join(items) + f"\n{margin}}}"
    if isinstance(data, list | tuple) and data:
        if all(type(value) in (int, float) for value in data):
            return f"[{', '.join(map(_encode, data))}]"
        return "[\n" + ",\n".join(f"{inner}{_text(value, inner)}" for value in data) + f"\n{margin}]"
    return _encode(data)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def _encode(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except ValueError:
        if isinstance(value, float):
            return "null"
        raise


_MAY_STREAM = (Iterator, dict)
