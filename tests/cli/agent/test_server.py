"""The tools as a client has them: a real server, over real pipes."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.calling import SOURCE, Caller
from jaxprof.cli.agent import server as answers
from jaxprof.cli.agent.server import MOST_CHARACTERS
from jaxprof.session.log import LogWriter
from report import sessions

mcp = pytest.importorskip("mcp")

READING = {
    "explain", "explain_code", "show", "query", "query_schema", "compare", "list_sessions", "docs", "hlo",
}  # fmt: skip


@pytest.fixture
def kept(state_home: Path) -> Path:
    path = state_home / "sessions" / "2026-11-21T05-05-06-captured.jaxprof"
    writer = LogWriter(sessions.HEADER, path)
    for event in sessions.captured_events():
        writer.append(event)
    writer.close()
    return path


@asynccontextmanager
async def serving(state_home: Path, *options: str) -> AsyncIterator[Any]:
    environment = {"PYTHONPATH": str(SOURCE), "JAXPROF_HOME": str(state_home)}
    words = ["-m", "jaxprof", "mcp", *options]
    started = mcp.StdioServerParameters(command=sys.executable, args=words, env=environment)
    async with mcp.Client(started, read_timeout_seconds=100) as client:
        yield client


async def call(client: Any, name: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a tool, whose mark as an error agrees with what it says."""
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert len(content.text) <= MOST_CHARACTERS
    answer: dict[str, Any] = json.loads(content.text)
    assert result.is_error is (answer["kind"] == "error")
    return answer


