"""What is decided where a program is compiled for several devices, on CPU devices in the place of a topology's: which
devices, how its inputs are split, and what is said of it. `test_ahead_of_time` does the same with real compilers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.measure.heard import of, phases
from jaxprof.engine.protocol.request import CompileRequest, encode_request
from jaxprof.events import RunFinished, RunSpec, SessionClosed, TextRecorded, WarningRaised
from jaxprof.hlo.analysis.collectives import collectives
from jaxprof.hlo.read.parse import module
from jaxprof.session.log.codec import decode_line

pytestmark = pytest.mark.process

HERE = Path(__file__).with_name("sharded")
DEVICES = 8
BOTH = ("f32[64,64]", "f32[64,64]")


@pytest.fixture(scope="module")
def elsewhere():
    """Compiles in one process with eight CPU devices; gives the events."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
        "PYTHONPATH": os.pathsep.join(("src", "tests")),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.measure.simulated_topology"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    requests, answers = process.stdin, process.stdout

    def compiled(target, arguments=(), variant="jit", keep_constants=False, parameters=None, **options):
        given = {"arguments": arguments, "keep_constants": keep_constants, "parameters": parameters or {}}
        spec = RunSpec(workload="w", variant=variant, how="compile", device="cpu:0", target=target, **given)
        request = {"platform": "cpu", "devices": DEVICES, "topology": "2x4", **options}
        requests.write(encode_request(CompileRequest(run="r1", spec=spec, **request)))
        requests.flush()
        events = []
        while not isinstance(event := decode_line(answers.readline()), SessionClosed):
            events.append(event)
        assert of(events, RunFinished) == events[-1:]
        return events

    yield compiled
    process.stdin.close()
    process.wait(60)
    process.stdout.close()


def hlo(events):
    assert events[-1].status == "ok", (events[-1].error, events[-1].advice)
    return module(text(events, "hlo"))


def text(events, name):
    return "".join(event.text for event in of(events, TextRecorded) if event.name == name)


def shapes(events):
    """Of the inputs, on each device."""
    return [parameter.shape.dimensions for parameter in hlo(events).entry.parameters]


def partitions(events):
    return hlo(events).attributes.get("num_partitions", "1")


def said(events):
    """What is said of the sharding, and the advice."""
    (warning,) = [event for event in of(events, WarningRaised) if event.code == "sharding"]
    return warning.message, warning.advice


def refused(events):
    assert events[-1].status == "failed"
    return events[-1]


def test_a_program_with_a_mesh_of_its_own_goes_on_the_same_places_of_the_targets(elsewhere):
    events = elsewhere(f"{HERE}/own_mesh.py:by_jit", BOTH)
    assert (partitions(events), shapes(events)) == ("8", [(16, 64), (64, 32)])
    assert hlo(events).name == "jit_by_jit"
    message, advice = said(events)
    assert message.endswith("mesh data=4, model=2: float32[64,64] x as data,-; float32[64,64] w as -,model")
    assert "--shard w=data" in advice
    assert "call_exported" not in text(events, "hlo").replace("@call_exported", "")
    assert 'op_name="x"' in text(events, "hlo")
    assert {"topology", "trace", "lower", "compile"} <= set(phases(events))


@pytest.mark.parametrize(
    ("function", "arguments", "first", "exchanged"),
    [
        ("by_shard_map", BOTH, (16, 32), "all-reduce"),
        ("by_types", (), (16, 64), "all-reduce"),
        ("gathered", ("f32[64]",), (16,), "all-gather"),
    ],
)
def test_other_ways_of_sharding(elsewhere, function, arguments, first, exchanged):
    """A `psum`, a sum over split rows, and a result that lies whole on each device."""
    events = elsewhere(f"{HERE}/own_mesh.py:{function}", arguments)
    assert (partitions(events), shapes(events)[0]) == ("8", first)
    assert {exchanged} == {one.opcode for one in collectives(hlo(events))}


