"""Compiling for devices that are not here: which devices, how inputs are split, and what is said of it. On CPU devices
in the place of a topology's; and with real compilers, skipped, with the reason, without the wheels."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engine.measure.heard import of, phases
from golden import held_cases
from jaxprof.analysis.target import resolve
from jaxprof.base.errors import JaxprofError
from jaxprof.devices.absent import parse_targets, wheels
from jaxprof.engine.protocol import encode_request
from jaxprof.engine.protocol.request import CompileRequest
from jaxprof.events import RunFinished, RunSpec, SessionClosed, TextRecorded, WarningRaised
from jaxprof.hlo.kernels.collectives import collectives
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.text.parse import module
from jaxprof.runner.interpreter import find_interpreter
from jaxprof.runner.planning import PlanOptions, find_workloads, plan_compiles
from jaxprof.runner.scheduler import Scheduler
from jaxprof.session import LogWriter, new_header
from jaxprof.session.fold import with_text
from jaxprof.session.lines import decode_line
from waiting import SLOWER

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


PROGRAMS = {
    "a mesh of its own": ("own_mesh.py:by_jit", BOTH, {}),
    "a psum": ("own_mesh.py:by_shard_map", BOTH, {}),
    "axes that are part of the types": ("own_mesh.py:by_types", (), {}),
    "a result that lies whole on each device": ("own_mesh.py:gathered", ("f32[64]",), {}),
    "names of axes without a mesh": ("context.py:constrained", BOTH, {}),
    "names of axes with a mesh": (
        "context.py:constrained",
        BOTH,
        {"mesh": {"data": 4, "model": 2}, "shard": ["x=data"]},
    ),
    "arrays that are placed": ("own_mesh.py:by_arrays", (), {}),
    "arrays that are placed, one of them anew": ("own_mesh.py:by_arrays", (), {"shard": ["w=data,model"]}),
    "no mesh": ("context.py:says_nothing", (), {}),
    "no mesh, and a split": ("context.py:says_nothing", (), {"shard": ["x=0"]}),
    "a companion": ("context.py:step", ("f32[64,16]", "f32[32,64]"), {}),
    "a companion that does not fit": ("context.py:step", ("f32[64,16]", "f32[33,64]"), {}),
}


@pytest.fixture(scope="module")
def compiled(elsewhere):
    return {
        name: elsewhere(f"{HERE}/{target}", arguments, **options)
        for name, (target, arguments, options) in PROGRAMS.items()
    }


def text(events, name):
    return "".join(event.text for event in of(events, TextRecorded) if event.name == name)


def hlo(events):
    assert events[-1].status == "ok", (events[-1].error, events[-1].advice)
    return module(text(events, "hlo"))


def in_words(events):
    """How a program lies on the devices: its inputs and its results on each of them, what they exchange, and what is
    said of it. Of one that is refused, the advice."""
    if events[-1].status == "failed":
        return f"  {events[-1].advice}\n"
    found = hlo(events)
    inputs = sorted(parameter.shape.dimensions for parameter in found.entry.parameters)
    results = [leaf.dimensions for leaf in found.entry.root.shape.leaves()]
    (warning,) = [with_text(event) for event in of(events, WarningRaised) if event.code == "sharding"]
    lines = (
        f"{found.attributes['num_partitions']} partitions: {inputs} → {results}",
        f"exchanged: {sorted({one.opcode for one in collectives(found)})}",
        warning.message,
        warning.advice,
    )
    return "".join(f"  {line}\n" for line in lines)


def test_a_program_goes_on_the_same_places_of_the_targets(compiled):
    held_cases("absent_devices.txt", {name: in_words(events) for name, events in compiled.items()})


def test_portable_program_keeps_names_and_donation(compiled):
    events = compiled["a mesh of its own"]
    assert hlo(events).name == "jit_by_jit"
    assert "call_exported" not in text(events, "hlo").replace("@call_exported", "")
    assert 'op_name="x"' in text(events, "hlo")
    assert {"topology", "trace", "lower", "compile"} <= set(phases(events))
    assert "op_name=\"params[\\'w1\\']\"" in text(compiled["no mesh, and a split"], "hlo")
    assert "input_output_alias" in text(compiled["a companion"], "hlo").partition("\n")[0]
    refused = compiled["a companion that does not fit"][-1]
    assert "float32[33,64] x cannot be split along dimension 0 into 8" in refused.error


@pytest.mark.parametrize("platform", ["", "cpu"], ids=["this process's device", "elsewhere"])
def test_a_large_constant_stays_out_unless_it_is_wanted(elsewhere, platform):
    for keep in (False, True):
        target = f"{HERE}/context.py:adds_a_table"
        events = elsewhere(target, ("f32[40]",), keep_constants=keep, platform=platform, devices=1)
        assert hlo(events)
        assert ("1.521500e+03" in text(events, "stablehlo")) == keep


@pytest.mark.parametrize(("variant", "precise"), [("jit", False), ("jit-highest", True)])
def test_a_variants_precision_is_that_of_its_program(elsewhere, variant, precise):
    events = elsewhere("matmul", variant=variant, parameters={"n": 64}, devices=1)
    assert hlo(events)
    assert ("operand_precision={highest,highest}" in text(events, "hlo")) == precise


def compiled_for(workload, target, *, wheels_needed=True, **settings):
    """The session in which a workload, or a function of the files in `sharded`, was compiled."""
    interpreter, (wanted,) = find_interpreter(), parse_targets(target)
    try:
        wheels.environment(wanted.chip.vendor, interpreter.path)
    except JaxprofError as error:
        if wheels_needed:
            pytest.skip(f"{error.what}: {error.hint}")
    (info,) = find_workloads([resolve(workload, code=True)], interpreter, (), wanted.devices)
    scheduler = Scheduler(LogWriter(new_header(), None), interpreter, lambda batch: None)
    scheduler.add(plan_compiles(info, "", PlanOptions(settings=settings), [wanted]))
    scheduler.run()
    scheduler.close()
    return scheduler.session


def compiled_well(workload, target, **settings):
    session = compiled_for(workload, target, **settings)
    (run,) = session.runs.values()
    assert run.status == "ok", (run.error, run.hint, [line.text for line in run.log])
    return run, module(session.text(run.id, "hlo") or "")


def test_a_gpu_program_is_compiled_without_a_gpu():
    run, found = compiled_well("selu", "h100")
    assert "kind=kLoop" in found.text
    assert {"trace", "lower", "compile"} <= set(run.phases)
    assert run.memory.argument_bytes == 4_000_000
    assert run.samples("run") == []  # nothing was run


def test_a_kernel_of_pallas_triton_is_compiled_without_a_gpu():
    found = compiled_well(f"{HERE}/pallas_triton.py:add", "h100")[1]
    assert [kernel.kind for kernel in kernels(found)] == ["Triton kernel"]


def test_a_tpu_program_is_compiled_without_a_tpu():
    assert "T(8,128)" in compiled_well("matmul", "tpu-v5e", n="512")[1].text


def counted(one):
    return Counter((kernel.kind, kernel.op_name, kernel.bytes, kernel.flops) for kernel in kernels(one))


@pytest.mark.parametrize("devices", ["h100:8", "tpu-v5e:2x4"])
def test_program_with_its_own_mesh_is_what_jax_makes(devices, tmp_path):
    run, found = compiled_well(f"{HERE}/gpt.py:train_step", devices)
    interpreter, (target,) = find_interpreter(), parse_targets(devices)
    environment = {**os.environ, **wheels.environment(target.chip.vendor, interpreter.path)}
    script = [interpreter.path, str(HERE / "oracle.py"), devices, str(tmp_path / "hlo")]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=200 * SLOWER)
    assert done.returncode == 0, done.stderr
    assert counted(found) == counted(module((tmp_path / "hlo").read_text()))
    assert found.attributes["num_partitions"] == "8"
    (warning,) = [warning for warning in run.warnings if warning.code == "sharding"]
    assert "words as data" in warning.message
    assert "/call_exported" not in found.text
    assert run.memory.alias_bytes  # the weights are donated


def test_missing_wheels_fail_with_the_install_command(monkeypatch, tmp_path):
    monkeypatch.setenv(wheels.FOLDER_VARIABLE, str(tmp_path))
    (run,) = compiled_for("selu", "tpu-v5e", wheels_needed=False).runs.values()
    assert run.status == "failed"
    assert "jaxprof devices target install tpu" in run.hint
