"""The user's state folder, and the folders of what was fetched from URLs.

This user's jaxprof wrote everything in them, so they can be trusted; they can be deleted at any time.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from jaxprof.session_names import FETCHED

HOME_VARIABLE = "JAXPROF_HOME"
FETCHED_FROM = "url.txt"
"""Name of the file in each folder of what was fetched that holds its URL."""
_IN_FETCHED = r"[0-9a-f]{16}[/\\][\w.+@-]*[\w+@-]"
"""Pattern for the key of a URL and its last part, below the folder of what was fetched."""


def state_folder() -> Path:
    """Return the folder of sessions and measured figures of the machine: `$JAXPROF_HOME` or the user's state folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen)
    from platformdirs import user_state_path

    return user_state_path("jaxprof")


def fetched_folder() -> Path:
    """Return the folder for what was fetched from URLs: below `$JAXPROF_HOME`, or the user's cache folder."""
    if os.environ.get(HOME_VARIABLE):
        return state_folder() / FETCHED
    from platformdirs import user_cache_path

    return user_cache_path("jaxprof") / FETCHED


def is_fetched(path: Path) -> bool:
    """Return whether `path` is part of what was fetched from URLs, into any state folder: each folder of
    what was fetched holds its URL."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(fetched_folder())) or bool(note_of_copy(path))


def note_of_copy(path: Path) -> Path | None:
    """Return the file with the URL of which `path` is a copy, written at each look at the URL; None if it is none."""
    place = Path(os.path.realpath(path))
    notes = (parent / FETCHED_FROM for parent in (place, *place.parents) if parent.parent.name == FETCHED)
    return next((note for note in notes if note.is_file()), None)


def url_of(path: Path) -> str | None:
    """Return the URL, without its secrets, of which the file or folder at `path` is a copy; None if it is none."""
    root = fetched_folder().absolute()
    try:
        key, _, *below = path.absolute().relative_to(root).parts
        return "/".join([(root / key / FETCHED_FROM).read_text("utf-8").strip(), *below])
    except (ValueError, OSError):
        return None


def with_urls(text: str) -> str:
    """Return `text` with the URL in place of each path of what was fetched from it: users do not know such a path, and
    it means nothing in another shell."""
    copy = re.compile(re.escape(f"{fetched_folder().absolute()}{os.sep}") + _IN_FETCHED)
    return copy.sub(lambda found: url_of(Path(found[0])) or found[0], text)
