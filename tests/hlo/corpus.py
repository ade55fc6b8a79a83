"""Where the modules for tests come from: programs compiled by JAX here, and real files where the machine has them."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
REAL_FILES = REPOSITORY.parent / "shared" / "data" / "hlo"
_LARGEST_BYTES = 1 << 40 if os.environ.get("JAXPROF_LONG") else 1 << 20


def real_files(pattern="*"):
    """The real files that this machine has; those of megabytes only with JAXPROF_LONG=1."""
    return [path for path in sorted(REAL_FILES.glob(pattern)) if path.stat().st_size < _LARGEST_BYTES]


def _environment():
    return {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"}


@functools.cache
def compiled_programs(folder):
    """The folder, with the HLO of `programs.py` in it."""
    folder.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, str(HERE / "programs.py"), str(folder)], check=True, env=_environment(), capture_output=True
    )
    return folder


def peer_has_reader():
    done = subprocess.run([sys.executable, "-c", "from jaxlib import _hlo"], capture_output=True, check=False)
    return done.returncode == 0


def peer_reads(paths):
    """What jaxlib's reader makes of each file; one that it refuses has `error`, one that ends its process `aborted`."""
    remaining = list(paths)
    while remaining:
        done = subprocess.run(
            [sys.executable, str(HERE / "peer.py"), *map(str, remaining)],
            env=_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if not lines:
            raise AssertionError(f"the peer did not start: {done.stderr[-2000:]}")
        answers = lines[1::2]
        yield from zip(remaining, answers, strict=False)
        if len(lines) % 2:
            yield remaining[len(answers)], {"aborted": True}
        remaining = remaining[(len(lines) + 1) // 2 :]
