"""A job, and the grid of its steps, is the same from its roll-ups and its sessions; a roll-up that cannot be used
costs nothing but time."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import program_events
from jaxprof.jobs import job as rollup_job
from jaxprof.jobs.folder import ROLL_UP_ENDING, ROLL_UP_FOLDER, job_sessions
from jaxprof.jobs.job import JobSteps, read_job_figures, read_job_files
from jaxprof.jobs.roll_ups import compact_all, files_of, find_outdated, open_roll_ups
from jaxprof.jobs.step_grid import PARTS_OF
from jaxprof.rollup.making import file_of, roll_up
from jaxprof.session import load as load_session
from job_folders import captures, job, job_figures, loop, process, read_job, stderr, step_grid, wavering


def roll_all(folder):
    for _, path in job_sessions(folder)[0]:
        assert not roll_up(path).error
    return folder


def comparable(figures):
    """With the sample windows as a roll-up has them: to the millisecond, and in 17 bits."""
    processes = [replace(each, windows=_rounded(each.windows)) for each in figures.processes]
    found = [replace(finding, seconds=finding.seconds and round(finding.seconds, 2)) for finding in figures.findings]
    return replace(figures, processes=tuple(processes), findings=tuple(found), goodput=None, collectives=())


def _rounded(of):
    return replace(
        of, began_seconds=of.began_seconds.round(2), seconds=of.seconds.round(3), samples=of.samples.round(),
        parts=of.parts.round(3),
    )  # fmt: skip


@pytest.fixture
def read_sessions(monkeypatch):
    """The names of the sessions that were read whole."""
    names = []

    def load(path, kind):
        names.append(path.name)
        return load_session(path, kind)

    monkeypatch.setattr(rollup_job, "load", load)
    return names


def test_roll_ups_say_what_the_sessions_say(tmp_path, read_sessions):
    raised = stderr("Traceback (most recent call last):", "ValueError: a shard")
    late = captures(6, late=5)
    loops = {0: loop(), 1: loop(data=0.3), 2: [*loop(), *program_events.shaped(9, "metric")], 4: loop(), 5: loop()}
    for index, inside in loops.items():
        ended = {"exit_code": 1} if index == 4 else {}
        process(tmp_path, index, 6, *inside, *late[index], *(raised if ended else []), **ended)
    expected = job_figures(read_job(tmp_path))
    codes = {finding.code for finding in expected.findings}
    assert codes == {"straggler", "recompiles_alone", "process_failed", "slow_device"}
    found = read_job_figures(roll_all(tmp_path))
    assert not read_sessions
    assert comparable(found) == comparable(expected)
    [both] = zip(found.collectives, expected.collectives, strict=True)
    assert both[0].exposed_seconds == pytest.approx(both[1].exposed_seconds)
    assert "1 of 6 processes have no session here: 3" in found.notices
    assert found.goodput.causes == pytest.approx(expected.goodput.causes, rel=1e-3, abs=1e-3)
    for mine, theirs in zip(found.arrivals.processes, expected.arrivals.processes, strict=True):
        assert mine.last_count == theirs.last_count
        assert mine.caused_wait_seconds == pytest.approx(theirs.caused_wait_seconds, rel=1e-3)


def test_a_session_that_has_grown_since_or_has_no_end_is_read(tmp_path, read_sessions):
    """A process without an end was killed: what its roll-up took for running has failed."""
    process(job(tmp_path, loop(), loop()), 2, 3, *loop(), wall=None)
    roll_all(tmp_path)
    with (tmp_path / "process-00001.jaxprof").open("ab") as session:
        session.write(b"\n")
    found = read_job_figures(tmp_path)
    assert read_sessions == ["process-00001.jaxprof", "process-00002.jaxprof"]
    assert [(finding.code, finding.index) for finding in found.findings] == [("process_failed", 2)]


def test_restarted_process_counts_by_its_newest_session(tmp_path, read_sessions):
    roll_all(job(tmp_path, loop(), loop(), loop()))
    process(tmp_path, 1, 3, *loop(data=0.3))
    found = read_job_figures(tmp_path)
    assert read_sessions == ["process-00001-2.jaxprof"]
    assert [(finding.code, finding.index) for finding in found.findings] == [("straggler", 1)]
    assert "process 1 was started again: process-00001.jaxprof is left out" in found.notices
    read_sessions.clear()
    assert comparable(read_job_figures(roll_all(tmp_path))) == comparable(found)
    assert not read_sessions


def foreign(path):
    parquet.write_table(pa.table({"process": ["x"], "figures": ["y"]}), path)


def of_another_version(path):
    table = parquet.read_table(path, partitioning=None)
    at = table.schema.names.index("format")
    parquet.write_table(table.set_column(at, "format", pa.array([999], pa.int64())), path)


def empty(path):
    path.write_bytes(b"")


def torn(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture(scope="module")
def three_rolled(tmp_path_factory):
    """A job of three processes, of which the middle one is late, with its roll-ups."""
    return roll_all(job(tmp_path_factory.mktemp("three"), loop(), loop(data=0.3), loop()))


@pytest.mark.parametrize(
    ("table", "damage"),
    [*(("processes", damage) for damage in (Path.unlink, empty, torn, foreign, of_another_version)), ("parts", torn)],
)
def test_unusable_roll_up_is_replaced_by_its_session(tmp_path, three_rolled, read_sessions, table, damage):
    expected = read_job_figures(shutil.copytree(three_rolled, tmp_path, dirs_exist_ok=True))
    path = file_of(tmp_path, table, 1)
    damage(path)
    found = read_job_figures(tmp_path)
    assert read_sessions == ["process-00001.jaxprof"]
    assert comparable(found).processes == comparable(expected).processes
    assert comparable(found).findings == comparable(expected).findings
    assert find_outdated(tmp_path)[0] == [tmp_path / "process-00001.jaxprof"]


def test_a_roll_up_alone_is_shown_and_that_is_said(tmp_path, three_rolled):
    expected = read_job_figures(shutil.copytree(three_rolled, tmp_path, dirs_exist_ok=True))
    (tmp_path / "process-00002.jaxprof").unlink()
    found = read_job_figures(tmp_path)
    assert found.findings == expected.findings
    assert found.notices == ("of process 2 only the roll-up exists",)


def test_of_many_running_processes_the_last_roll_up_has_to_do(tmp_path, read_sessions, monkeypatch):
    for index in range(4):
        process(tmp_path, index, 4, *loop(), wall=None)
    roll_all(tmp_path)
    monkeypatch.setattr(rollup_job, "is_live", lambda path: True)
    monkeypatch.setattr(rollup_job, "SESSIONS_READ", 3)
    found = read_job_figures(tmp_path)
    assert not read_sessions
    assert "the job is running: figures of its processes are up to" in found.notices[-1]
    monkeypatch.setattr(rollup_job, "SESSIONS_READ", 4)
    assert not any("are up to" in notice for notice in read_job_figures(tmp_path).notices)
    assert len(read_sessions) == 4


def test_what_is_no_regular_file_is_no_part_of_a_roll_up(tmp_path):
    place = tmp_path / ROLL_UP_FOLDER / "windows"
    place.mkdir(parents=True)
    first, pipe, link = (place / f"process-0000{n}{ROLL_UP_ENDING}" for n in (1, 2, 3))
    first.touch()
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    assert files_of(tmp_path, "windows") == [first]


def test_what_roll_ups_unpack_to_is_bounded_in_rows_and_time(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "processes=1")
    roll_all(job(tmp_path, loop()))
    with open_roll_ups(tmp_path) as roll_ups:
        many = "SELECT process, unnest(range(1000)) FROM {files}"
        assert len(roll_ups.rows("processes", many, most=1000)) == 1000
        assert not roll_ups.notices
        assert len(roll_ups.rows("processes", many, most=5)) == 5
        assert roll_ups.notices == ["the roll-ups of processes have more than 5 rows: the others are left out"]
        monkeypatch.setattr("jaxprof.jobs.roll_ups.QUERY_TIME", SimpleNamespace(most=0.1))
        long = "SELECT sum(a.range * b.range) FROM range(9000000000) a, range(9000) b"
        assert not roll_ups.rows("processes", long)


def iterations(count, first=0, seed=0, together=1):
    """Iterations of the loop of these sessions, in twenty seconds, each unlike the others."""
    rng = np.random.default_rng(seed)
    seconds = 20 / count * (1 + 0.2 * rng.standard_normal(count)) * together
    timed = seconds[::together].tolist()
    counts = [] if together == 1 else [together] * len(timed)
    return [program_events.iterations(first, timed, began_seconds=program_events.BEGAN, counts=counts)]


def steps_in(folder):
    return JobSteps(read_job_files(folder))


def numbered(folder, *of):
    for index, (steps, data) in enumerate(zip(of, (0.02, 0.3, 0.02, 0.1), strict=False)):
        process(folder, index, len(of), *loop(data=data), *steps)
    return folder


def clocked(folder):
    """Processes whose CPU clock says more than samples; the last one has none."""
    works = [wavering(20, seed=at, clock=clock, late=(0, 20, 0.4 * at)) for at, clock in enumerate((0.1, 0.1, None))]
    return job(folder, *([*work, *iterations(2048)] for work in works))


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    """Jobs as their sessions have them, and as their roll-ups do."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("step", "time", "clock")}
    numbered(
        folders["step"],
        iterations(2000),
        iterations(2000, seed=1),
        iterations(1000, 1000, seed=2),
        iterations(3000, together=6),
    )
    numbered(folders["time"], [], [], [])
    clocked(folders["clock"])
    return {name: (read_job(folder), steps_in(roll_all(folder))) for name, folder in folders.items()}


