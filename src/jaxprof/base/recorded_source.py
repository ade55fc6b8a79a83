"""Read source for display: only lines of a file that is still the one which was recorded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from io import StringIO
from pathlib import PurePath

from jaxprof.base.files import read_source
from jaxprof.base.redaction import LineScrubber


def recorded_lines(file: str, line: int, sources: Mapping[str, str], around: int = 0) -> tuple[tuple[int, str], ...]:
    """Return the line itself with `around` lines on each side, numbered; empty unless the file here is the one that was
    recorded. Everything that shows source goes through this function. A session of another machine finds its files
    below the current folder, as in a clone of the same repository.

    Whoever made a session, a profile or HLO may have named any file of this machine in it. `sources` has the digests
    that the session holds, by path: they prove that its maker knows the file. Without one the file is not even looked
    at. What looks like a secret is left out, as it is of all that is recorded.
    """
    digest = sources.get(file, "")
    # A path of another host makes Windows send it the user's credentials.
    if not digest or not file.endswith(".py") or file.startswith(("//", "\\\\")):
        return ()
    # The path itself, then its ends as paths below the current folder, the longest first.
    parts = PurePath(file).parts[1:]
    ends = (os.path.join(*parts[at:]) for at in range(len(parts)) if ".." not in parts)
    for candidate in (file, *ends):
        try:
            status = os.stat(candidate)
        except (OSError, ValueError):
            continue
        if lines := _lines_with_digest(candidate, digest, status.st_size, status.st_mtime_ns):
            first = max(1, line - around)
            return tuple(enumerate(lines[first - 1 : max(0, line + around)], first))
    return ()


@lru_cache(maxsize=8)
def _lines_with_digest(file: str, digest: str, size: int, modified_ns: int) -> tuple[str, ...]:
    """Return the lines of a file, without what looks like a secret; none if its digest is another one."""
    content, found = read_source(file)
    if found != digest:
        return ()
    scrubber = LineScrubber()
    return tuple([scrubber.scrub("", line.rstrip("\n")) for line in StringIO(content.decode("utf-8", "replace"), None)])
