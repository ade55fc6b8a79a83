"""Who a process is, by its pid: other people's programs on the same GPU, with the little that we may know of them."""

from __future__ import annotations

from collections.abc import Mapping

import psutil

from jaxprof.events import Scalar


class ProcessNames:
    """Names and users by pid, remembered as long as the pid is asked for.

    A process of another user may hide its user, one of another container its existence: then they are None.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[str | None, str | None]] = {}

    def describe(self, memory_bytes: Mapping[int, int | None]) -> list[dict[str, Scalar | None]]:
        """pid, name, user and memory_bytes of each process, largest memory first."""
        self._known = {pid: who for pid, who in self._known.items() if pid in memory_bytes}
        order = sorted(memory_bytes, key=lambda pid: (-(memory_bytes[pid] or 0), pid))
        return [self._describe(pid, memory_bytes[pid]) for pid in order]

    def _describe(self, pid: int, memory_bytes: int | None) -> dict[str, Scalar | None]:
        if pid not in self._known:
            self._known[pid] = _who(pid)
        name, user = self._known[pid]
        return {"pid": pid, "name": name, "user": user, "memory_bytes": memory_bytes}


def _who(pid: int) -> tuple[str | None, str | None]:
    name = user = None
    try:
        process = psutil.Process(pid)
        name = process.name() or None
        user = process.username() or None
    except (psutil.Error, OSError, ValueError, KeyError, OverflowError):
        return name, user  # gone, hidden, or a user id without a name
    return name, user
