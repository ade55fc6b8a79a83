"""A process that has larger shards than the others."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median_high

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events
from jaxprof import events as e
from jaxprof.analysis.finding import Finding
from jaxprof.analysis.jobs.figures import OwnArguments, ProcessFigures
from jaxprof.analysis.jobs.findings import uneven_shards
from jaxprof.analysis.jobs.job import job_figures
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import captures, job, loop


def encode(type_: str = "f32[32,1024]", sharding: str = "", weights: str = "f32[1024,64]") -> e.Compiled:
    leaves = [program_events.leaf("weights", weights), program_events.leaf("x", type_, sharding=sharding)]
    return program_events.compiled("encode", signature=leaves)


def found(folder: Path, *compiled: list[e.Compiled], late: int | None = None) -> list[Finding]:
    taken = captures(len(compiled), late=late) if late is not None else [[] for _ in compiled]
    job(folder, *([*loop(), *rows, *each] for rows, each in zip(compiled, taken, strict=True)))
    return list(job_figures(read_job(folder, Session)).findings)


@pytest.mark.parametrize("count", [2, 4])
def test_the_process_with_the_larger_shard(tmp_path: Path, count: int) -> None:
    rows = [[encode("f32[96,1024]" if index == 1 else "f32[32,1024]")] for index in range(count)]
    [finding] = found(tmp_path, *rows)
    assert (finding.code, finding.index, finding.part, finding.seconds) == ("uneven-shards", 1, "device", None)
    assert "encode is compiled for arguments of 640 KiB of its own, 384 KiB on the others" in finding.message
    assert "(x: f32[96,1024] against f32[32,1024])" in finding.message
    assert finding.where is not None


def test_with_captures_it_has_the_cost_and_the_device_is_not_named_twice(tmp_path: Path) -> None:
    rows = [[encode("f32[96,1024]" if index == 1 else "f32[32,1024]")] for index in range(3)]
    [finding] = found(tmp_path / "larger", *rows, late=1)
    assert (finding.code, finding.index) == ("uneven-shards", 1)
    assert finding.seconds == pytest.approx(0.35, abs=0.05)
    assert "the others wait" in finding.message
    other = found(tmp_path / "other", *rows, late=2)
    assert [(each.code, each.index) for each in other] == [("uneven-shards", 1), ("slow-device", 2)]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[encode()], [encode()], [encode()]], "all alike"),
        ([[encode()], [encode("f32[40,1024]")], [encode()]], "a small difference"),
        ([[encode("f32[1,8]")], [encode("f32[64,8]")], [encode("f32[1,8]")]], "small arrays"),
        ([[encode()], [encode("f32[96,1024]", "P('data') over 3 devices")], [encode()]], "spread over processes"),
        ([[encode()], [encode("f32[96,1024]", "P('data') over 2 devices")]], "spread on one of two"),
        ([[encode()], [encode("f32[96,1024]"), encode("f32[32,1024]")], [encode()]], "compiled for several"),
        ([[], [encode("f32[96,1024]")], []], "compiled by one alone"),
        ([[encode("f32[96,1024]")], [encode("f32[96,1024]")], [encode()]], "most have it: the others have less"),
    ],
)
def test_nobody_is_named_who_has_no_larger_shard(tmp_path: Path, rows: list[list[e.Compiled]], why: str) -> None:
    assert not [each for each in found(tmp_path, *rows) if each.code == "uneven-shards"], why


def process(index: int, kib: int) -> ProcessFigures:
    size = kib << 10
    own = tuple(OwnArguments(f"f{each}", each, size, (("x", "f32[8]", size),), None) for each in range(8))
    return ProcessFigures(index, "box", "", "ok", "", "", own_arguments=own)


@given(st.lists(st.sampled_from([100, 200, 300, 400, 900]), min_size=2, max_size=9))
def test_each_is_compared_with_the_middle_one_of_the_others(sizes: list[int]) -> None:
    named = {finding.index for finding in uneven_shards([process(*each) for each in enumerate(sizes)])}
    middle = [median_high(sizes[:at] + sizes[at + 1 :]) for at in range(len(sizes))]
    expected = {at for at, kib in enumerate(sizes) if kib - middle[at] >= max(64, 0.25 * middle[at])}
    assert named == expected


def test_a_thousand_processes_are_not_compared_in_pairs() -> None:
    many = [process(index, 800 if index == 417 else 400) for index in range(1000)]
    began = time.process_time()
    [found_one] = uneven_shards(many)
    assert found_one.index == 417
    assert time.process_time() - began < 1, "in pairs it takes six seconds"