@pytest.mark.parametrize(
    ("name", "values_of", "columns"),
    [
        *(("step", values_of, 15) for values_of in PARTS_OF),
        *(("time", values_of, 32) for values_of in PARTS_OF),
        ("clock", "own", 32),
    ],
)
def test_it_is_the_same_from_roll_ups_and_from_sessions(rolled, name, values_of, columns):
    expected = step_grid(rolled[name][0], columns, values_of)
    found = rolled[name][1].grid(columns, values_of)
    for figure in ("first_steps", "seconds", "ratio", "samples"):
        same = pytest.approx(getattr(expected, figure), rel=0.02 if name == "clock" else 1e-3, abs=1e-5, nan_ok=True)
        assert getattr(found, figure) == same, figure
    for name in ("processes", "unit", "notices"):
        assert getattr(found, name) == getattr(expected, name)


@pytest.mark.parametrize("values_of", ["own", "step"])
def test_columns_are_filled_from_blocks_of_steps(tmp_path, values_of):
    numbered(tmp_path, iterations(4096), iterations(4096, seed=1), iterations(2048, 2048, seed=2))
    expected = step_grid(read_job(tmp_path), 64, values_of=values_of)
    found = steps_in(roll_all(tmp_path)).grid(64, values_of=values_of)
    assert found.seconds == pytest.approx(expected.seconds, rel=1e-3, abs=1e-6, nan_ok=True), "64 steps are 4 blocks"
    uneven, middle = step_grid(read_job(tmp_path), 47, values_of=values_of), slice(0, 20)
    found = steps_in(tmp_path).grid(47, values_of=values_of)
    assert found.seconds[:, middle] == pytest.approx(uneven.seconds[:, middle], rel=0.05, abs=1e-6, nan_ok=True)
    assert len(steps_in(tmp_path).grid(1000, values_of).steps) == 128, "no column has less than four blocks"


