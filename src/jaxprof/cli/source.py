"""Arguments that name something to read: a path, the name of a kept session, or a URL, which is fetched first.

This is the one place where a URL becomes a path: commands behind it know paths alone.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.cli.output import note
from jaxprof.operating_system import unwound_by_signals

if TYPE_CHECKING:
    from jaxprof.remote.mirror import Mirror

FOLLOW_SECONDS: Final = 10.0
"""How often what is being looked at is fetched again."""
_PATIENCE_SECONDS: Final = 2.0
_WITH_RUN: Final = re.compile(r"(.+\.jaxprof(?:\.d)?)(:[^/:]+)")
"""A session of which a run is named, `gs://bucket/a.jaxprof:r1`."""

_mirrors: dict[str, Mirror] = {}


def local_words(word: str) -> str:
    """The word itself; for a URL the path of what was fetched from it, with the run that is named behind it. Raises
    UsageError or FileRefusedError."""
    from jaxprof.remote.place import is_url

    if not is_url(word):
        return word
    named = _WITH_RUN.fullmatch(word)
    url, run = (named[1], named[2]) if named else (word, "")
    return f"{_fetched(url)}{run}"


def follow_fetched() -> None:
    """Fetch again and again what this command was given by URL, while it shows it."""
    for mirror in _mirrors.values():
        mirror.follow(FOLLOW_SECONDS)


def _fetched(url: str) -> Path:
    """Fetched once in a command, however often it is asked for."""
    from jaxprof.remote.mirror import Mirror, forget_old
    from jaxprof.remote.place import RemotePlace

    mirror = _mirrors.get(url)
    if mirror is None:
        forget_old(time.time())
        place = RemotePlace(url)
        mirror = Mirror(place)
        due = time.monotonic() + _PATIENCE_SECONDS

        def progress(done: int, count: int) -> None:
            nonlocal due
            if time.monotonic() >= due and done < count:
                due = time.monotonic() + 5 * _PATIENCE_SECONDS
                note(f"fetching {place.shown}: {done} of {count} files")

        with unwound_by_signals():
            failed = mirror.refresh(progress)
        for line in failed:
            note(f"note: {line}")
        _mirrors[url] = mirror
    return mirror.path
