"""Writing data to stdout, the same way for every command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_NUMBERS = re.compile(r"\[\n\s+([-+\d.eE,\s]+?)\n\s*\]")
"""A list of numbers over several lines. Its line breaks cannot be inside a text: JSON escapes those."""


def format_option(*formats: str) -> Callable[[Command], Command]:
    """The `--format` option with these choices; the first is the default."""
    return click.option(
        "--format", "form", type=click.Choice(formats), default=formats[0], show_default=True, help="How to print it."
    )


def print_json(data: Any) -> None:
    """JSON on stdout, indented, lists of numbers on one line. Refuses NaN and infinity, which JSON does not have."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    click.echo(_NUMBERS.sub(lambda match: f"[{' '.join(match.group(1).split())}]", text))
