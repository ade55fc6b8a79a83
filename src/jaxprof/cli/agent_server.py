"""The tools of `jaxprof agent mcp`, a thin layer over the commands. They read what was recorded. Tools that run code
are offered only if the user has allowed them.

A tool runs the command as a process of its own, and answers with its JSON, shortened for the reader. So the answer says
what the command says, errors included; and the memory that a query takes, and a crash in it, leave the server alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import anyio
from anyio.abc import ByteReceiveStream, Process
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import Field, ValidationError

from jaxprof.base import __version__
from jaxprof.base.operating_system import OWN_CODE, python_words
from jaxprof.base.text import json_text
from jaxprof.remote import ALLOWED, REFUSED, URLS
from jaxprof.report.envelope import Bounds, error_text

MOST_CHARACTERS = 24_000
"""Longest answer, in characters: some 7 000 tokens."""
SHORT_CHARACTERS = 6_000
"""Longest answer to a question that does not say how many rows it wants, unless one row of each list is longer."""
_FEWER = (50, 20, 12, 8, 5, 3, 2, 1)
"""Numbers of rows of each list, which are tried in turn until the answer is short enough."""
_WHOLE = 500
"""Most rows that can be asked for."""
_DIGITS = 5
_MOST_READ = 16 << 20
"""Most bytes that are read of a command's answer."""
_MOST_OF_ERROR = 2000
_READ_SECONDS = 120.0
_COMPILE_SECONDS = 600.0


async def answer_of_command(
    command: str,
    options: Sequence[str],
    arguments: Sequence[str],
    *,
    limit: int | None = None,
    seconds: float = _READ_SECONDS,
) -> CallToolResult:
    """Return the answer of `jaxprof COMMAND OPTIONS -- ARGUMENTS`, with at most `limit` rows of each list, by default
    as many as a short answer has room for."""
    bounded = [] if limit is None else ["--limit", str(limit)]
    text = await _run([*command.split(), *options, *bounded, "--format", "json", "--", *arguments], seconds)
    return _result(_shorten(text, limit))


def _shorten(text: str, limit: int | None) -> str:
    """Return the answer without what is unknown, with as many digits as mean something, and as many rows
    of each list as there is room for; the rest is counted in `truncated`. An answer that stays too long is an error."""
    whole = json.loads(text)
    if "data" not in whole:
        return text
    whole["data"] = _drop_unknowns(whole["data"], 0 if whole["kind"] == "query" else _DIGITS)
    answer = shortest = json_text(whole, compact=True)
    most = SHORT_CHARACTERS if limit is None else MOST_CHARACTERS
    fewer = [rows for rows in _FEWER if rows < (limit or _WHOLE)]
    # first what is inside the rows of the outermost lists: all runs, with fewer of their kernels
    for rows, outermost in [*((rows, limit or _WHOLE) for rows in fewer), *((rows, rows) for rows in fewer)]:
        if len(answer) <= most:
            return answer
        bounds = Bounds(whole["kind"], rows, outermost)
        data = bounds.cut(whole["data"])
        left_out = {
            path: whole["truncated"].get(path, 0) + bounds.left_out.get(path, 0)
            for path in whole["truncated"] | bounds.left_out
        }
        answer = json_text({**whole, "data": data, "truncated": left_out}, compact=True)
        shortest = min(shortest, answer, key=len)
    if len(shortest) <= MOST_CHARACTERS:
        return shortest
    return _too_long(f"{len(text)} characters, more than {MOST_CHARACTERS}")


def _drop_unknowns(value: Any, digits: int) -> Any:
    """Return an answer without keys whose value is unknown, which cost an agent more than they tell; that a list is
    empty is known. In rows of a table, which are lists, nothing is left out. Numbers get `digits` digits, 0 for all of
    them; larger ones, such as times of day, keep theirs, as in `Bounds`."""
    if isinstance(value, dict):
        kept = {key: _drop_unknowns(inner, digits) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner is not None and inner not in ("", {})}
    if isinstance(value, list):
        return [_drop_unknowns(each, digits) for each in value]
    rounds = digits and isinstance(value, float) and abs(value) < 1e6
    return float(f"{value:.{digits}g}") if rounds else value


def _too_long(words: str) -> str:
    return error_text(
        "too_long", f"the answer has {words}", "Ask for less: a view, one run, fewer columns, or aggregates."
    )