@pytest.fixture
def three(tmp_path):
    """The sessions of three processes."""
    return numbered(tmp_path, iterations(2000), iterations(2000, seed=1), iterations(2000, seed=2))


def test_sessions_stand_in_for_roll_ups_that_are_missing(three, monkeypatch):
    expected = step_grid(read_job(three), 20)
    assert steps_in(three).grid(20).seconds == pytest.approx(expected.seconds), "none are there"
    roll_all(three)
    (three / "rollup/processes/process-00001.parquet").write_bytes(b"torn")
    assert steps_in(three).grid(20).seconds == pytest.approx(expected.seconds, rel=1e-3)
    monkeypatch.setattr("jaxprof.jobs.job.has_extra", lambda: False)
    assert steps_in(three).grid(20).seconds == pytest.approx(expected.seconds)


def test_steps_that_cannot_be_read_are_unknown(three):
    (roll_all(three) / "rollup/overview/process-00001.parquet").write_bytes(b"torn")
    found = steps_in(three).grid(100)
    assert np.isnan(found.seconds[1]).all()
    assert np.isfinite(found.seconds[[0, 2]]).all()
    assert "damaged: rollup/overview/process-00001.parquet" in found.notices[0]


def test_common_roll_up_counts_until_a_process_changes(three, monkeypatch):
    expected = steps_in(roll_all(three)).grid(20)
    figures = read_job_figures(three)
    monkeypatch.setattr("jaxprof.jobs.roll_ups.MANY", 2)
    assert compact_all(three) == ""
    made = sorted((three / "rollup/all").iterdir())
    assert [path.name.partition("-")[0] for path in made] == ["overview", "parts", "processes"]
    assert steps_in(three).grid(20).seconds == pytest.approx(expected.seconds)
    assert read_job_figures(three).findings == figures.findings
    made[2].write_bytes(b"torn")
    assert read_job_figures(three).findings == figures.findings, "the files of the processes are read"
    process(three, 2, 3, *loop(data=0.4), *iterations(2000))
    roll_all(three)
    for _ in range(2):
        assert read_job_figures(three).processes[2].shares["data"] == pytest.approx(0.4, abs=0.01)
        assert compact_all(three) == ""
    assert len(list((three / "rollup/all").iterdir())) == 3
