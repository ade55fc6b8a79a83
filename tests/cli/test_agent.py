"""The skill; the tools as a client has them: a real server, over real pipes."""

import importlib.util
import json
import re
import sys
from contextlib import asynccontextmanager

import pytest

from cli.calling import SOURCE, understood
from folding import written
from jaxprof.base.operating_system import OWN_CODE
from jaxprof.cli.commands.agent import SKILL
from jaxprof.remote import URLS
from query.conftest import InThisProcess
from report import sessions
from tables import rows

pytestmark = pytest.mark.usefixtures("answers")

READING = {"explain", "explain_code", "open_session", "query", "query_schema", "compare", "list_sessions", "hlo"}
DOCS = SOURCE.parent / "docs"


@pytest.fixture(scope="module")
def answers():
    """What answers. Imported where these tests run, not wherever they are collected: that takes a second."""
    pytest.importorskip("mcp")
    from jaxprof.cli import agent_server

    return agent_server


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    for name in (URLS, OWN_CODE):
        monkeypatch.setenv(name, "")


@pytest.fixture
def kept(state_home):
    path = state_home / "sessions" / "2026-11-21T05-05-06-captured.jaxprof"
    return written(path, sessions.captured_events(), sessions.HEADER)


@asynccontextmanager
async def serving(state_home, *options):
    import mcp

    environment = {"PYTHONPATH": str(SOURCE), "JAXPROF_HOME": str(state_home)}
    words = ["-m", "jaxprof", "agent", "mcp", *options]
    started = mcp.StdioServerParameters(command=sys.executable, args=words, env=environment)
    async with mcp.Client(started, read_timeout_seconds=100) as client:
        yield client


def answer_in(result):
    """The answer in a result, whose mark as an error agrees with what it says."""
    from jaxprof.cli.agent_server import MOST_CHARACTERS

    (content,) = result.content
    assert len(content.text) <= MOST_CHARACTERS
    answer = json.loads(content.text)
    assert result.is_error is (answer["kind"] == "error")
    return answer


async def asked(client, name, **arguments):
    return answer_in(await client.call_tool(name, arguments))


@pytest.mark.process
async def test_the_tools_answer_as_the_commands_do_and_run_no_code(state_home, kept, tmp_path):
    program = tmp_path / "model.py"
    program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef step(x): return x\n")
    step = f"{program}:step"
    async with serving(state_home) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        for tool in tools:
            assert tool.annotations.read_only_hint is True
            assert tool.description
            assert tool.input_schema["additionalProperties"] is False

        name = (await asked(client, "list_sessions"))["data"]["sessions"][0]["name"]
        assert name == kept.stem, "a name that the other tools take"
        for tool, arguments, kind in (
            ("explain", {"session": name}, "explanation"),
            ("explain_code", {"code": "all"}, "catalogue"),
            ("query_schema", {"table": "phases"}, "query-schema"),
            ("compare", {"before": f"{name}:r1", "after": f"{name}:r2"}, "comparison"),
            ("hlo", {"target": name, "diff": name}, "hlo-diff"),
        ):
            assert (await asked(client, tool, **arguments))["kind"] == kind
        shown = await asked(client, "open_session", session=name, view="kernels", run="r2", limit=1)
        assert len(shown["data"]["runs"][0]["kernels"]) == 1
        assert shown["truncated"]["runs.kernels"] == 2
        for tool, arguments, code in (
            ("open_session", {"file": "last"}, "usage"),
            ("query", {"sql": "-"}, "usage"),  # stdin is the client's
            ("hlo", {"target": step}, "not_allowed"),
            ("compare", {"before": step, "after": str(program)}, "file_refused"),
        ):
            assert (await asked(client, tool, **arguments))["error"]["code"] == code
    assert not (tmp_path / "ran").exists()
    assert not (state_home / "fetched").exists()


async def test_what_is_refused_is_an_error_with_its_code(answers, kept, state_home, tmp_path, monkeypatch, call):
    """Asked of the server in this process, which runs the commands here."""
    program = tmp_path / "model.py"
    program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef step(x): return x\n")

    async def run(words, seconds):
        return call(*words).out.strip()

    monkeypatch.setattr("jaxprof.query.sql_process.SqlProcess", InThisProcess)
    monkeypatch.setattr(answers, "_run", run)
    server = answers.make_server("", allow_run=False, allow_urls=False)
    url, step = f"file://{kept}", f"{program}:step"
    for tool, given, code in rows("""
        show     {"session": "--help"}                     usage
        show     {"view": "everything", "limit": 0}        usage
        run      {"target": "STEP"}                        usage
        query    {"sql": "FROM read_csv('/etc/passwd')"}   usage
        hlo      {"target": "json:dumps"}                  not_allowed
        hlo      {"target": "selu", "diff": "STEP"}        not_allowed
        compare  {"before": "URL", "after": "URL"}         usage
        query    {"sql": "FROM runs", "sessions": ["URL"]}  usage
        hlo      {"target": "KEPT", "diff": "URL"}         usage
    """):
        for word, place in (("STEP", step), ("URL", url), ("KEPT", kept)):
            given = given.replace(word, str(place))
        answer = answer_in(await server.call_tool(tool, json.loads(given)))
        assert answer["error"]["code"] == code, (tool, given)
    assert not (tmp_path / "ran").exists()
    assert not (state_home / "fetched").exists()


