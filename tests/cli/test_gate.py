"""`jaxprof gate`: programs whose truth is known, each limit, each form, each exit code."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

import program_events
from folding import fold, written
from jaxprof import events as e
from jaxprof.analysis.gate import judged, read_limit
from jaxprof.analysis.hlo_program import HloProgram
from jaxprof.analysis.opener import modules_of
from jaxprof.analysis.run_difference import run_difference
from jaxprof.cli import hlo_target
from jaxprof.errors import UsageError
from jaxprof.session import Session
from job_folders import ALL_REDUCE
from report import sessions

pytestmark = pytest.mark.usefixtures("state_home")


def _session(
    hlo: str | None = sessions.HLO, *events: e.Event, devices: tuple[str, ...] = ("cpu:0",), **plan: Any
) -> Session:
    made: list[e.Event] = []
    for number, device in enumerate(devices, 1):
        spec = e.RunSpec(**{"workload": "f.py:step", "variant": "jit", "how": "compile", "device": device, **plan})
        made.append(e.RunPlanned(run=f"r{number}", spec=spec))
        if hlo is not None:
            made.append(e.TextRecorded(run=f"r{number}", name="hlo", text=hlo))
    return fold(sessions.HEADER, [*made, *events])


def _state(before: Session, after: Session, limit: str) -> str:
    (row,) = judged("x", run_difference(before, before.runs["r1"], after, after.runs["r1"]), [read_limit(limit)])
    return row.state


def _cost(flops: float | None) -> Session:
    cost = e.CostReported(run="r1", flops=flops, bytes_accessed=100.0, source=e.ESTIMATED_BY)
    return _session(None, cost)


def _donating(size: int) -> Session:
    return _session(None, e.MemoryReported(run="r1", alias_bytes=size))


def _holding(count: int) -> Session:
    """Only the sums of its memory are known, and what its constants take."""
    hlo = f"""HloModule m, is_scheduled=true

ENTRY main {{
  x = f32[{count}]{{0}} parameter(0)
  c = f32[{count}]{{0}} constant({{...}})
  ROOT y = f32[{count}]{{0}} add(x, c)
}}
"""
    sums = e.MemoryReported(run="r1", argument_bytes=4, output_bytes=4, temporary_bytes=0)
    return _session(hlo, sums)


@pytest.mark.parametrize(
    ("limit", "before", "after", "state"),
    [
        ("flops", _cost(100.0), _cost(100.0), "within"),
        ("flops", _cost(100.0), _cost(99.0), "within"),
        ("flops", _cost(100.0), _cost(101.0), "passed"),
        ("flops:1%", _cost(100.0), _cost(101.0), "within"),
        ("flops:1%", _cost(100.0), _cost(101.1), "passed"),
        ("flops:0.5 %", _cost(100.0), _cost(101.0), "passed"),
        ("flops", _cost(100.0), _cost(None), "undecided"),
        ("constant", _holding(10), _holding(10), "within"),
        ("constant", _holding(10), _holding(20), "passed"),
        ("donated", _donating(4096), _donating(0), "passed"),
        ("donated", _donating(0), _donating(4096), "within"),
        ("collectives", _session(ALL_REDUCE), _session(ALL_REDUCE), "within"),
        ("collectives", _session(), _session(ALL_REDUCE), "passed"),
        ("collectives", _session(ALL_REDUCE), _session(ALL_REDUCE.replace("{{0,1,2,3}}", "{{0,1},{2,3}}")), "passed"),
        ("kernels", _session(parameters={"n": 1}), _session(parameters={"n": 2}), "undecided"),
    ],
)
def test_what_is_more_or_worse_than_its_limit_allows(limit, before, after, state):
    assert _state(before, after, limit) == state


@pytest.mark.parametrize("text", ["", "flops:", "flops:-1%", "flops:1", "run", "run:0%", "transfer_in:5%", "kernel"])
def test_a_limit_that_cannot_be_read(text):
    with pytest.raises(UsageError):
        read_limit(text)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Session]:
    """Programs by name, as if they had been compiled."""
    found: dict[str, Session] = {}

    def find(name: str, *_: Any, **__: Any) -> list[HloProgram]:
        return [HloProgram(stages, found[name]) for stages in modules_of(found[name])]

    monkeypatch.setattr(hlo_target, "find_modules", find)
    return found


def test_the_form_for_ci_is_printed_or_written_beside_another_one(call, known, tmp_path):
    known |= {"old:f": _session(), "new:f": _session(sessions.HLO.replace("f32", "f64"))}
    words = ("gate", "new:f", "--base", "old:f", "--fail-on", "kernels", "--fail-on", "bytes:1%")
    said = call(*words, "--format", "markdown", "--junit", tmp_path / "gate.xml")
    assert (said.code, "| exceeded |" in said.out) == (3, True)
    root = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert root.attrib == {"tests": "2", "failures": "1", "skipped": "0", "errors": "0"}
    assert call(*words, "--junit", tmp_path / "no" / "gate.xml").code == 2
    assert call("gate", "old:f", "--base", "old:f", "--fail-on", "bytes").code == 0


def test_each_device_is_held_against_its_own(call, known):
    known |= {"old:f": _session(devices=("h100", "tpu-v5e")), "new:f": _session(devices=("tpu-v5e", "h100"))}
    known["other:f"] = _session(devices=("a100",))
    words = ("gate", "new:f", "--fail-on", "kernels", "--format", "json", "--base")
    assert [row["label"].split()[-1] for row in call(*words, "old:f").data["limits"]] == ["tpu-v5e", "h100"]
    assert call(*words, "other:f").code == 2


def test_names_cannot_break_the_xml_or_the_terminal(call, known, tmp_path):
    known |= {name: _session(workload='a"<&\x1b[31m') for name in ("old:f", "new:f")}
    words = ("gate", "new:f", "--base", "old:f", "--fail-on", "kernels")
    assert "\x1b" not in call(*words, "--junit", tmp_path / "gate.xml").out
    (case,) = ElementTree.parse(tmp_path / "gate.xml").iter("testcase")
    assert case.attrib["classname"].startswith('a"<&')


@pytest.mark.parametrize(
    ("count", "wall", "code", "state"), [(2, 1.0, 0, "within"), (3, 1.0, 3, "passed"), (2, None, 0, "undecided")]
)
def test_a_recorded_program_is_gated_on_its_compiles(call, tmp_path, count, wall, code, state):
    traced = program_events.compiled("only_traced", lower_seconds=None, compile_seconds=None)
    for name, number, took in (("before", 2, 1.0), ("now", count, wall)):
        program = program_events.program(*program_events.shaped(number), traced, wall=took)
        written(tmp_path / f"{name}.jaxprof", program, sessions.HEADER)
    words = ("--base", tmp_path / "before.jaxprof", "--fail-on", "compiles", "--format", "json")
    said = call("gate", tmp_path / "now.jaxprof", *words)
    (row,) = said.data["limits"]
    assert (said.code, row["state"], row["before"]) == (code, state, 2)
