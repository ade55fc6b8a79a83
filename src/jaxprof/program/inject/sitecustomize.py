"""The first thing that Python imports in a program that `jaxprof script` starts; everything after it is the program's.

Its folder stands in front of PYTHONPATH for this one import. It puts the environment and the import path back to what
they would be without it, so that neither the program nor its children see any of this, begins the recording, and then
makes way for the `sitecustomize` that the program would have had. Where there is none, the import fails as it would
have failed without ours, which is what Python's `site` expects.

Any Python 3 may meet this file, however old. It must cost next to nothing: nothing that start-up has not imported.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BORROWED = ("PYTHONPATH", "PYTHONUNBUFFERED")
"""Variables that the launcher has set for Python's own start; the former value of X is in JAXPROF_FORMER_X."""


def restore() -> None:
    """Puts the environment and the import path back."""
    for name in BORROWED:
        former = os.environ.pop("JAXPROF_FORMER_" + name, None)
        if former is not None:
            os.environ[name] = former
        else:
            os.environ.pop(name, None)
    while HERE in sys.path:
        sys.path.remove(HERE)
    sys.path_importer_cache.pop(HERE, None)


def begin(plan: str) -> None:
    """Starts the recording. `jaxprof` may not be installed here: it is found beside this file, its neighbours not."""
    known = SOURCES in sys.path_importer_cache
    sys.path.insert(0, SOURCES)
    try:
        import jaxprof  # noqa: F401
    finally:
        sys.path.remove(SOURCES)
        if not known:
            sys.path_importer_cache.pop(SOURCES, None)
    from jaxprof.program.launch import begin

    begin(plan)


if __name__ == "sitecustomize":
    launched = os.environ.pop("JAXPROF_PROGRAM", None)
    if launched is not None:
        restore()
        if sys.version_info >= (3, 11):  # noqa: UP036 - this file is read by whatever Python was named
            try:  # noqa: SIM105 - contextlib would be one more import
                begin(launched)
            except Exception:  # noqa: BLE001 - the program comes first; the launcher misses our first sign, and tells
                pass
        del sys.modules["sitecustomize"]
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