@pytest.mark.process
async def test_tools_that_need_permission(kept, state_home, tmp_path):
    url, program = f"file://{kept}", tmp_path / "model.py"
    program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef step(x): return x\n")
    async with serving(state_home, "--allow-run", "--allow-urls") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        at_will = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
        assert set(tools) == READING | {"run", "compare_code"}
        assert at_will == READING - {"hlo"}, "what compiles a function of the user's runs its file"
        assert tools["open_session"].annotations.open_world_hint is True
        assert (await asked(client, "hlo", target=url, diff=url))["kind"] == "hlo-diff"
        refused = await asked(client, "hlo", target=f"file://{program}")
        assert "what comes from a URL is not run" in refused["error"]["message"]
    assert not (tmp_path / "ran").exists()


async def test_a_long_answer_is_cut_and_not_asked_for_again(answers, monkeypatch):
    long = {"name": "x" * 300, "inner": [1.0] * 40}
    whole = {"schema": "3.0", "kind": "query", "data": {"rows": [long] * 500}, "truncated": {"rows": 7}, "next": []}
    asked = []

    async def run(words, seconds):
        asked.append(words)
        return json.dumps(whole)

    monkeypatch.setattr(answers, "_run", run)
    answer = answer_in(await answers.answer_of_command("query", [], ["x"], limit=500))
    assert (len(asked), len(answer["data"]["rows"]) + answer["truncated"]["rows"]) == (1, 507)
    short = answer_in(await answers.answer_of_command("query", [], ["x"]))
    assert 1 <= len(short["data"]["rows"]) <= 20
    assert len(json.dumps(short, separators=(",", ":"))) <= answers.SHORT_CHARACTERS
    whole["data"] = {"rows": [{"x": "x" * 30_000}]}
    assert answer_in(await answers.answer_of_command("query", [], ["x"], limit=500))["error"]["code"] == "too_long"


async def test_answer_has_no_key_for_what_is_unknown(answers, monkeypatch):
    data = {"runs": [{"hint": None, "notices": [], "status": "ok", "count": 0, "median_seconds": 0.001234567891}]}

    async def run(words, seconds):
        return json.dumps({"schema": "1.0", "kind": "session", "data": data, "truncated": {}, "next": []})

    monkeypatch.setattr(answers, "_run", run)
    answer = answer_in(await answers.answer_of_command("open", [], ["x"]))
    assert answer["data"] == {"runs": [{"notices": [], "status": "ok", "count": 0, "median_seconds": 0.0012346}]}


@pytest.mark.parametrize(("kind", "shown"), [("session", 3456.8), ("query", 3456.789012)])
async def test_answer_keeps_the_digits_that_mean_something(answers, monkeypatch, kind, shown):
    """Five digits of a time of day would be a day; of what SQL was asked for, none is dropped."""
    data = {"rows": [[1764416345.678, 3456.789012]]}

    async def run(words, seconds):
        return json.dumps({"schema": "1.0", "kind": kind, "data": data, "truncated": {}, "next": []})

    monkeypatch.setattr(answers, "_run", run)
    assert answer_in(await answers.answer_of_command("open", [], ["x"]))["data"]["rows"] == [[1764416345.678, shown]]


@pytest.mark.process
@pytest.mark.parametrize("text", ["a\0b", "x" * (3 << 20)], ids=["null", "long"])
async def test_what_no_command_line_holds_is_an_answer(answers, text):
    assert answer_in(await answers.answer_of_command("query", [], [text]))["error"]["code"] == "usage"


@pytest.mark.process
async def test_a_command_that_writes_without_end_is_killed(answers, monkeypatch):
    endless = [sys.executable, "-c", "while True: print('x' * 10**6)"]
    monkeypatch.setattr(answers, "python_words", lambda *words: endless)
    monkeypatch.setattr(answers, "_MOST_READ", 1 << 20)
    assert answer_in(await answers.answer_of_command("query", [], ["x"]))["error"]["code"] == "too_long"


def test_without_the_extra_or_at_a_terminal_it_says_what_to_do(call, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert "this is a terminal" in call("agent", "mcp").err
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else found(name))
    said = call("agent", "mcp")
    assert said.code == 2
    assert "-m pip install 'mcp>=2.3,<3'" in said.err


def test_the_tools_that_are_documented_are_those_that_there_are():
    table = re.findall(r"^\| (`.+?) \|", (DOCS / "mcp.md").read_text(), re.MULTILINE)
    assert {name for cell in table for name in re.findall(r"`(\w+)`", cell)} == READING


def test_the_skill_names_commands_that_are_understood(call):
    named = re.findall(r"`(jaxprof [^`>]+)`", SKILL)
    assert len(named) > 10
    for line in named:
        understood(line)
    assert call("agent", "skill").out.startswith("---\nname: jaxprof\ndescription: ")
