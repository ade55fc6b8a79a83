"""Tapes: what real programs and engines sent, recorded once, for tests of everything that is made of it.

`record.py` beside this file makes them again: `.venv-newest/bin/python tests/tapes/record.py`. A tape is a session
file, packed; paths, names and addresses of the machine that recorded it were replaced. `profiles` has what JAX's
profiler wrote on an H100 (`tests/trace/test_trace_h100.py`), which is not made again.
"""

import lzma
from pathlib import Path

TAPES = Path(__file__).parent
SUFFIX = ".jaxprof.xz"


def names(kind: str) -> list[str]:
    """The tapes of a folder: `programs`, `endings` or `engines`."""
    return sorted(path.name.removesuffix(SUFFIX) for path in (TAPES / kind).glob(f"*{SUFFIX}"))


def unpacked(kind: str, name: str, folder: Path) -> Path:
    """The session file of a tape."""
    path = folder / f"{name}.jaxprof"
    path.write_bytes(lzma.decompress((TAPES / kind / f"{name}{SUFFIX}").read_bytes()))
    return path