async def _run(words: Sequence[str], seconds: float) -> str:
    """Return what a command answers, one line of JSON as `docs/json.md` describes it."""
    command = python_words(sys.executable, "-m", "jaxprof", *words)
    output: dict[str, bytes] = {}
    try:
        with anyio.fail_after(seconds):
            async with await anyio.open_process(command, stdin=subprocess.DEVNULL) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                async with anyio.create_task_group() as readers:
                    readers.start_soon(_read, process, process.stdout, output, "stdout")
                    readers.start_soon(_read, process, process.stderr, output, "stderr")
                await process.wait()
    except TimeoutError:
        return error_text("timed_out", f"no answer within {seconds:g} s", "Ask for less, or run the command itself.")
    except (ValueError, OSError) as error:  # a null byte, or more than a command line holds
        hint = "Give a shorter text without null bytes."
        return error_text("usage", f"the command cannot be started: {error}", hint)
    if len(output["stdout"]) > _MOST_READ:
        return _too_long(f"more than {_MOST_READ >> 20} MiB")
    text = output["stdout"].decode("utf-8", "replace").strip()
    with suppress(ValueError):
        if isinstance(json.loads(text), dict):
            return text
    notes = output["stderr"].decode("utf-8", "replace").strip().splitlines()
    what = notes[0] if notes else f"the command ended with exit code {process.returncode} and said nothing"
    return error_text("failed", what[:_MOST_OF_ERROR], " ".join(notes[1:3])[:_MOST_OF_ERROR])


async def _read(process: Process, stream: ByteReceiveStream, output: dict[str, bytes], name: str) -> None:
    """Collect what the command writes, and kill it if it writes without end."""
    taken = bytearray()
    async for piece in stream:
        if len(taken) > _MOST_READ:
            process.kill()
            break
        taken += piece
    output[name] = bytes(taken)


_RUNS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)

Session = Annotated[
    str, Field(description="A path (of a job: its folder), the name of a kept session or part of it, or `last`")
]
Limit = Annotated[int | None, Field(description="Rows of each list; else a short answer", ge=1, le=_WHOLE)]
Run = Annotated[str, Field(description="The id of a run, r2; empty for all")]
View = Literal[
    "summary", "kernels", "compile", "steps", "memory", "trust", "compiles", "findings", "transfers", "timeline"
]
HloView = Literal["kernels", "findings", "barriers", "summary"]


