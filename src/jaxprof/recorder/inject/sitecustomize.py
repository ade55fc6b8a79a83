"""The first module that Python imports in a program started by `jaxprof script`; everything after it is the program's
own.

Its folder stands first in PYTHONPATH for this one import. It restores the environment and the import path to what they
would be without it, so that neither the program nor its children see any of this. Then it begins the recording and
gives way to the `sitecustomize` that the program would have had. If there is none, the import fails as it would have
failed without ours, which is what Python's `site` expects.

Any Python 3 may read this file, however old. It must cost next to nothing, so it imports only what start-up has
imported already.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


def restore() -> None:
    """Restore the environment and the import path."""
    # The launcher has set these for Python's start; JAXPROF_FORMER_X holds the former value of X.
    for name in ("PYTHONPATH", "PYTHONUNBUFFERED"):
        former = os.environ.pop("JAXPROF_FORMER_" + name, None)
        if former is not None:
            os.environ[name] = former
        else:
            os.environ.pop(name, None)
    while HERE in sys.path:
        sys.path.remove(HERE)
    sys.path_importer_cache.pop(HERE, None)


def begin(plan: str) -> None:
    """Start the recording. `jaxprof` is found by this file's location, without the packages next to it."""
    cached = SOURCES in sys.path_importer_cache
    sys.path.insert(0, SOURCES)
    try:
        import jaxprof  # noqa: F401
    finally:
        sys.path.remove(SOURCES)
        if not cached:
            sys.path_importer_cache.pop(SOURCES, None)
    from jaxprof.recorder.launch import begin

    begin(plan)


if __name__ == "sitecustomize":
    launched = os.environ.pop("JAXPROF_PROGRAM", None)
    if launched is not None:
        restore()
        if sys.version_info >= (3, 11):  # noqa: UP036 - this file is read by whatever Python was named
            try:  # noqa: SIM105 - contextlib would be another import
                begin(launched)
            except Exception:  # noqa: BLE001 - the program runs as it would without us, whatever fails here
                pass  # nothing may be printed: the launcher gets no first line, and reports that nothing was recorded
        del sys.modules["sitecustomize"]
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
