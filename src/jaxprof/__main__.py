"""`python -m jaxprof` is `jaxprof`."""

from __future__ import annotations

from jaxprof.cli.main import main

if __name__ == "__main__":
    main()
