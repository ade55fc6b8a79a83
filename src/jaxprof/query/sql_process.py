"""The process that computes a query (`query.database`), seen from the one that asks. It is killed when the query takes
too long, or when its answer is no longer wanted.

Its imports take as long as those of the process that asks, which therefore starts it first: this module has few.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Self

from jaxprof.base.errors import UsageError
from jaxprof.base.limits import QUERY_TIME, unbound
from jaxprof.base.operating_system import python_words
from jaxprof.base.reaper import REAPER


class SqlProcess:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            python_words(sys.executable, "-m", "jaxprof.query.database"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # ctrl+c goes to this process alone, which then kills the other
        )
        unbound(self._process.pid)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.source, self.sink = self._process.stdout, self._process.stdin
        self._late = False
        self._timer: threading.Timer | None = None
        REAPER.add(self._process.pid, "")

    def __enter__(self) -> Self:
        return self

    def send(self, tables: Iterable[Any]) -> None:
        import pyarrow as pa

        for table in tables:
            with pa.ipc.new_stream(self.sink, table.schema) as writer:
                writer.write_table(table)
        self.sink.flush()

    def start_clock(self) -> None:
        self._timer = threading.Timer(QUERY_TIME.most, self._end_late)
        self._timer.daemon = True
        self._timer.start()

    def read_line(self) -> bytes:
        """Return the next line of the process. Raises UsageError if there is none."""
        line = self.source.readline()
        if not line:
            raise self.error
        return line

    def stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def __exit__(self, *_: object) -> None:
        self.stop_clock()
        self._process.kill()
        self._process.wait()
        REAPER.drop(self._process.pid)
        for pipe in (self.sink, self.source):
            with suppress(OSError):
                pipe.close()

    @property
    def error(self) -> UsageError:
        """Why there is no answer, or no further row of it. Waits for the end of the process."""
        if self._late:
            return UsageError(
                f"SQL: the query takes {QUERY_TIME.words}", f"Ask for less, or for aggregates. {QUERY_TIME.hint}"
            )
        code = self._process.wait()
        return UsageError(f"SQL: the process of the query ended with {code}", "Read less data: memory may be short.")

    def _end_late(self) -> None:
        self._late = True
        self._process.kill()
