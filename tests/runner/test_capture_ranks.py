"""Which processes of a job capture: as they are named, and the slowest one, once there is something to tell it by."""

import os
from functools import partial

import pytest

from jaxprof.analysis.jobs.figures import process_figures
from jaxprof.engine.protocol.recording import RecordingOptions
from jaxprof.errors import UsageError
from jaxprof.runner import job_launch
from jaxprof.runner.job_launch import CaptureChoice, CaptureRanks, options_of, read_choice, read_ranks, slowest
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import job, loop, process
from tables import rows

OPTIONS = RecordingOptions(capture_after_seconds=5.0, capture_steps=100)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("all", None),
        ("0", CaptureRanks(((0, 0),))),
        ("0, 2-3", CaptureRanks(((0, 0), (2, 3)))),
        ("slowest", CaptureRanks((), slowest=True)),
        ("0,slowest", CaptureRanks(((0, 0),), slowest=True)),
    ],
)
def test_what_can_be_named(text, ranks):
    assert read_ranks(text, 4) == ranks


@pytest.mark.parametrize(
    ("text", "count", "words"),
    rows("""
        4      4  of 4 processes the last one is 3
        3-1    0  runs backwards
        first  4  'first' is no process
        0,,1   4  is no process
        all,0  4  'all' is no process
    """),
)
def test_what_is_refused(text, count, words):
    with pytest.raises(UsageError, match=words):
        read_ranks(text, int(count))


def test_a_window_is_of_those_that_are_named():
    ranks = CaptureRanks(((1, 2),))
    assert [options_of(ranks, index, OPTIONS).wants_window for index in range(4)] == [False, True, True, False]
    assert options_of(None, 3, OPTIONS) == OPTIONS
    both = CaptureRanks(((1, 2),), slowest=True)
    assert not any(options_of(both, index, OPTIONS).wants_window for index in range(4)), "all begin once it is known"


def test_the_slowest_is_that_with_most_work_of_its_own(tmp_path):
    read = read_job(job(tmp_path, loop(data=0.3), loop(), loop(host=0.2), loop()), Session)
    figures = [process_figures(each) for each in read.members]
    assert slowest(figures, CaptureRanks((), slowest=True)) == 0
    assert slowest(figures, CaptureRanks(((0, 0),), slowest=True)) == 2, "the slowest of the others"
    assert slowest(figures, CaptureRanks(((0, 3),), slowest=True)) is None


def test_who_has_not_been_seen_yet_is_waited_for(tmp_path):
    job(tmp_path, loop(), loop(data=0.3))
    process(tmp_path, 2, 3)
    figures = [process_figures(each) for each in read_job(tmp_path, Session).members]
    assert slowest(figures, CaptureRanks((), slowest=True)) is None
    assert slowest(figures, CaptureRanks((), slowest=True), guess=True) == 1


def test_all_processes_come_to_one_answer(tmp_path):
    """Each of them decides as if it knew nothing but the folder."""
    folder = job(tmp_path, loop(), loop(), loop(data=0.3), loop())
    ranks, captured = CaptureRanks(((0, 0),), slowest=True), []
    choices = [CaptureChoice(ranks, index, folder, 0.0, partial(captured.append, index)) for index in range(4)]
    for choice in choices:
        choice._thread.join(20)
        choice.close()
    assert sorted(captured) == [0, 2]
    assert read_choice(folder) == {0, 2}
    assert len(list(folder.iterdir())) == 5, "four sessions, and the choice whole"


def test_a_choice_that_is_torn_is_none_and_a_pipe_in_its_place_is_not_waited_for(tmp_path):
    path = tmp_path / job_launch.CHOICE
    for text in ("{", "[]", '{"processes": ["x"]}'):
        path.write_text(text)
        assert read_choice(tmp_path) is None
    path.unlink()
    os.mkfifo(path)
    assert read_choice(tmp_path) is None
