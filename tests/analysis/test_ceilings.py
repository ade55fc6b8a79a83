from __future__ import annotations

import os
from pathlib import Path

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.ceilings import ceilings_for, measured_in, remember
from jaxprof.session import Session


def session_of(
    *,
    host: str,
    workloads: dict[str, tuple[float, float]],
    platform: str = "cpu",
    kind: str = "cpu",
    settings: dict[str, float] | None = None,
) -> Session:
    """Runs of one second a call, with these FLOPs and bytes."""
    made: list[e.Event] = []
    for number, (workload, (flops, traffic)) in enumerate(workloads.items()):
        run = f"r{number + 1}"
        made += [
            e.RunPlanned(run=run, spec=e.RunSpec(workload=workload, variant="jit", how="jit", device=f"{platform}:0")),
            e.EnvironmentRead(
                run=run,
                python="3",
                numpy="2",
                settings={"cpu_model": "Some CPU", **(settings or {})},
                devices=[{"platform": platform, "kind": kind}],
            ),
            e.CostReported(run=run, flops=flops, bytes_accessed=traffic, source=e.ESTIMATED_BY),
            e.SamplesTaken(run=run, series="run", seconds=[1.0] * 6),
            e.CheckReported(run=run, passed=True, precision="float32"),
            e.RunFinished(run=run, status="ok"),
        ]
    return fold(e.Header(host=host, wall_seconds=1_767_312_000.0), made)


HERE = os.uname().nodename
JUDGED = {"triad": (1e9, 10e9), "gemm-peak": (100e9, 1e9), "selu": (5e6, 8e6)}


def test_a_cpu_has_the_roofline_that_was_measured() -> None:
    session = session_of(host=HERE, workloads=JUDGED)
    device = ceilings_for(session, session.runs["r3"])
    assert device is not None
    assert device.bandwidth == pytest.approx(10e9)
    assert device.peak("f32", matrix=True) == pytest.approx(100e9)


def test_it_is_kept_for_the_machine_and_only_grows(tmp_path: Path) -> None:
    remember(session_of(host=HERE, workloads=JUDGED), tmp_path)
    remember(session_of(host=HERE, workloads={"triad": (1e9, 4e9)}), tmp_path)
    later = session_of(host=HERE, workloads={"selu": (5e6, 8e6)})
    device = ceilings_for(later, later.runs["r1"], tmp_path)
    assert device is not None
    assert device.bandwidth == pytest.approx(10e9)


def test_what_fits_a_cache_or_shares_the_machine_is_no_ceiling(tmp_path: Path) -> None:
    small = session_of(host=HERE, workloads={**JUDGED, "triad": (1e6, 48e6)})
    assert measured_in(small, "cpu:0").bandwidth is None
    busy = session_of(host=HERE, workloads=JUDGED, settings={"other_busy_cores": 1.5, "cores": 2})
    assert not measured_in(busy, "cpu:0")
    (tmp_path / "ceilings.json").write_text('{"Some CPU": {"bandwidth": 1e12, "peaks": {"f32": 1e12}}}')
    later = session_of(host=HERE, workloads={"selu": (5e6, 8e6)})
    assert ceilings_for(later, later.runs["r1"], tmp_path) is None, "kept without size and date"


def test_another_machines_session_does_not_get_ours(tmp_path: Path) -> None:
    remember(session_of(host=HERE, workloads=JUDGED), tmp_path)
    other = session_of(host="elsewhere", workloads={"selu": (5e6, 8e6)})
    assert ceilings_for(other, other.runs["r1"], tmp_path) is None


def test_a_known_gpu_has_the_vendors_and_what_was_measured_replaces_them() -> None:
    plain = session_of(host=HERE, workloads={"selu": (5e6, 8e6)}, platform="cuda", kind="NVIDIA H100 80GB HBM3")
    vendor = ceilings_for(plain, plain.runs["r1"])
    assert vendor is not None
    assert vendor.bandwidth > 3e12
    measured = session_of(host=HERE, workloads=JUDGED, platform="cuda", kind="NVIDIA H100 80GB HBM3")
    found = ceilings_for(measured, measured.runs["r3"])
    assert found is not None
    assert found.bandwidth == pytest.approx(10e9)
    assert "measured" in found.source


def test_a_program_that_was_compiled_for_a_device_elsewhere_has_that_ones() -> None:
    plan = e.RunPlanned(run="r1", spec=e.RunSpec(workload="selu", variant="jit", how="compile", device="4xh100:8"))
    session = fold(e.Header(host=HERE), [plan])
    found = ceilings_for(session, session.runs["r1"])
    assert found is not None
    assert found.name == "h100"
    here = e.RunPlanned(run="r2", spec=e.RunSpec(workload="selu", variant="jit", how="compile", device="cpu:0"))
    session.apply(here)
    assert ceilings_for(session, session.runs["r2"]) is None