def test_without_a_mesh_the_advice_says_how_to_give_one_and_with_one_the_weight_stays_whole(elsewhere):
    assert "--mesh data=4,model=2" in refused(elsewhere(f"{HERE}/context.py:constrained", BOTH)).advice
    events = elsewhere(f"{HERE}/context.py:constrained", BOTH, mesh={"data": 4, "model": 2}, shard=["x=data"])
    assert "x as data" in said(events)[0]
    assert set(shapes(events)) == {(16, 64), (64, 64)}


def test_arrays_bring_their_own_sharding_and_the_command_line_overrides_it(elsewhere):
    events = elsewhere(f"{HERE}/own_mesh.py:by_arrays")
    assert shapes(events) == [(16, 64), (64, 32)]
    assert said(events)[0].endswith("float32[64,64] x as data,-; float32[64,64] w as -,model")
    events = elsewhere(f"{HERE}/own_mesh.py:by_arrays", shard=["w=data,model"])
    assert shapes(events) == [(16, 64), (16, 32)]
    message, advice = said(events)
    assert message.endswith("float32[64,64] x as data,-; float32[64,64] w as data,model")
    assert advice == "", "whoever uses the option knows it"


def test_a_program_that_names_no_mesh_is_whole_on_each_device_unless_it_is_split(elsewhere):
    events = elsewhere(f"{HERE}/context.py:says_nothing")
    assert (partitions(events), shapes(events)) == ("8", [(64, 256), (256, 64), (64, 64)])
    assert "no input is split" in said(events)[0]
    events = elsewhere(f"{HERE}/context.py:says_nothing", shard=["x=0"])
    assert (partitions(events), shapes(events)) == ("8", [(64, 256), (256, 64), (8, 64)])
    assert "x as data; 2 other inputs have no sharding" in said(events)[0]
    assert "op_name=\"params[\\'w1\\']\"" in text(events, "hlo")


def test_the_companion_says_how_inputs_are_split_and_what_is_consumed_is_reused(elsewhere, tmp_path):
    file = tmp_path / "f.py"
    file.write_text(
        "import functools, jax\n"
        "from jax.sharding import PartitionSpec as P\n"
        "@functools.partial(jax.jit, donate_argnums=0)\n"
        "def step(w, x):\n    return w - 0.1 * (x.T @ (x @ w))\n"
        "def step_shardings(mesh):\n    return None, P(mesh.axis_names[0])\n"
    )
    arguments = ("f32[64,16]", "f32[32,64]")
    events = elsewhere(f"{file}:step", arguments)
    assert shapes(events) == [(64, 16), (4, 64)]
    assert said(events)[0].endswith("float32[32,64] x as data; 1 other input has no sharding")
    assert "input_output_alias" in text(events, "hlo").partition("\n")[0]
    finished = refused(elsewhere(f"{file}:step", ("f32[64,16]", "f32[33,64]")))
    assert "float32[33,64] x cannot be split along dimension 0 into 8" in finished.error


@pytest.mark.parametrize("platform", ["", "cpu"], ids=["this process's device", "elsewhere"])
def test_a_large_constant_stays_out_unless_it_is_wanted(elsewhere, tmp_path, platform):
    file = tmp_path / "f.py"
    file.write_text(
        "import numpy as np\nTABLE = np.arange(40, dtype=np.float32) ** 2 + 0.5\ndef f(x):\n    return x + TABLE\n"
    )
    for keep in (False, True):
        events = elsewhere(f"{file}:f", ("f32[40]",), keep_constants=keep, platform=platform, devices=1)
        assert hlo(events)
        assert ("1.521500e+03" in text(events, "stablehlo")) == keep


@pytest.mark.parametrize(("variant", "precise"), [("jit", False), ("jit-highest", True)])
def test_a_variants_precision_is_that_of_its_program(elsewhere, variant, precise):
    events = elsewhere("matmul", variant=variant, parameters={"n": 64}, devices=1)
    assert hlo(events)
    assert ("operand_precision={highest,highest}" in text(events, "hlo")) == precise
