"""`python -m jaxprof` is `jaxprof`."""

from __future__ import annotations

import sys

_INTERRUPTED = 130

if __name__ == "__main__":
    try:
        from jaxprof.cli.main import main
    except KeyboardInterrupt:  # the processes of a job start so, and ctrl+c reaches those that are not up yet
        sys.exit(_INTERRUPTED)
    main()
