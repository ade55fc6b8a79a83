"""Limits on what is read from outside: one for each kind of input, named in its error, which the user can raise.

A file of a few megabytes can unpack to gigabytes, or hold ten million empty records. `JAXPROF_LIMITS` raises a limit
for whoever trusts the file: `JAXPROF_LIMITS=unpacked=1GiB,planes=50000`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from jaxprof.base.errors import UsageError
from jaxprof.base.units import bytes_, integer
from jaxprof.base.values import frozen

VARIABLE = "JAXPROF_LIMITS"


@frozen
class Limit:
    """The most that is read of one kind of input."""

    name: str
    default: int
    what: str
    """The noun for what the limit counts, in the plural: `planes`."""

    @property
    def most(self) -> int:
        """The limit in force. Raises UsageError if the variable cannot be read."""
        return _read_limits(os.environ.get(VARIABLE, "")).get(self.name, self.default)

    @property
    def highest(self) -> int:
        """The highest value that the limit can be raised to: no machine has more, and no clock or stack takes more."""
        return {"seconds": 10**8, "levels": 1000}.get(self.what, 1 << 50)

    @property
    def words(self) -> str:
        """Words for what exceeded the limit: `more than 256 MiB`, `more than 10 000 planes`."""
        if self.what == "bytes":
            return f"more than {bytes_(self.most)}"
        return f"more than {integer(self.most)} {self.what}"

    @property
    def hint(self) -> str:
        """How to make the limit four times as high."""
        larger = f"{max(1, self.most >> 28)}GiB" if self.what == "bytes" else str(4 * self.most)  # 28: 4 times, in 2³⁰
        return f"If you trust it, {VARIABLE}={self.name}={larger} raises the limit."


FILE = Limit("file", 2 << 30, "bytes")
"""Size of a file that is read whole: a profile, HLO."""
UNPACKED = Limit("unpacked", 256 << 20, "bytes")
"""Size that a gzip file, or a text of a session, unpacks to."""
PLANES = Limit("planes", 10_000, "planes")
"""Planes of a profile: its devices, hosts and tables of metadata."""
LINES = Limit("lines", 100_000, "lines")
"""Lines of a profile: the threads and streams of all its planes."""
NAMES = Limit("names", 1_000_000, "names")
"""Names of events and statistics of a profile, in all its planes."""
EVENTS = Limit("events", 64_000_000, "events")
"""Events of a profile that are kept, on all its lines, in columns of 8 bytes each. JAX's profiler writes 17 bytes for a
call in Python: these are a GiB of nothing else, which it records in some minutes. A hostile file could have 2 bytes."""
VALUES = Limit("values", 10_000_000, "values")
"""Values in a timeline's text, some for each of its million intervals. Parsed they take twenty times the memory."""
INSTRUCTIONS = Limit("instructions", 2_000_000, "instructions")
"""Instructions of an HLO text or proto. Each takes some two hundred bytes, and more once its kernel is analysed."""
OUTPUT = Limit("output", 32 << 20, "bytes")
"""Output of a child that its session keeps."""
LINE = Limit("line", 32 << 20, "bytes")
"""Size of a line of a session, or of a child's events. Three bytes of JSON can become seventy in memory, and long texts
are split into lines of some kilobytes."""
DEPTH = Limit("depth", 200, "levels")
"""Nesting depth of the values in a line. A tree of the compiler's passes has up to 130 levels."""
COPY = Limit("copy", 32 << 20, "bytes")
"""Compressed copy of a session in its writer's memory, of some 500 MB of lines. What another process cuts off the file
is written again from it."""
PROCESSES = Limit("processes", 4096, "processes")
"""Sessions in the folder of a job that are opened."""
FETCHED = Limit("fetched", 16 << 30, "bytes")
"""Size of what is fetched from one URL."""
FETCHED_FILES = Limit("fetched_files", 50_000, "files")
"""Files in a folder at a URL. A job of 4096 processes has some 30 000."""
FETCH_TIME = Limit("fetch_time", 3600, "seconds")
"""How long fetching from one URL may take, listings included."""
QUERY_MEMORY = Limit("query_memory", 2 << 30, "bytes")
"""Memory of a query while it is computed, and of the rows of the tables that it reads."""
QUERY_TIME = Limit("query_time", 60, "seconds")
"""How long a query may take."""

LIMITS = {value.name: value for value in list(globals().values()) if isinstance(value, Limit)}

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_LARGEST = 1e30  # four hundred digits are `inf`, which no integer is


def size_of(text: str) -> int | None:
    """Return a size as people write it, `500M`, `2GiB`, `1048576`; units are binary. None for anything else."""
    match = _SIZE.fullmatch(text.strip())
    return int(min(float(match[1]), _LARGEST) * (1 << _UNITS[match[2].lower()])) if match is not None else None


@cache
def _read_limits(text: str) -> dict[str, int]:
    given: dict[str, int] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        name, _, text_of_number = item.partition("=")
        number = size_of(text_of_number)
        if number is None or name not in LIMITS:
            raise UsageError(
                f"{VARIABLE}: {item[:60]!r} is not a limit",
                f"Give NAME=NUMBER, such as unpacked=1GiB. Names: {', '.join(LIMITS)}.",
            )
        limit = LIMITS[name]
        if number > limit.highest:
            raise UsageError(f"{VARIABLE}: {item[:60]!r} is too high", f"The highest is {integer(limit.highest)}.")
        given[name] = number
    return given


_bounding = threading.RLock()
"""Held while the bound is set. Without it, the second of two threads would restore the bound of the first, for good."""


_usual_bounds: tuple[int, int] | None = None
"""The process's own bounds, without ours; None until ours was first set."""


@contextmanager
def memory_bound() -> Iterator[None]:
    """Keep the process from growing by more than twice the limit of a query: DuckDB's own account leaves out a single
    value (`repeat`), which is copied on its way out. Does nothing on systems without such a bound."""
    global _usual_bounds
    with _bounding:
        try:
            import resource

            used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
            soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        except (ImportError, OSError, ValueError):
            yield
            return
        _usual_bounds = _usual_bounds or (soft, hard)
        most = used + 2 * QUERY_MEMORY.most
        resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(soft, most), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def unbound(pid: int) -> None:
    """Give a child the memory bound that this process has outside `memory_bound`: a child that another thread starts
    meanwhile inherits ours."""
    if _usual_bounds is not None:
        import resource

        with suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_AS, _usual_bounds)


def check() -> None:
    """Raises UsageError if the variable cannot be read."""
    _read_limits(os.environ.get(VARIABLE, ""))
