"""Compiling for devices that are not here, through the real engine. Skipped, with the reason, without the wheels."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from jaxprof.cli.selection import find_workloads
from jaxprof.devices.targets import parse_targets, wheels
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.read.parse import module
from jaxprof.runner import PlanOptions, Scheduler, find_interpreter, plan_compiles
from jaxprof.session.log import LogWriter, new_header

pytestmark = pytest.mark.process

HERE = Path(__file__).with_name("sharded")


def compiled(workload, target, *, wheels_needed=True, **settings):
    """The session in which a workload, or a function of the files in `sharded`, was compiled."""
    interpreter, (wanted,) = find_interpreter(), parse_targets(target)
    try:
        wheels.environment(wanted.chip.vendor, interpreter.path)
    except JaxprofError as error:
        if wheels_needed:
            pytest.skip(f"{error.what}: {error.hint}")
    (info,) = find_workloads([workload], interpreter, (), wanted.devices)
    scheduler = Scheduler(LogWriter(new_header(), None), interpreter, lambda batch: None)
    scheduler.add(plan_compiles(info, choice=PlanOptions(settings=settings), targets=[wanted]))
    scheduler.run()
    scheduler.close()
    return scheduler.session


def compiled_well(workload, target, **settings):
    session = compiled(workload, target, **settings)
    (run,) = session.runs.values()
    assert run.status == "ok", (run.error, run.advice, [line.text for line in run.log])
    return run, module(session.text(run.id, "hlo") or "")


def told(run):
    (message,) = (warning.message for warning in run.warnings if warning.code == "sharding")
    return message


def test_a_gpu_program_is_compiled_without_a_gpu():
    run, found = compiled_well("selu", "h100")
    assert "kind=kLoop" in found.text
    assert {"trace", "lower", "compile"} <= set(run.phases)
    assert run.memory.argument_bytes == 4_000_000
    assert run.samples("run") == []  # nothing was run


def test_a_tpu_program_is_compiled_without_a_tpu():
    assert "T(8,128)" in compiled_well("matmul", "tpu-v5e", n="512")[1].text


def counted(one):
    return Counter((kernel.kind, kernel.op_name, kernel.bytes, kernel.flops) for kernel in kernels(one))


@pytest.mark.parametrize("devices", ["h100:8", "tpu-v5e:2x4"])
def test_a_program_with_a_mesh_of_its_own_is_the_one_that_jax_makes_on_these_devices(devices, tmp_path):
    run, found = compiled_well(f"{HERE}/gpt.py:train_step", devices)
    interpreter, (target,) = find_interpreter(), parse_targets(devices)
    environment = {**os.environ, **wheels.environment(target.chip.vendor, interpreter.path)}
    script = [interpreter.path, str(HERE / "oracle.py"), devices, str(tmp_path / "hlo")]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert counted(found) == counted(module((tmp_path / "hlo").read_text()))
    assert found.attributes["num_partitions"] == "8"
    assert "words as data" in told(run)
    assert "/call_exported" not in found.text
    assert run.memory.alias_bytes  # the weights are donated


def test_without_the_wheels_the_run_fails_with_the_command_that_installs_them(monkeypatch, tmp_path):
    monkeypatch.setenv(wheels.FOLDER_VARIABLE, str(tmp_path))
    (run,) = compiled("selu", "tpu-v5e", wheels_needed=False).runs.values()
    assert run.status == "failed"
    assert "jaxprof devices target install tpu" in run.advice
