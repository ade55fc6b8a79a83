"""`jaxprof`, and `python -m jaxprof`: start the program that is to be recorded, if there is one, then all the rest."""

from __future__ import annotations

import gc
import os
import sys

_INTERRUPTED = 130
_OBJECTS = 100_000
"""New objects before Python looks for garbage: more than our imports make, which leave none. Beside a program that is
starting, to look for it takes 15 ms of a processor."""


def _leave_the_current_folder() -> None:
    """Remove the current folder from the path, where `-m` puts it: a `click.py` there is not ours."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()] and sys.path[0] != ours:
        del sys.path[0]


def main() -> None:
    """Run the command line."""
    try:
        started = None
        if sys.argv[1:2] == ["script"]:
            from jaxprof.base.early_start import start_early

            started = start_early(sys.argv[1:])
            if started is not None:
                gc.set_threshold(_OBJECTS)
        from jaxprof.cli.main import main as run
    except KeyboardInterrupt:  # ctrl+c reaches all processes of a job, also those that are still starting
        sys.exit(_INTERRUPTED)
    try:
        run(started=started)
    finally:
        gc.freeze()  # Python would go through all objects once more at its end, which takes 30 ms


if __name__ == "__main__":
    _leave_the_current_folder()
    main()
