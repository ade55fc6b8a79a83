"""`jaxprof gate baseline`, and the gate against one: saved, shown, accepted up to a value, deleted."""

import pytest

from cli.compiled import compiled
from folding import written
from jaxprof import events as e
from jaxprof.session.log.baselines import Baselines
from report import sessions

WHY = "the new loss needs it"


HLO = """HloModule jit_step, is_scheduled=true

ENTRY main {{
  x = f32[{flops}]{{0}} parameter(0)
  ROOT sum = f32[{flops}]{{0}} add(x, x)
}}
"""


def keep(path, flops=100, alias_bytes=64, **plan):
    """A session file of one compiled program."""
    donated = e.MemoryReported(run="r1", alias_bytes=alias_bytes)
    made = compiled(HLO.format(flops=flops), sessions.environment("r1", "0.10.2"), donated, **plan)
    return written(path, [*made, e.RunFinished(run="r1", status="ok"), e.SessionClosed()], sessions.HEADER)


@pytest.fixture
def base(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("baseline", "save", "main", keep(tmp_path / "base.jaxprof")).code == 0


def row(call, target, *words, limit="flops:1%"):
    """The exit code, and the row of the only limit."""
    said = call("gate", target, "--base", "main", "--fail-on", limit, "--format", "json", *words)
    (only,) = said.data["limits"]
    return said.code, only


def test_a_growth_that_was_accepted_is_within_up_to_its_value(base, call, tmp_path):
    now, more = keep(tmp_path / "now.jaxprof", 110), keep(tmp_path / "more.jaxprof", 111)
    assert row(call, now)[0] == 3
    for words in (("--accept", WHY), ()):
        code, accepted = row(call, now, *words)
        assert (code, accepted["state"], accepted["accepted"]["reason"]) == (0, "within", WHY)
    assert (accepted["accepted"]["value"], accepted["accepted"]["jax"]) == (110.0, "0.10.2")
    code, beyond = row(call, more)
    assert (code, beyond["state"], beyond["accepted"]) == (3, "passed", None)
    said = call("gate", now, "--base", "main", "--fail-on", "flops:1%").out
    assert said.startswith(f"exceeded, accepted: {WHY}\n")


def test_a_decision_is_about_one_program_and_one_fact_down_to_its_value(base, call, tmp_path):
    less = keep(tmp_path / "less.jaxprof", 110, alias_bytes=32)
    assert row(call, less, "--accept", WHY, limit="donated")[0] == 0
    assert row(call, less, limit="donated")[0] == 0
    assert row(call, less)[0] == 3
    assert row(call, keep(tmp_path / "least.jaxprof", alias_bytes=16), limit="donated")[0] == 3
    other = keep(tmp_path / "other.jaxprof", alias_bytes=32, workload="g.py:step", target="g.py:step")
    assert row(call, other, limit="donated")[0] == 3


def test_a_torn_file_of_decisions_ends_the_gate(base, call):
    path = Baselines().folder / "main.decisions.json"
    path.write_text('{"schema":1,"dec')
    for words in (("gate", "base.jaxprof", "--base", "main", "--fail-on", "flops"), ("baseline", "show", "main")):
        said = call(*words)
        assert (said.code, "main.decisions.json is damaged" in said.err, said.out) == (2, True, "")


def test_list_and_show(base, call, tmp_path):
    row(call, keep(tmp_path / "now.jaxprof", 110), "--accept", WHY)
    listed = call("baseline", "list", "--format", "json").data["baselines"]
    assert [(one["name"], one["programs"], one["decisions"]) for one in listed] == [("main", 1, 1)]
    assert "main" in call("baseline", "list").out
    assert WHY in call("baseline", "show", "main").out
    data = call("baseline", "show", "main", "--format", "json").data
    (program,) = data["programs"]
    assert (program["facts"]["flops"], program["jax"]) == (100.0, "0.10.2")
    assert data["decisions"][0]["reason"] == WHY


@pytest.mark.process
def test_what_is_there_is_replaced_or_deleted_on_request_alone(base, call, tmp_path):
    row(call, keep(tmp_path / "now.jaxprof", 110), "--accept", WHY)
    for words in (("save", "main", "base.jaxprof"), ("delete", "main")):
        assert call("baseline", *words).code == 2
    assert Baselines().names() == ["main"]
    said = call("baseline", "save", "main", "now.jaxprof", "--force")
    assert (said.code, "dropped: 1" in said.err) == (0, True)
    assert row(call, tmp_path / "now.jaxprof")[1]["before"] == 110
    assert call("baseline", "delete", "main", "--yes").code == 0
    assert Baselines().names() == []


@pytest.mark.process
def test_several_targets_are_compiled_into_one_baseline(call, tmp_path):
    own = tmp_path / "own.py"
    own.write_text(
        "def one(x):\n    return x + 1\n\ndef two(x):\n    return x * 2\n\ndef bad(x):\n    raise ValueError\n"
    )
    assert call("baseline", "save", "pair", f"{own}:one", f"{own}:two", "--arg", "f32[8]").code == 0
    programs = call("baseline", "show", "pair", "--format", "json").data["programs"]
    assert [program["program"].partition(" ")[0] for program in programs] == ["own.py:one", "own.py:two"]
    assert all(program["jax"] for program in programs)
    said = call("baseline", "save", "worse", f"{own}:bad", "--arg", "f32[8]")
    assert (said.code, Baselines().names()) == (1, ["pair"])
