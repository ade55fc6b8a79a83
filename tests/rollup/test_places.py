"""Roll-ups of a job wherever it is, by whomever they are made: the same bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import flaky_store
from flaky_store import FlakyFileSystem
from jaxprof.errors import UsageError
from jaxprof.rollup import on_ray
from jaxprof.rollup.on_ray import cluster, roll_up_on
from jaxprof.rollup.places import SessionPlace, due_in, roll_up_at
from job_folders import job, loop


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Written at a full second: a store may say no more."""
    made = job(tmp_path / "run.jaxprof.d", loop(), loop(data=0.3), loop(host=0.1))
    for path in made.iterdir():
        os.utime(path, (1_790_000_000, 1_790_000_000))
    return made


@pytest.fixture
def flaky() -> type[FlakyFileSystem]:
    return flaky_store.register()


def tables(folder: Path) -> dict[str, bytes]:
    root = folder / "rollup"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.parquet")}


def copied(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(folder, folder.parent / name, copy_function=shutil.copy2))


def made(folder: str) -> list[str]:
    sessions, _ = due_in(folder)
    reports = [roll_up_at(session) for session in sessions]
    assert [report.error for report in reports] == [""] * len(reports)
    return [report.session for report in reports]


def test_in_a_store_the_tables_are_those_that_are_made_on_a_disk(folder: Path, flaky: type[FlakyFileSystem]) -> None:
    stored = copied(folder, "stored.jaxprof.d")
    made(str(folder))
    assert made(f"flaky://{stored}") == [f"process-0000{index}.jaxprof" for index in range(3)]
    assert tables(stored) == tables(folder)
    assert len(tables(folder)) >= 9


def test_what_is_current_is_left_alone(folder: Path, flaky: type[FlakyFileSystem]) -> None:
    made(f"flaky://{folder}")
    assert due_in(f"flaky://{folder}") == ([], [])
    (folder / "rollup" / "processes" / "process-00001.parquet").unlink()
    with (folder / "process-00002.jaxprof").open("a") as session:
        session.write("{}\n")
    url = f"flaky://{folder}"
    again = [SessionPlace(url, "process-00001.jaxprof"), SessionPlace(url, "process-00002.jaxprof")]
    assert due_in(url)[0] == again
    assert due_in(str(folder))[0] == [SessionPlace(str(folder), place.name) for place in again]
    assert len(due_in(url, every=True)[0]) == 3


def test_a_store_that_fails_in_the_middle_is_an_error_of_that_session(
    folder: Path, flaky: type[FlakyFileSystem]
) -> None:
    sessions, _ = due_in(f"flaky://{folder}")
    flaky.error, flaky.only = ConnectionResetError("connection reset"), "put"
    assert roll_up_at(sessions[0]).error == "connection reset"


@pytest.mark.timeout(300)
def test_on_ray_the_tables_are_those_that_are_made_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    source = Path(on_ray.__file__).parents[2]
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(source), str(tests)]))
    on_disk, stored = copied(folder, "shared.jaxprof.d"), copied(folder, "stored.jaxprof.d")
    made(str(folder))
    (on_disk / "process-00009.jaxprof").write_text("torn")
    with cluster("local", 2) as ray:
        reports = list(roll_up_on(ray, due_in(str(on_disk))[0]))
        assert sorted(report.session for report in reports if report.error) == ["process-00009.jaxprof"]
        assert [report.error for report in roll_up_on(ray, due_in(f"file://{stored}")[0])] == [""] * 3
        killed = list(roll_up_on(ray, [SessionPlace("/nonexistent", "process-00000.jaxprof")]))
        assert killed[0].error
        monkeypatch.setattr(on_ray, "__version__", "0.0.1")
        with pytest.raises(UsageError, match=r"have jaxprof .*, and this is 0\.0\.1"):
            on_ray._check_nodes(ray)
    assert tables(on_disk) == tables(folder)
    assert tables(stored) == tables(folder)
