"""Which processes of a job capture, as they are named."""

import pytest

from jaxprof.base.errors import UsageError
from jaxprof.engine.protocol import RecordingOptions
from jaxprof.runner.job_launch import options_of, read_ranks
from tables import rows

OPTIONS = RecordingOptions(capture_after_seconds=5.0, capture_steps=100)


def test_a_window_is_of_those_that_are_named():
    for text, window in (("1-2", [1, 2]), ("0, 2-3", [0, 2, 3]), ("all", [0, 1, 2, 3])):
        ranks = read_ranks(text, 4)
        assert [index for index in range(4) if options_of(ranks, index, OPTIONS).wants_window] == window


@pytest.mark.parametrize(
    ("text", "count", "words"),
    rows("""
        4      4  of 4 processes the last one is 3
        3-1    0  runs backwards
        first  4  'first' is not a process
        0,,1   4  is not a process
        all,0  4  'all' is not a process
    """),
)
def test_what_is_refused(text, count, words):
    with pytest.raises(UsageError, match=words):
        read_ranks(text, int(count))