class _Server(MCPServer):
    """An MCP server that answers a call that it refuses with an error in JSON, as a command would."""

    async def list_tools(self) -> list[Tool]:
        """Return the tools, with schemas that allow no other arguments."""
        tools = await super().list_tools()
        return [
            tool.model_copy(update={"input_schema": {**tool.input_schema, "additionalProperties": False}})
            for tool in tools
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Return the answer of a tool. An unknown argument is refused: ignoring it would answer another question."""
        known = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        unknown = sorted(arguments.keys() - known.get(name, arguments).keys())
        if unknown:
            what = f"{name} has no argument {', '.join(unknown)[:200]}"
            return _result(error_text("usage", what, f"It has {', '.join(known[name]) or 'none'}."))
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            cause = error.__cause__
            wrong = cause.errors() if isinstance(cause, ValidationError) else []
            problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in wrong)
            what = f"{name} was called wrongly: {problems}" if problems else str(error)
            return _result(error_text("usage", what, "The tool's input schema says what it takes."))


def make_server(instructions: str, *, allow_run: bool, allow_urls: bool) -> MCPServer:
    """Make the server with its tools. `allow_run`: also those that run the user's code. `allow_urls`: a target may be a
    URL, which carries words of the client to whoever answers there."""
    os.environ[URLS] = ALLOWED if allow_urls else REFUSED
    os.environ[OWN_CODE] = ALLOWED if allow_run else REFUSED  # the commands behind the tools refuse it where it starts
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=allow_urls)
    server = _Server("jaxprof", version=__version__, instructions=instructions, log_level="ERROR")
    reading: list[Any] = [explain, explain_code, open_session, query, query_schema, compare, list_sessions]
    running: list[Any] = []
    if allow_run:
        running = [hlo, run, compare_code]  # what compiles a function of the user's runs its file
    else:
        reading.append(hlo)
    for tools, hints in ((reading, reads), (running, _RUNS)):
        for tool in tools:
            server.add_tool(tool, annotations=hints, structured_output=False)
    return server


def _result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error="error" in json.loads(text))


def _option_words(**options: str | Sequence[str]) -> list[str]:
    named = ((name.rstrip("_"), [value] if isinstance(value, str) else value) for name, value in options.items())
    return [f"--{name}={value}" for name, values in named for value in values if value]


async def explain(session: Session = "last") -> CallToolResult:
    """What to change, the most expensive first: at most five findings with cost, line, fix and the command that
    verifies it, and what is not known (`unknown`). Ask this first. Of a session, a profile, or a job of several
    processes: which one is late, and why."""
    return await answer_of_command("explain", [], [session])


async def explain_code(
    code: Annotated[str, Field(description="A finding's code, host_sync; `all` lists them")],
) -> CallToolResult:
    """What a finding's code means, what to do about it, and where to read on."""
    return await answer_of_command("explain", [f"--code={code}"], [])


async def open_session(
    session: Session = "last", view: View = "summary", run: Run = "", limit: Limit = None
) -> CallToolResult:
    """A session or a profile: its runs in figures (summary), or one view in detail. kernels, compile (XLA's passes),
    steps, memory, trust (whether the capture can be believed) are of measured runs and profiles; compiles (why each),
    findings, transfers, timeline of recorded programs. A job has only its summary: its processes compared, what is
    missing, who is late. Seconds and bytes; what is unknown is left out."""
    return await answer_of_command(
        "open", [*([] if view == "summary" else [f"--{view}"]), *_option_words(run=run)], [session], limit=limit
    )


async def query(
    sql: Annotated[str, Field(description="One SELECT of DuckDB's SQL")],
    sessions: Annotated[list[str], Field(description="Sessions; empty for all kept ones")] = ["last"],  # noqa: B006
    limit: Limit = None,
) -> CallToolResult:
    """Figures of one or hundreds of sessions in SQL: runs, phases, samples, kernels, memory, intervals, steps, passes,
    compiles, findings, processes (of a job)... Each table has `session`, most have `run`. `query_schema` has the
    columns. It only reads."""
    return await answer_of_command("query", [] if sessions else ["--all"], [*sessions, sql], limit=limit)


async def query_schema(
    table: Annotated[str, Field(description="runs, kernels...; empty for the names of all tables")] = "",
) -> CallToolResult:
    """The columns of a table of `query`, with their meaning and unit; without a table, the tables."""
    return await answer_of_command("query", ["--schema"], [table] if table else [], limit=100 if table else None)


async def compare(
    before: Annotated[str, Field(description="A session; FILE:r1 for one run of it")],
    after: Annotated[str, Field(description="The session, or run, that is compared with it")],
    limit: Limit = None,
) -> CallToolResult:
    """What differs between two sessions: environments, times, exact facts (kernels, FLOPs, bytes, peak), kernels. Times
    of two sessions were not measured together, so that their verdict is often inconclusive: exact facts come first."""
    return await answer_of_command("compare", ["--no-run"], [before, after], limit=limit)


async def list_sessions(limit: Limit = None) -> CallToolResult:
    """The kept sessions, newest first, with the medians of their runs."""
    return await answer_of_command("sessions list", [], [], limit=limit)


async def hlo(
    target: Annotated[str, Field(description="A session, a profile, HLO (a file or a dump), or a workload")],
    view: HloView = "kernels",
    run: Run = "",
    for_device: Annotated[str, Field(description="Compile a workload for h100, a100:8, tpu-v5e...")] = "",
    mesh: Annotated[str, Field(description="The mesh of several devices: data=4,model=2")] = "",
    arguments: Annotated[list[str], Field(description="A function's arguments, a spec each: f32[1024,1024]")] = [],  # noqa: B006
    settings: Annotated[list[str], Field(description="Parameters of a workload: n=4096")] = [],  # noqa: B006
    diff: Annotated[str, Field(description="Another such target: what differs from it, instead of a view")] = "",
    limit: Limit = None,
) -> CallToolResult:
    """What XLA made of a program: kernels with costs and least times, findings with advice, barriers (why kernels
    were not fused further). With `for_device`, for a device that is not here: lower bounds, not measured times."""
    options = [] if diff or view == "summary" else [f"--{view}"]
    options += _option_words(diff=diff, run=run, for_=for_device, mesh=mesh, arg=arguments, set=settings)
    return await answer_of_command("hlo", options, [target], limit=limit, seconds=_COMPILE_SECONDS)


_TARGET = Field(description="A workload, or FILE.py:function")


async def run(
    target: Annotated[str, _TARGET],
    arguments: Annotated[list[str], Field(description="A function's arguments, a spec each: f32[1024,1024]")] = [],  # noqa: B006
    variant: Annotated[str, Field(description="The variant of a workload: jit, numpy...; empty for all")] = "",
    budget_seconds: Annotated[float, Field(description="How long each is timed", gt=0, le=60)] = 2.0,
) -> CallToolResult:
    """Measure a workload or a function in fresh processes, phase by phase, and keep the session. This runs its code."""
    options = _option_words(arg=arguments, variant=variant, budget=str(budget_seconds))
    return await answer_of_command("run", options, [target], seconds=_COMPILE_SECONDS)


async def compare_code(
    before: Annotated[str, _TARGET],
    after: Annotated[str, _TARGET],
    arguments: Annotated[list[str], Field(description="The arguments, a spec each: f32[1024,1024]")] = [],  # noqa: B006
) -> CallToolResult:
    """Which of two functions is faster, measured in turns, with a verdict, and whether they compute the same. This runs
    their code. `inconclusive` is an answer: do not report a speed-up then."""
    return await answer_of_command("compare", _option_words(arg=arguments), [before, after], seconds=_COMPILE_SECONDS)
