"""What a tool answers: the answer of a command in JSON, run as a process of its own, and short enough for its reader.

So a tool says what the command says, errors included; what a query takes of the machine, and what ends in it, is not
the server's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from jaxprof.operating_system import python_words
from jaxprof.text import json_text

MOST_CHARACTERS: Final = 24_000
"""Of an answer: some 7 000 tokens."""
_FEWER: Final = (50, 20, 8, 3, 1)
"""Rows of each list, until the answer is short enough."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """One line of JSON, as `docs/json.md` describes it."""

    text: str
    is_error: bool = False


def error_answer(code: str, message: str, hint: str) -> ToolAnswer:
    """The answer of a call that cannot be carried out."""
    from jaxprof.report.envelope import error_text

    return ToolAnswer(error_text(code, message, hint), is_error=True)


async def answer_of_command(
    command: str, options: Sequence[str], arguments: Sequence[str], *, seconds: float, limit: int | None = None
) -> ToolAnswer:
    """The answer of `jaxprof COMMAND OPTIONS -- ARGUMENTS`. With a `limit` of rows, fewer if they are long."""
    bounds: list[int | None] = [None] if limit is None else [limit, *(rows for rows in _FEWER if rows < limit)]
    for rows in bounds:
        bounded = [] if rows is None else ["--limit", str(rows)]
        answer = await _run([*command.split(), *options, *bounded, "--format", "json", "--", *arguments], seconds)
        if len(answer.text) <= MOST_CHARACTERS:
            return answer
    return error_answer(
        "too_long",
        f"the answer has {len(answer.text)} characters, more than {MOST_CHARACTERS}",
        "Ask for less: a view, one run, fewer columns, or aggregates.",
    )


async def _run(words: Sequence[str], seconds: float) -> ToolAnswer:
    try:
        with anyio.fail_after(seconds):
            done = await anyio.run_process(
                python_words(sys.executable, "-m", "jaxprof", *words), stdin=subprocess.DEVNULL, check=False
            )
    except TimeoutError:
        return error_answer("timed_out", f"no answer within {seconds:g} s", "Ask for less, or run the command itself.")
    out = done.stdout.decode("utf-8", "replace").strip()
    try:
        answer = json.loads(out)
        return ToolAnswer(out, is_error="error" in answer)
    except (ValueError, TypeError):
        notes = done.stderr.decode("utf-8", "replace").strip().splitlines()
        what = notes[0] if notes else f"the command ended with exit code {done.returncode} and said nothing"
        return error_answer("failed", what, " ".join(notes[1:3]))


def data_answer(kind: str, data: object) -> ToolAnswer:
    """An answer that is no command's."""
    from jaxprof.report.envelope import SCHEMA

    whole = {"schema": SCHEMA, "kind": kind, "data": data, "truncated": {}, "next": []}
    return ToolAnswer(json_text(whole, compact=True))
