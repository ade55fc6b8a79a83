"""The grid that DuckDB makes of roll-ups is the one that NumPy makes of sessions."""

import numpy as np
import pytest

import program_events
from jaxprof.analysis.jobs.step_grid import VALUES
from jaxprof.rollup.grid import JobSteps
from jaxprof.rollup.job import read_job_figures, read_job_files
from jaxprof.rollup.reading import compact_all
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import job, loop, process, step_grid, wavering
from rollup.test_job import roll_all


def passes(count, first=0, seed=0, together=1):
    """Passes of the loop of these sessions, in twenty seconds, each unlike the others."""
    rng = np.random.default_rng(seed)
    seconds = 20 / count * (1 + 0.2 * rng.standard_normal(count)) * together
    timed = seconds[::together].tolist()
    counts = [] if together == 1 else [together] * len(timed)
    return [program_events.passes(first, timed, began_seconds=program_events.BEGAN, counts=counts)]


def steps_in(folder):
    return JobSteps(read_job_files(folder))


def numbered(folder, *of):
    for index, (steps, data) in enumerate(zip(of, (0.02, 0.3, 0.02, 0.1), strict=False)):
        process(folder, index, len(of), *loop(data=data), *steps)
    return folder


def clocked(folder):
    """Processes whose CPU clock says more than samples; the last one has none."""
    works = [wavering(20, seed=at, clock=clock, late=(0, 20, 0.4 * at)) for at, clock in enumerate((0.1, 0.1, None))]
    return job(folder, *([*work, *passes(2048)] for work in works))


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    """Jobs as their sessions have them, and as their roll-ups do."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("step", "time", "clock")}
    numbered(folders["step"], passes(2000), passes(2000, seed=1), passes(1000, 1000, seed=2), passes(3000, together=6))
    numbered(folders["time"], [], [], [])
    clocked(folders["clock"])
    return {name: (read_job(folder, Session), steps_in(roll_all(folder))) for name, folder in folders.items()}


@pytest.mark.parametrize(
    ("name", "values_of", "columns", "first", "last"),
    [
        *(("step", values_of, 13, 100, 1234) for values_of in VALUES),
        *(("step", VALUES[0], *window) for window in ((100, None, None), (50, 990, 999), (40, 2900, None))),
        *(("time", values_of, 30, None, None) for values_of in VALUES),
        ("clock", VALUES[0], 32, None, None),
    ],
)
def test_it_is_the_same_from_roll_ups_and_from_sessions(rolled, monkeypatch, name, values_of, columns, first, last):
    monkeypatch.setattr("jaxprof.rollup.grid._WIDE", float("inf"))  # from single steps
    expected = step_grid(rolled[name][0], columns, first, last, values_of)
    found = rolled[name][1].grid(columns, first, last, values_of)
    for figure in ("first_steps", "seconds", "ratio", "samples"):
        same = pytest.approx(getattr(expected, figure), rel=0.02 if name == "clock" else 1e-3, abs=1e-5, nan_ok=True)
        assert getattr(found, figure) == same, figure
    for name in ("processes", "numbered_by", "unit", "notices"):
        assert getattr(found, name) == getattr(expected, name)


@pytest.mark.parametrize("values_of", VALUES[:2])
def test_wide_columns_are_filled_from_blocks_of_steps(tmp_path, monkeypatch, values_of):
    numbered(tmp_path, passes(4096), passes(4096, seed=1), passes(2048, 2048, seed=2))
    monkeypatch.setattr("jaxprof.rollup.rows.MOST_STEPS", 2)  # nothing else can be as fine
    expected = step_grid(read_job(tmp_path, Session), 64, values_of=values_of)
    found = steps_in(roll_all(tmp_path)).grid(64, values_of=values_of)
    assert found.seconds == pytest.approx(expected.seconds, rel=1e-3, abs=1e-6, nan_ok=True), "64 steps are 4 blocks"
    uneven, middle = step_grid(read_job(tmp_path, Session), 47, values_of=values_of), slice(0, 20)
    found = steps_in(tmp_path).grid(47, values_of=values_of)
    assert found.seconds[:, middle] == pytest.approx(uneven.seconds[:, middle], rel=0.05, abs=1e-6, nan_ok=True)


@pytest.fixture
def three(tmp_path):
    """The sessions of three processes."""
    return numbered(tmp_path, passes(2000), passes(2000, seed=1), passes(2000, seed=2))


def test_sessions_stand_in_for_roll_ups_that_are_missing(three, monkeypatch):
    expected = step_grid(read_job(three, Session), 20)
    assert steps_in(three).grid(20).seconds == pytest.approx(expected.seconds), "none are there"
    roll_all(three)
    (three / "rollup/processes/process-00001.parquet").write_bytes(b"torn")
    assert steps_in(three).grid(20).seconds == pytest.approx(expected.seconds, rel=1e-3)
    monkeypatch.setattr("jaxprof.rollup.job.has_extra", lambda: False)
    assert steps_in(three).grid(20).seconds == pytest.approx(expected.seconds)


def test_steps_that_cannot_be_read_are_unknown(three):
    (roll_all(three) / "rollup/steps/process-00001.parquet").write_bytes(b"torn")
    found = steps_in(three).grid(1000)
    assert np.isnan(found.seconds[1]).all()
    assert np.isfinite(found.seconds[[0, 2]]).all()
    assert "damaged: rollup/steps/process-00001.parquet" in found.notices[0]


def test_one_file_for_all_processes_counts_until_one_of_them_changes(three, monkeypatch):
    expected = steps_in(roll_all(three)).grid(20)
    figures = read_job_figures(three)
    monkeypatch.setattr("jaxprof.rollup.reading.MANY", 2)
    assert compact_all(three) == ""
    made = sorted((three / "rollup/all").iterdir())
    assert [path.name.partition("-")[0] for path in made] == ["overview", "parts", "processes"]
    assert steps_in(three).grid(20).seconds == pytest.approx(expected.seconds)
    assert read_job_figures(three).findings == figures.findings
    made[2].write_bytes(b"torn")
    assert read_job_figures(three).findings == figures.findings, "the files of the processes are read"
    process(three, 2, 3, *loop(data=0.4), *passes(2000))
    roll_all(three)
    for _ in range(2):
        assert read_job_figures(three).processes[2].shares["data"] == pytest.approx(0.4, abs=0.01)
        assert compact_all(three) == ""
    assert len(list((three / "rollup/all").iterdir())) == 3
