"""Which sessions this machine has recorded itself: the digests of their files, in a list beside the kept sessions.

A file cannot prove who made it: its host, its id and its folder are what it says, or where somebody has put it. So the
writer adds the digest of what it has written to the list when it closes the file. A session that was changed, sent or
never closed is like any other file.
"""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache

from jaxprof.base.files import PRIVATE, private_folder, write_all
from jaxprof.session.files import state_folder

_NAME = "recorded"
_LINE_BYTES = 65  # a SHA-256 in hexadecimal digits, and the end of the line


def add_own(digest: str) -> None:
    """Add the digest of a session that this process has recorded. A list that cannot be written raises nothing: the
    session counts as one from elsewhere."""
    path = state_folder() / _NAME
    with contextlib.suppress(OSError):
        private_folder(path.parent)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), PRIVATE)
        try:
            write_all(file, f"{digest}\n".encode())
        finally:
            os.close(file)


def is_own(digest: str) -> bool:
    path = state_folder() / _NAME
    try:
        status = os.stat(path)
        return digest in _digests(str(path), status.st_mtime_ns, status.st_size)
    except OSError:
        return False


@lru_cache(maxsize=1)
def _digests(path: str, modified_ns: int, size: int) -> frozenset[str]:
    with open(path, encoding="ascii", errors="replace") as file:
        return frozenset(line.strip() for line in file if len(line) == _LINE_BYTES)
