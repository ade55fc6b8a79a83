"""Compiling for devices that are not here, through the real engine. Skipped, with the reason, without the wheels."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from jaxprof.cli.selection import find_workloads
from jaxprof.devices.targets import Target, parse_mesh, parse_targets, wheels
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.collectives import collectives
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.model import Module
from jaxprof.hlo.read.parse import module
from jaxprof.runner import PlanOptions, Scheduler, find_interpreter, plan_compiles
from jaxprof.session import Run, Session
from jaxprof.session.log import LogWriter, new_header
from jaxprof.workloads import built_in
from jaxprof.workloads.model import workload_info


def needs_compilers(target: Target) -> None:
    try:
        wheels.environment(target.chip.vendor, find_interpreter().path)
    except JaxprofError as error:
        pytest.skip(f"{error.what}: {error.hint}")


def compiled(
    workload: str, targets: str, settings: dict[str, str] | None = None, shard: tuple[str, ...] = ()
) -> Session:
    interpreter = find_interpreter()
    for target in parse_targets(targets):
        needs_compilers(target)
    scheduler = Scheduler(LogWriter(new_header(), None), interpreter, lambda batch: None)
    choice = PlanOptions(settings=settings or {})
    scheduler.add(
        plan_compiles(
            workload_info(built_in(workload)), choice=choice, targets=parse_targets(targets), shard=list(shard)
        )
    )
    scheduler.run()
    scheduler.close()
    return scheduler.session


def only(session: Session) -> Run:
    (run,) = session.runs.values()
    assert run.status == "ok", (run.error, run.advice, [line.text for line in run.log])
    return run


def test_a_gpu_program_is_compiled_without_a_gpu() -> None:
    session = compiled("selu", "h100")
    run = only(session)
    hlo = session.text(run.id, "hlo")
    assert hlo is not None
    assert "kind=kLoop" in hlo
    assert {"trace", "lower", "compile"} <= set(run.phases)
    assert run.memory is not None
    assert run.memory.argument_bytes == 4_000_000
    assert run.samples("run") == []  # nothing was run


def test_a_batch_is_split_over_several_gpus_and_the_gradients_are_summed() -> None:
    session = compiled("mlp-train-step", "h100:8")
    run = only(session)
    hlo = session.text(run.id, "hlo") or ""
    assert "num_partitions=8" in hlo
    assert "all-reduce" in hlo
    assert any("over 8 devices" in warning.message for warning in run.warnings)


def test_what_is_split_can_be_said() -> None:
    session = compiled("matmul", "h100:2", {"n": "64"}, shard=("0=-,data",))
    assert "x as -,data" in told(only(session))
    failed = compiled("matmul", "h100:2", {"n": "63"}, shard=("0=data",))
    (run,) = failed.runs.values()
    assert run.status == "failed"
    assert "cannot be split" in run.error


def told(run: Run) -> str:
    (message,) = (warning.message for warning in run.warnings if warning.code == "sharding")
    return message


HERE = Path(__file__).with_name("sharded")


def sharded(
    target: str, devices: str, *, shard: tuple[str, ...] = (), mesh: str = "", arguments: tuple[str, ...] = ()
) -> tuple[Run, Module]:
    """The run and the HLO of a function of the files in `sharded`."""
    interpreter = find_interpreter()
    (wanted,) = parse_targets(devices)
    needs_compilers(wanted)
    (info,) = find_workloads([f"{HERE}/{target}"], interpreter, arguments, wanted.devices)
    scheduler = Scheduler(LogWriter(new_header(), None), interpreter, lambda batch: None)
    scheduler.add(
        plan_compiles(
            info, "", PlanOptions(arguments=arguments), [wanted], list(shard), parse_mesh(mesh) if mesh else {}
        )
    )
    scheduler.run()
    scheduler.close()
    (run,) = scheduler.session.runs.values()
    if run.status != "ok":
        raise JaxprofError(run.error, run.advice)
    return run, module(scheduler.session.text(run.id, "hlo") or "")


def counted(one: Module) -> Counter[tuple[str, str, int, float | None]]:
    return Counter((kernel.kind, kernel.op_name, kernel.bytes, kernel.flops) for kernel in kernels(one))


@pytest.mark.parametrize("devices", ["h100:8", "tpu-v5e:2x4"])
def test_a_program_with_a_mesh_of_its_own_is_the_one_that_jax_makes_on_these_devices(
    devices: str, tmp_path: Path
) -> None:
    run, found = sharded("gpt.py:train_step", devices)
    interpreter = find_interpreter()
    (target,) = parse_targets(devices)
    environment = {**os.environ, **wheels.environment(target.chip.vendor, interpreter.path)}
    script = [interpreter.path, str(HERE / "oracle.py"), devices, str(tmp_path / "hlo")]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert counted(found) == counted(module((tmp_path / "hlo").read_text()))
    assert "words as data" in told(run)
    assert "/call_exported" not in found.text
    assert run.memory is not None
    assert run.memory.alias_bytes  # the weights are donated


@pytest.mark.parametrize("function", ["by_jit", "by_shard_map", "by_arrays", "by_types", "with_statics"])
def test_each_way_of_sharding(function: str) -> None:
    arguments = ("f32[64,64]", "f32[64,64]") if function in ("by_jit", "by_shard_map") else ()
    _, found = sharded(f"own_mesh.py:{function}", "h100:8", arguments=arguments)
    assert found.attributes["num_partitions"] == "8"
    assert found.name.startswith(f"jit_{function}")
    exchanges = function in ("by_shard_map", "by_types")  # a psum, and a sum over split rows
    assert exchanges == ("all-reduce" in {one.opcode for one in collectives(found)})
    assert found.entry is not None
    rows, columns = found.entry.parameters[0].shape.dimensions
    assert rows == 16  # a quarter of them, on each device
    assert columns == (32 if function == "by_shard_map" else 64)


def test_without_a_mesh_the_advice_says_how_to_give_one_and_with_one_the_weight_stays_whole() -> None:
    both = ("f32[64,64]", "f32[64,64]")
    with pytest.raises(JaxprofError) as caught:
        sharded("context.py:constrained", "h100:8", arguments=both)
    assert "--mesh data=4,model=2" in caught.value.hint
    run, found = sharded("context.py:constrained", "h100:8", arguments=both, mesh="data=4,model=2", shard=("x=data",))
    assert "x as data" in told(run)
    assert found.entry is not None
    shapes = {parameter.shape.dimensions for parameter in found.entry.parameters}
    assert shapes == {(16, 64), (64, 64)}


def test_where_nothing_is_said_nothing_is_split() -> None:
    run, found = sharded("context.py:says_nothing", "h100:8")
    assert "no input is split" in told(run)
    assert not collectives(found)
    run, found = sharded(
        "context.py:says_nothing", "h100:8", shard=("x=0", "params/w1=-,data", "params/w2=data"), mesh="data=8"
    )
    assert "params/w1 as -,data" in told(run)
    assert collectives(found)


@pytest.mark.parametrize("file", ["set_mesh_nnx.py", "filter_shard_equinox.py", "train_state_linen.py"])
def test_train_steps_with_a_state_object(file: str) -> None:
    pytest.importorskip("flax" if "equinox" not in file else "equinox")
    pytest.importorskip("optax")
    run, found = sharded(f"{file}:train_step", "h100:8")
    assert found.attributes["num_partitions"] == "8"
    assert "all-reduce" in {one.opcode for one in collectives(found)}  # the gradients
    assert found.entry is not None
    assert found.entry.root is not None
    # The new state leaves the program, also where the function gives the loss alone.
    assert len(found.entry.root.shape.leaves()) >= 6
    assert "nnx" in file or (run.memory is not None and run.memory.alias_bytes)


def test_a_callback_of_a_sharded_program_is_refused_with_the_reason() -> None:
    with pytest.raises(JaxprofError) as caught:
        sharded("own_mesh.py:with_callback", "h100:8", arguments=("f32[64]",))
    assert "jax.debug.print" in caught.value.hint


def test_a_tpu_program_is_compiled_without_a_tpu() -> None:
    session = compiled("matmul", "tpu-v5e", {"n": "512"})
    hlo = session.text(only(session).id, "hlo") or ""
    assert "T(8,128)" in hlo


@pytest.mark.process
def test_without_the_wheels_the_run_fails_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(wheels.FOLDER_VARIABLE, str(tmp_path))
    interpreter = find_interpreter()
    scheduler = Scheduler(LogWriter(new_header(), None), interpreter, lambda batch: None)
    scheduler.add(plan_compiles(workload_info(built_in("selu")), targets=parse_targets("tpu-v5e")))
    scheduler.run()
    run = scheduler.session.runs["r1"]
    assert run.status == "failed"
    assert "jaxprof devices target install tpu" in run.advice
