"""A job that is over opens from its roll-ups; its sessions are followed where these do not do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import job_folders
from jaxprof.session import Session
from jaxprof.session.log import load as load_session
from jaxprof.session.log.job_folder import job_sessions
from jaxprof.session.log.job_follower import JobFollower
from jaxprof.tui.job import reading
from jaxprof.tui.job.heat_map import JobMap
from jaxprof.tui.job.rank_table import RankTable
from jaxprof.tui.job.reading import JobReading
from tui.fakes import Stage, until
from tui.job.test_job_screen import opened, words

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")


MANY = 17


def rolled_up(folder: Path, count: int) -> Path:
    """A job whose process 1 is late from its step 1 000 on, with roll-ups."""
    from jaxprof.rollup.making import roll_up

    loops = [job_folders.late_from(10 if index == 1 else 99) for index in range(count)]
    for path in sorted(job_folders.job(folder, *loops).glob("*.jaxprof")):
        assert not roll_up(path, folder).error
    return folder


@pytest.fixture
def rolled(tmp_path: Path) -> Path:
    """A job of three processes with roll-ups, of which process 1 is late."""
    from jaxprof.rollup.making import roll_up

    folder = tmp_path / "train.jaxprof.d"
    folder.mkdir()
    job_folders.job(folder, job_folders.loop(), job_folders.loop(data=0.4), job_folders.loop())
    for _, path in job_sessions(folder)[0]:
        assert not roll_up(path, folder).error
    return folder


@pytest.fixture
def read_sessions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the sessions that were read whole, with `*` for all that are followed."""
    names: list[str] = []

    def load(path: Path, kind: type[Session]) -> Session:
        names.append(path.name)
        return load_session(path, kind)

    poll: Callable[..., frozenset[int]] = JobFollower.poll

    def noted(self: JobFollower[Session], *arguments: object) -> frozenset[int]:
        names.append("*")
        return poll(self, *arguments)

    monkeypatch.setattr("jaxprof.rollup.job.load", load)
    monkeypatch.setattr(JobFollower, "poll", noted)
    return names


async def test_only_the_process_that_is_opened_is_read(rolled: Path, read_sessions: list[str]) -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await opened(stage, pilot, rolled)
        await until(pilot, lambda: screen.query_one(JobMap).grid is not None)
        assert screen.query_one(RankTable).count == 3
        assert "process 1 on node1 is late: making or fetching its input takes 40 % of its loop" in words(stage)
        assert not read_sessions
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.session_path == rolled / "process-00001.jaxprof")
        assert not read_sessions


def test_it_shows_what_the_sessions_show(
    rolled: Path, read_sessions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = JobReading(rolled).read()
    assert not read_sessions
    monkeypatch.setattr("jaxprof.rollup.job.has_extra", lambda: False)
    expected = JobReading(rolled).read()
    assert read_sessions == ["*"], "without the extra"
    assert found is not None
    assert expected is not None
    assert list(found.lost_seconds) == [1]
    assert found.lost_seconds == pytest.approx(expected.lost_seconds, rel=0.01)
    for span in ((None, None), (500.0, 900.0)):
        theirs, ours = expected.steps(100, *span, "own"), found.steps(100, *span, "own")
        assert ours.grid.seconds == pytest.approx(theirs.grid.seconds, rel=0.01, nan_ok=True)
        assert (ours.levels == theirs.levels).all()


def test_a_change_is_read_and_nothing_else(
    rolled: Path, read_sessions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = JobReading(rolled)
    assert job.read() is not None
    assert job.read() is None
    monkeypatch.setattr(reading, "SILENT_SECONDS", -1.0)
    (rolled / "process-00002.jaxprof").unlink()
    job_folders.process(rolled, 2, 3, *job_folders.loop(data=0.3))
    found = job.read()
    assert found is not None
    assert read_sessions == ["process-00002.jaxprof"]
    assert found.steps(20, None, None, "own").grid.processes == (0, 1, 2)


def test_few_sessions_that_may_grow_are_followed(rolled: Path, read_sessions: list[str]) -> None:
    path = rolled / "process-00002.jaxprof"
    path.unlink()
    job_folders.process(rolled, 2, 3, *job_folders.loop(), wall=None)
    assert JobReading(rolled).read() is not None
    assert read_sessions == ["*"]


async def test_no_session_of_many_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = rolled_up(tmp_path, MANY)
    monkeypatch.setattr("jaxprof.rollup.job.load", pytest.fail)
    monkeypatch.setattr("jaxprof.session.log.job_follower.JobFollower.poll", pytest.fail)
    monkeypatch.setattr("jaxprof.tui.job.screen.FOLLOW_SECONDS", 0.05)
    stage = Stage()
    async with stage.app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await opened(stage, pilot, folder)
        assert "process 1 on node1 is late" in words(stage)
        assert screen.query_one(RankTable).count == MANY
        found = screen.query_one(JobMap)
        await until(pilot, lambda: found.grid is not None and len(found.grid.processes) == MANY)
        (folder / "process-00016.jaxprof").unlink()
        await until(pilot, lambda: "of process 16 only the roll-up is here" in words(stage))


def test_many_sessions_without_roll_ups_are_followed(
    rolled: Path, read_sessions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (rolled / "rollup/processes/process-00001.parquet").unlink()
    monkeypatch.setattr("jaxprof.rollup.job.SESSIONS_READ", 0)
    assert JobReading(rolled).read() is not None
    assert read_sessions == ["*"]
