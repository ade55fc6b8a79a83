"""Profiles that were recorded elsewhere, opened in the app: read by an engine of their own into a session of its own.

That session lives in a folder that is gone when the app ends; `w` (save as) keeps it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from jaxprof.errors import FileRefusedError

_folders: list[tempfile.TemporaryDirectory[str]] = []
"""One for each profile that was opened. Their finalisers remove them when the process ends."""


def as_session(path: Path) -> Path:
    """The session file made of the profile at `path`. Blocks: for threads. Raises JaxprofError where it is none."""
    from jaxprof.store import LogWriter, new_header
    from jaxprof.store.codec import EXTENSION
    from jaxprof.worker import Conductor, own_interpreter, plan_profile

    planned = plan_profile(path)
    folder = tempfile.TemporaryDirectory(prefix="jaxprof-")
    _folders.append(folder)
    target = Path(folder.name) / ((path.name.split(".")[0] or "profile") + EXTENSION)
    writer = LogWriter(new_header({}), target)
    conductor = Conductor(writer, own_interpreter(), lambda events: None)
    try:
        conductor.add([planned])
        conductor.run()
    finally:
        conductor.close()
    whole = next(iter(conductor.session.runs.values()))
    if whole.status != "ok":
        raise FileRefusedError(whole.error or f"{path} could not be read", whole.advice)
    if writer.failure is not None:
        raise writer.failure
    return target
