"""`jaxprof gate`: programs whose truth is known, each limit, each form, each exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli.calling import Caller
from folding import fold
from jaxprof import events as e
from jaxprof.analysis.gate import GateLimit, judged, read_limit
from jaxprof.analysis.opener import modules_of
from jaxprof.analysis.run_difference import run_difference
from jaxprof.cli import hlo_target
from jaxprof.cli.hlo_target import TargetModule
from jaxprof.errors import UsageError
from jaxprof.session import Session
from jaxprof.session.log import LogWriter
from report import sessions

pytestmark = pytest.mark.usefixtures("state_home")

COLLECTIVE = """HloModule jit_f, is_scheduled=true, num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

ENTRY %main (x: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0} parameter(0)
  ROOT %all-reduce = f32[1000]{0} all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%sum
}
"""


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


def _cost(flops: float | None) -> e.CostReported:
    return e.CostReported(run="r1", flops=flops, bytes_accessed=100.0, source=e.ESTIMATED_BY)


@pytest.mark.parametrize(
    ("limit", "after", "state"),
    [
        ("flops", 100.0, "within"),
        ("flops", 99.0, "within"),
        ("flops", 101.0, "passed"),
        ("flops:1%", 101.0, "within"),
        ("flops:1%", 101.1, "passed"),
        ("flops:0.5 %", 101.0, "passed"),
        ("flops", None, "undecided"),
    ],
)
def test_a_fact_may_grow_by_its_share(limit: str, after: float | None, state: str) -> None:
    assert _state(_session(None, _cost(100.0)), _session(None, _cost(after)), limit) == state


_LOOP = """HloModule m, is_scheduled=true

body {
  s = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[100]{0} get-tuple-element(s), index=1
  double = f32[100]{0} add(x, x)
  ROOT next = (s32[], f32[100]) tuple(i, double)
}

test {
  t = (s32[], f32[100]) parameter(0)
  ROOT on = pred[] constant(true)
}

