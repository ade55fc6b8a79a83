"""`python -m jaxprof` is `jaxprof`."""

from __future__ import annotations

import os
import sys

_INTERRUPTED = 130


def _leave_the_current_folder() -> None:
    """Takes the current folder from the path, where `-m` puts it: a `click.py` there is not ours."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()] and sys.path[0] != ours:
        del sys.path[0]


if __name__ == "__main__":
    _leave_the_current_folder()
    try:
        from jaxprof.cli.main import main
    except KeyboardInterrupt:  # the processes of a job start so, and ctrl+c reaches those that are not up yet
        sys.exit(_INTERRUPTED)
    main()
