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
from anyio.abc import ByteReceiveStream, Process

from jaxprof.operating_system import python_words
from jaxprof.text import json_text

MOST_CHARACTERS: Final = 24_000
"""Of an answer: some 7 000 tokens."""
_FEWER: Final = (50, 20, 8, 3, 1)
"""Rows of each list, until the answer is short enough."""
_MOST_READ: Final = 16 << 20
"""Bytes that are read of a command's answer."""
_MOST_OF_ERROR: Final = 2000


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
    """The answer of `jaxprof COMMAND OPTIONS -- ARGUMENTS`. With a `limit` of rows; of a long answer fewer are passed
    on."""
    bounded = [] if limit is None else ["--limit", str(limit)]
    answer = await _run([*command.split(), *options, *bounded, "--format", "json", "--", *arguments], seconds)
    return answer if len(answer.text) <= MOST_CHARACTERS else _shortened(answer, limit or max(_FEWER) + 1)


def _shortened(answer: ToolAnswer, limit: int) -> ToolAnswer:
    """The answer with fewer rows of each list, and the rest counted in `truncated`; an error if that is no help."""
    from jaxprof.report.envelope import Bounds

    whole = json.loads(answer.text)
    for rows in filter(lambda rows: "data" in whole and rows < limit, _FEWER):
        bounds = Bounds(whole["kind"], rows)
        data = bounds.cut(whole["data"])
        left_out = {
            path: whole["truncated"].get(path, 0) + bounds.left_out.get(path, 0)
            for path in whole["truncated"] | bounds.left_out
        }
        text = json_text({**whole, "data": data, "truncated": left_out}, compact=True)
        if len(text) <= MOST_CHARACTERS:
            return ToolAnswer(text)
    return _too_long(f"{len(answer.text)} characters, more than {MOST_CHARACTERS}")


def _too_long(words: str) -> ToolAnswer:
    return error_answer(
        "too_long", f"the answer has {words}", "Ask for less: a view, one run, fewer columns, or aggregates."
    )


async def _run(words: Sequence[str], seconds: float) -> ToolAnswer:
    command = python_words(sys.executable, "-m", "jaxprof", *words)
    said: dict[str, bytes] = {}
    try:
        with anyio.fail_after(seconds):
            async with await anyio.open_process(command, stdin=subprocess.DEVNULL) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                async with anyio.create_task_group() as readers:
                    readers.start_soon(_read, process, process.stdout, said, "stdout")
                    readers.start_soon(_read, process, process.stderr, said, "stderr")
                await process.wait()
    except (ValueError, OSError) as error:  # a null byte, or more than a command line holds
        if not isinstance(error, TimeoutError):
            return error_answer("usage", f"no command takes that: {error}", "Give a shorter text without null bytes.")
        return error_answer("timed_out", f"no answer within {seconds:g} s", "Ask for less, or run the command itself.")
    if len(said["stdout"]) > _MOST_READ:
        return _too_long(f"more than {_MOST_READ >> 20} MiB")
    out = said["stdout"].decode("utf-8", "replace").strip()
    try:
        answer = json.loads(out)
        return ToolAnswer(out, is_error="error" in answer)
    except (ValueError, TypeError):
        notes = said["stderr"].decode("utf-8", "replace").strip().splitlines()
        what = notes[0] if notes else f"the command ended with exit code {process.returncode} and said nothing"
        return error_answer("failed", what[:_MOST_OF_ERROR], " ".join(notes[1:3])[:_MOST_OF_ERROR])


async def _read(process: Process, stream: ByteReceiveStream, said: dict[str, bytes], name: str) -> None:
    """Take what the command writes; one that writes without end is killed."""
    taken = bytearray()
    async for piece in stream:
        if len(taken) > _MOST_READ:
            process.kill()
            break
        taken += piece
    said[name] = bytes(taken)


def data_answer(kind: str, data: object) -> ToolAnswer:
    """An answer that is no command's."""
    from jaxprof.report.envelope import SCHEMA

    whole = {"schema": SCHEMA, "kind": kind, "data": data, "truncated": {}, "next": []}
    return ToolAnswer(json_text(whole, compact=True))