ENTRY main {
  a = (s32[], f32[100]) parameter(0)
  ROOT w = (s32[], f32[100]) while(a), condition=test, body=body, backend_config={"known_trip_count":{"n":"10"}}
}
"""
_UNROLLED = (
    _LOOP.partition("body {")[0]
    + """ENTRY main {
  x0 = f32[100]{0} parameter(0)
"""
    + "\n".join(f"  x{n} = f32[100]{{0}} add(x{n - 1}, x{n - 1})" for n in range(1, 11))
    + "\n}\n"
)


@pytest.mark.parametrize("fact", ["flops", "bytes"])
def test_the_turns_of_a_loop_count(fact: str) -> None:
    loop, more = _session(_LOOP), _session(_LOOP.replace('"10"', '"100"'))
    unknown = _session(_LOOP.replace("known_trip_count", "other"))
    assert _state(loop, more, fact) == "passed"
    assert _state(loop, loop, fact) == _state(loop, _session(_UNROLLED), fact) == "within"
    assert _state(loop, unknown, fact) == _state(unknown, loop, fact) == "undecided"


def test_constants_are_known_where_only_the_sums_of_memory_are() -> None:
    def holding(count: int) -> Session:
        hlo = f"""HloModule m, is_scheduled=true

ENTRY main {{
  x = f32[{count}]{{0}} parameter(0)
  c = f32[{count}]{{0}} constant({{...}})
  ROOT y = f32[{count}]{{0}} add(x, c)
}}
"""
        sums = e.MemoryReported(run="r1", argument_bytes=4, output_bytes=4, temporary_bytes=0)
        return _session(hlo, sums)

    assert _state(holding(10), holding(10), "constant") == "within"
    assert _state(holding(10), holding(20), "constant") == "passed"


def test_less_donated_memory_is_worse() -> None:
    def donating(size: int) -> Session:
        return _session(None, e.MemoryReported(run="r1", alias_bytes=size))

    assert _state(donating(4096), donating(0), "donated") == "passed"
    assert _state(donating(0), donating(4096), "donated") == "within"


def test_another_kind_of_collective_is_more_of_it() -> None:
    halves = COLLECTIVE.replace("{{0,1,2,3}}", "{{0,1},{2,3}}")
    assert _state(_session(COLLECTIVE), _session(COLLECTIVE), "collectives") == "within"
    before, after = _session(COLLECTIVE), _session(halves)
    (row,) = judged("x", run_difference(before, before.runs["r1"], after, after.runs["r1"]), [GateLimit("collectives")])
    assert (row.state, row.reason) == ("passed", "all-reduce over 2 devices: 0 → 1")
    assert _state(_session(sessions.HLO), _session(COLLECTIVE), "collectives") == "passed"


def test_another_size_decides_nothing() -> None:
    assert _state(_session(parameters={"n": 1}), _session(parameters={"n": 2}), "kernels") == "undecided"


@pytest.mark.parametrize(
    "text", ["", "flops:", "flops:-1%", "flops:1", "run", "run:0%", "transfer_in:5%", "kernel", "flops:1%x"]
)
def test_a_limit_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError):
        read_limit(text)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Session]:
    """Programs by name, as if they had been compiled."""
    found: dict[str, Session] = {}

    def find(name: str, *_: Any, **__: Any) -> list[TargetModule]:
        return [TargetModule(stages, found[name]) for stages in modules_of(found[name])]

    monkeypatch.setattr(hlo_target, "find_modules", find)
    return found


def test_exit_codes_and_forms(call: Caller, known: dict[str, Session]) -> None:
    known |= {"old:f": _session(), "new:f": _session(sessions.HLO.replace("f32", "f64"))}
    words = ("gate", "new:f", "--base", "old:f", "--fail-on", "kernels", "--fail-on", "bytes:1%")
    said = call(*words)
    assert (said.code, said.out.splitlines()[0]) == (3, "a limit was exceeded")
    states = {row["limit"]: row["state"] for row in call(*words, "--format", "json").data["limits"]}
    assert states == {"kernels": "within", "bytes:1%": "passed"}
    assert "| exceeded |" in call(*words, "--format", "markdown").out
    xml = ElementTree.fromstring(call(*words, "--format", "junit").out)
    assert (xml.attrib["tests"], xml.attrib["failures"], xml.attrib["skipped"]) == ("2", "1", "0")
    assert [case.attrib["name"] for case in xml.iter("testcase") if case.find("failure") is not None] == ["bytes:1%"]
    assert [failure.attrib["type"] for failure in xml.iter("failure")] == ["exceeded"]
    assert call(*words, "--fail-on", "peak").out.startswith("2 limits were exceeded\n")
    assert call("gate", "old:f", "--base", "old:f", "--fail-on", "bytes").code == 0


def test_each_device_is_held_against_its_own(call: Caller, known: dict[str, Session]) -> None:
    known |= {"old:f": _session(devices=("h100", "tpu-v5e")), "new:f": _session(devices=("tpu-v5e", "h100"))}
    known["other:f"] = _session(devices=("a100",))
    words = ("--fail-on", "kernels", "--format", "json")
    rows = call("gate", "new:f", "--base", "old:f", *words).data["limits"]
    assert [row["label"].split()[-1] for row in rows] == ["tpu-v5e", "h100"]
    said = call("gate", "new:f", "--base", "other:f", *words)
    assert (said.code, "a100" in said.err) == (2, True)


def test_names_cannot_break_the_xml_or_the_terminal(call: Caller, known: dict[str, Session]) -> None:
    known |= {name: _session(workload='a"<&\x1b[31m') for name in ("old:f", "new:f")}
    words = ("gate", "new:f", "--base", "old:f", "--fail-on", "kernels")
    assert "\x1b" not in call(*words).out
    xml = ElementTree.fromstring(call(*words, "--format", "junit").out)
    (case,) = xml.iter("testcase")
    assert case.attrib["classname"].startswith('a"<&')


@pytest.mark.process
def test_a_program_compiled_now_against_a_kept_one(call: Caller, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("import jax.numpy as jnp\n\ndef step(x):\n    return jnp.tanh(x)\n")
    target, base = f"{own}:step", tmp_path / "base.jaxprof"
    assert call("hlo", target, "--arg", "f32[64]", "--out", base).code == 0
    words = ("--base", base, "--arg", "f32[64]", "--fail-on", "kernels", "--fail-on", "flops", "--fail-on", "peak:1%")
    own.write_text("import jax.numpy as jnp\n\ndef step(x):\n    return jnp.tanh(x) + jnp.sort(x)\n")
    assert call("gate", target, *words).code == 3


@pytest.mark.parametrize(
    ("more", "ended", "code", "state"), [(0, True, 0, "within"), (1, True, 3, "passed"), (0, False, 0, "undecided")]
)
def test_a_recorded_program_is_gated_on_its_compiles(
    call: Caller, tmp_path: Path, more: int, ended: bool, code: int, state: str
) -> None:
    for name, count in (("before", 2), ("now", 2 + more)):
        writer = LogWriter(sessions.HEADER, tmp_path / f"{name}.jaxprof")
        spec = e.RunSpec(workload="train.py", variant="program", how="program", device="host")
        events: list[e.Event] = [
            e.RunPlanned(run="r1", spec=spec),
            e.ProgramStarted(run="r1", argv=["train.py"], how="script"),
        ]
        events += [e.Compiled(run="r1", function="step", compile_seconds=0.1) for _ in range(count)]
        events.append(e.Compiled(run="r1", function="only_traced", trace_seconds=0.1))
        if ended or name == "before":
            events += [e.ProgramEnded(run="r1", exit_code=0, wall_seconds=1.0), e.RunFinished(run="r1", status="ok")]
        for event in events:
            writer.append(event)
        writer.close()
    words = ("--base", tmp_path / "before.jaxprof", "--fail-on", "compiles", "--format", "json")
    said = call("gate", tmp_path / "now.jaxprof", *words)
    (row,) = said.data["limits"]
    assert (said.code, row["state"], row["before"]) == (code, state, 2)


def test_test_results_beside_another_form(call: Caller, known: dict[str, Session], tmp_path: Path) -> None:
    known |= {"old:f": _session(), "new:f": _session(sessions.HLO.replace("f32", "f64"))}
    words = ("gate", "new:f", "--base", "old:f", "--fail-on", "bytes", "--format", "markdown")
    said = call(*words, "--junit", tmp_path / "gate.xml")
    assert (said.code, said.out) == (3, call(*words).out)
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().attrib["failures"] == "1"
    said = call(*words, "--junit", tmp_path / "no" / "gate.xml")
    assert (said.code, "gate.xml cannot be written" in said.err) == (2, True)