@pytest.mark.process
async def test_the_tools_answer_as_the_commands_do_and_run_no_code(
    state_home: Path, kept: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "model.py"
    program.write_text(f"open({str(ran)!r}, 'w').close()\ndef step(x): return x\n")
    wide = "SELECT repeat('x', 300) AS x, number FROM samples"
    async with serving(state_home) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        for tool in tools:
            assert tool.annotations.read_only_hint is True
            assert tool.description
        assert "`explain`" in client.instructions

        listed = await call(client, "list_sessions")
        name = listed["data"]["sessions"][0]["name"]
        assert name == kept.name.removesuffix(".jaxprof"), "a name that the other tools take"
        assert (await call(client, "explain", session=name))["kind"] == "explanation"
        assert (await call(client, "explain_code", code="all"))["kind"] == "catalogue"
        shown = await call(client, "show", session=name, view="kernels", run="r2", limit=1)
        assert len(shown["data"]["runs"][0]["kernels"]) == 1
        assert shown["truncated"]["runs.kernels"] == 2
        rows = await call(client, "query", sql="SELECT run, status FROM runs ORDER BY run", sessions=[])
        assert rows["data"]["rows"] == [{"run": "r1", "status": "ok"}, {"run": "r2", "status": "ok"}]
        assert {table["table"] for table in (await call(client, "query_schema"))["data"]["tables"]} >= {
            "runs",
            "kernels",
        }
        columns = (await call(client, "query_schema", table="phases"))["data"]["tables"][0]["columns"]
        assert [column["name"] for column in columns][:3] == ["session", "run", "launch"]
        compared = await call(client, "compare", before=f"{name}:r1", after=f"{name}:r2")
        assert compared["kind"] == "comparison"
        assert (await call(client, "hlo", target=name))["data"]["programs"][0]["module"] == "jit_selu"
        assert (await call(client, "hlo", target=name, diff=name))["kind"] == "hlo-diff"

        assert (await call(client, "show", session="nothing"))["error"]["message"] == "unknown session 'nothing'"
        assert "cannot access" in (await call(client, "query", sql="FROM read_csv('/etc/passwd')"))["error"]["message"]
        assert (await call(client, "show", session="--help"))["error"]["message"] == "unknown session '--help'"
        assert (await call(client, "docs", page="nothing"))["error"]["message"] == "unknown page 'nothing'"
        assert (await call(client, "query", sql="-"))["error"]["code"] == "usage", "stdin is the client's"
        wrong = (await call(client, "show", view="everything", limit=0))["error"]
        assert wrong["message"].startswith("show was called wrongly: view: Input should be 'summary', ")
        assert "limit: " in wrong["message"]
        assert (await call(client, "nothing"))["error"]["message"] == "Unknown tool: nothing"
        other = (await call(client, "show", file="last"))["error"]
        assert (other["code"], other["message"]) == ("usage", "show has no argument file")
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert all(schema["additionalProperties"] is False for schema in schemas.values())

        for target in (f"{program}:step", str(program), "model:step", "json:dumps"):
            assert (await call(client, "hlo", target=target))["error"]["code"] == "not_allowed", target
        other = await call(client, "hlo", target="selu", diff=f"{program}:step")
        assert other["error"]["code"] == "not_allowed"
        wrong = await call(client, "hlo", target="selu", settings=["nothing=1"], arguments=["f32[2]"])
        assert wrong["error"]["code"] == "usage", "a workload takes no --arg"
        for name, arguments in {
            "explain": {"session": f"{program}:step"},
            "show": {"session": str(program)},
            "compare": {"before": f"{program}:step", "after": str(program)},
            "query": {"sql": "SELECT * FROM runs", "sessions": [str(program)]},
        }.items():
            assert (await call(client, name, **arguments))["kind"] == "error"
        assert (await call(client, "run", target=f"{program}:step"))["kind"] == "error"

        url = f"file://{kept}"
        for name, arguments in {
            "explain": {"session": url},
            "show": {"session": url},
            "compare": {"before": url, "after": url},
            "query": {"sql": "FROM runs", "sessions": [url]},
            "hlo": {"target": str(kept), "diff": url},
        }.items():
            assert "URLs are not allowed here" in (await call(client, name, **arguments))["error"]["message"], name
        assert not (state_home / "fetched").exists()

        answer = await call(client, "query", sql=wide, sessions=[str(kept)], limit=500)
        assert len(answer["data"]["rows"]) == 50
        assert answer["truncated"]["rows"] > 0
        answer = await call(client, "query", sql="SELECT repeat('x', 30000) AS x", sessions=[str(kept)])
        assert answer["error"]["code"] == "too_long"

        assert "query" in (await call(client, "docs"))["data"]["pages"]
        text, offset = "", 0
        while offset is not None:
            piece = (await call(client, "docs", page="query", offset=offset))["data"]
            text, offset = text + piece["text"], piece["next_offset"]
        assert text == (SOURCE.parent / "docs" / "query.md").read_text()
        found = (await call(client, "docs", search="persistent compilation cache"))["data"]["found"]
        assert found
        assert all("cache" in f"{hit['heading']} {hit['text']}".lower() for hit in found)
    assert not ran.exists()


@pytest.mark.process
async def test_running_code_and_fetching_urls_are_there_if_they_are_allowed(
    kept: Path, state_home: Path, tmp_path: Path
) -> None:
    url = f"file://{kept}"
    async with serving(state_home, "--allow-run", "--allow-urls") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == READING | {"run", "ab"}
        at_will = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
        assert at_will == READING - {"hlo"}, "what compiles a function of the user's runs its file"
        assert tools["show"].annotations.open_world_hint is True
        assert (await call(client, "show", session=url))["kind"] == "session"
        assert (await call(client, "hlo", target=url, diff=url))["kind"] == "hlo-diff"
        program = tmp_path / "model.py"
        program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef step(x): return x\n")
        for target in ({"target": f"file://{program}"}, {"target": str(kept), "diff": f"file://{program}"}):
            assert "what comes from a URL is not run" in (await call(client, "hlo", **target))["error"]["message"]
        assert not (tmp_path / "ran").exists()


async def test_a_long_answer_is_cut_and_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"name": "x" * 300, "inner": [1.0] * 40} for _ in range(500)]
    whole = {"schema": "3.0", "kind": "query", "data": {"rows": rows}, "truncated": {"rows": 7}, "next": []}
    asked = []

    async def run(words: list[str], seconds: float) -> answers.ToolAnswer:
        asked.append(words)
        return answers.ToolAnswer(json.dumps(whole))

    monkeypatch.setattr(answers, "_run", run)
    answer = json.loads((await answers.answer_of_command("query", [], ["x"], seconds=1, limit=500)).text)
    assert len(asked) == 1
    assert len(answer["data"]["rows"]) + answer["truncated"]["rows"] == 507
    assert answer["next"] == []
    whole["data"] = {"rows": [{"x": "x" * 30_000}]}
    assert (await answers.answer_of_command("query", [], ["x"], seconds=1, limit=500)).is_error


@pytest.mark.process
@pytest.mark.parametrize("text", ["a\0b", "x" * (3 << 20)], ids=["null", "long"])
async def test_what_no_command_line_holds_is_an_answer(text: str) -> None:
    answer = await answers.answer_of_command("query", [], [text], seconds=60)
    assert json.loads(answer.text)["error"]["code"] == "usage"


@pytest.mark.process
async def test_a_command_that_writes_without_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = [sys.executable, "-c", "while True: print('x' * 10**6)"]
    monkeypatch.setattr(answers, "python_words", lambda *words: endless)
    monkeypatch.setattr(answers, "_MOST_READ", 1 << 20)
    answer = await answers.answer_of_command("query", [], ["x"], seconds=60)
    assert json.loads(answer.text)["error"]["code"] == "too_long"


def test_without_the_extra_or_at_a_terminal_it_says_what_to_do(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else found(name))
    said = caller("mcp")
    assert said.code == 2
    assert "-m pip install 'mcp>=2.3,<3'" in said.err
    monkeypatch.undo()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert "this is a terminal" in caller("mcp").err
