"""The life of one test that uses the marker or the fixture: its watch, its limits, its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from jaxprof.errors import JaxprofError
from jaxprof.session.log.codec import encode_line
from jaxprof.testing.calls import Caller
from jaxprof.testing.compilations import CompileWatch
from jaxprof.testing.limits import exceeded, limits_of


class TestWatch:
    """What is watched of one test."""

    __test__ = False

    def __init__(self, item: pytest.Item) -> None:
        self.compilations = CompileWatch()
        self.caller = Caller(item.nodeid, self.compilations)
        try:
            self.compilations.start()
        except ImportError as error:
            pytest.fail(f"the fixture and the marker jaxprof need jax, which cannot be imported: {error}", False)


_WATCH = pytest.StashKey[TestWatch]()
_LINES = pytest.StashKey[list[str]]()


@contextmanager
def watched(item: pytest.Item) -> Iterator[TestWatch]:
    """The watch of a test, from the fixture or the test's body on, whichever is first, to the end of the outer one."""
    existing = item.stash.get(_WATCH, None)
    if existing is not None:
        yield existing
        return
    watch = item.stash[_WATCH] = TestWatch(item)
    try:
        yield watch
    finally:
        watch.compilations.stop()
        del item.stash[_WATCH]
        item.stash[_LINES] = [
            encode_line(replace(event, run=f"r{number}")).decode()
            for number, program in enumerate(watch.caller.programs, start=1)
            for event in program.events
        ]


def lines_of(item: pytest.Item) -> list[str]:
    """The events of the programs that a finished test called, as lines of a session's log; empty if there are none."""
    return item.stash.get(_LINES, [])


@contextmanager
def limited(item: pytest.Item) -> Iterator[None]:
    """Around the test's body: fails the test if it passed and a limit of its marker is exceeded."""
    try:
        limits = limits_of(item)
    except JaxprofError as error:
        pytest.fail(f"jaxprof: {error.what}. {error.hint}", pytrace=False)
    with watched(item) as watch:
        yield
        failures = exceeded(limits, watch.compilations, watch.caller)
    if failures:
        pytest.fail("\n".join(f"jaxprof: {failure}" for failure in failures), pytrace=False)
