"""Compiling for devices that are not here, through the real engine. Skipped, with the reason, without the wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.errors import JaxprofError
from jaxprof.session import Run, Session
from jaxprof.store import LogWriter, new_header
from jaxprof.targets import parse_targets, wheels
from jaxprof.worker import Choice, Conductor, find_interpreter, plan_compiles
from jaxprof.workloads import built_in
from jaxprof.workloads.model import card


def compiled(
    workload: str, targets: str, settings: dict[str, str] | None = None, shard: tuple[str, ...] = ()
) -> Session:
    interpreter = find_interpreter()
    for target in parse_targets(targets):
        try:
            wheels.environment(target.chip.vendor, interpreter.path)
        except JaxprofError as error:
            pytest.skip(f"{error.what}: {error.mend}")
    conductor = Conductor(LogWriter(new_header(), None), interpreter, lambda batch: None)
    choice = Choice(settings=settings or {})
    conductor.add(
        plan_compiles(card(built_in(workload)), choice=choice, targets=parse_targets(targets), shard=list(shard))
    )
    conductor.run()
    conductor.close()
    return conductor.session


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
    session = compiled("matmul", "h100:2", {"n": "64"}, shard=("0=1",))
    assert any("along axis 1" in warning.message for warning in only(session).warnings)
    failed = compiled("matmul", "h100:2", {"n": "63"}, shard=("0=0",))
    (run,) = failed.runs.values()
    assert run.status == "failed"
    assert "cannot be split" in run.error


def test_a_tpu_program_is_compiled_without_a_tpu() -> None:
    session = compiled("matmul", "tpu-v5e", {"n": "512"})
    hlo = session.text(only(session).id, "hlo") or ""
    assert "T(8,128)" in hlo


def test_without_the_wheels_the_run_fails_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(wheels.FOLDER_VARIABLE, str(tmp_path))
    interpreter = find_interpreter()
    conductor = Conductor(LogWriter(new_header(), None), interpreter, lambda batch: None)
    conductor.add(plan_compiles(card(built_in("selu")), targets=parse_targets("tpu-v5e")))
    conductor.run()
    run = conductor.session.runs["r1"]
    assert run.status == "failed"
    assert "jaxprof target install tpu" in run.advice
