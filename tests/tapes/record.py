"""Records the tapes anew, each in processes of its own, one after the other. It wants a quiet machine: five minutes.

    python tests/tapes/record.py [NAME...]

With Python 3.12 or newer, so that iterations are timed. Look at what changed in the tests before you keep it.
"""

import argparse
import lzma
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "bench")]

from case_files import Case, cases  # noqa: E402
from tapes import SUFFIX, TAPES  # noqa: E402

TRAINS = """
import sys
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(x):
    return jnp.sin(x) * 2

for size in (3, 4, 5):
    step(np.ones(size, np.float32))
"""
ENDINGS = {
    "ends": "",
    "exits": "sys.exit(3)\n",
    "raises": "raise ValueError('nan')\n",
    "raises_in_jit": "jax.jit(lambda x: x.nothing)(1.0)\n",
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "terminated": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "leaves_at_once": "import os\nos._exit(4)\n",
    "interrupted": "import signal\nsignal.raise_signal(signal.SIGINT)\n",
}
ENGINES = {
    "measures": "def work(x):\n    return jnp.tanh(x @ x).sum()\n",
    "raises": "def work(x):\n    raise ValueError('never')\n",
    "raises_when_called": "def work(x):\n    jax.debug.callback(lambda: 1 / 0)\n    return x\n",
    "killed": "import os, signal\ndef work(x):\n    os.kill(os.getpid(), signal.SIGKILL)\n",
    "talks": "import sys\ndef work(x):\n    print('traced', file=sys.stderr)\n    return x * 2\n",
}
"""What a function does that `jaxprof run` measures, with a square matrix."""


@dataclass(frozen=True)
class Take:
    """One tape: the file that is run, and the words after `jaxprof`."""

    kind: str
    name: str
    text: str
    words: tuple[str, ...]
    path: Path | None = None
    """A folder that the program imports from."""


def programs() -> list[Case]:
    """For each finding a program that has it, with its mended twin; and those in which nothing is planted. In their
    short form, and without other libraries."""
    by_name = {case.name: case for case in cases() if not case.needs}
    planted = {}
    for case in by_name.values():
        if case.expected and case.mended in by_name:
            planted.setdefault(case.expected[0][0], case)
    twins = {case.mended for case in by_name.values()}
    found = {case.name for case in planted.values()} | {case.mended for case in planted.values()}
    found |= {case.name for case in by_name.values() if not case.expected and case.name not in twins}
    return [by_name[name] for name in sorted(found)]


def takes() -> Iterator[Take]:
    """Every tape."""
    for case in programs():
        more = case.path.parent / case.python_path if case.python_path else None
        words = ("script", "--plain", f"{case.name}.py", "1")
        yield Take("programs", case.name, case.path.read_text(), words, more)
    for name, ending in ENDINGS.items():
        yield Take("endings", name, TRAINS + ending, ("script", "--plain", f"{name}.py"))
    for name, work in ENGINES.items():
        words = ("run", f"{name}.py:work", "--arg", "f32[64,64]", "--budget", "0.2", "--launches", "1")
        yield Take("engines", name, f"import jax, jax.numpy as jnp\n{work}", words)


def record(take: Take) -> Path:
    """Runs it, and keeps what was sent."""
    with tempfile.TemporaryDirectory(prefix="tape-") as temporary:
        folder = Path(temporary).resolve()
        (folder / f"{take.name}.py").write_text(take.text)
        verb, *words = take.words
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA", "PYTHON"))}
        variables |= {"JAX_PLATFORMS": "cpu", "JAXPROF_HOME": str(folder / "home")}
        if take.path is not None:
            shutil.copytree(take.path, folder / "path")
            variables["PYTHONPATH"] = str(folder / "path")
        client = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); from jaxprof.cli.main import main; main()"
        subprocess.run(
            [sys.executable, "-c", client, verb, "--out", "s.jaxprof", *words],
            cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
        )  # fmt: skip
        raw = (folder / "s.jaxprof").read_bytes()
    replaced = {
        str(folder): "/home/user/programs",
        str(ROOT / "src"): "/usr/lib/python3/site-packages",
        sys.prefix: "/usr",
        sys.base_prefix: "/usr",
        str(ROOT): "/home/user/jaxprof",
        str(Path.home()): "/home/user",
        f'"host":"{socket.gethostname()}"': '"host":"box"',
    }
    for old, new in replaced.items():
        raw = raw.replace(old.encode(), new.encode())
    kept = TAPES / take.kind / f"{take.name}{SUFFIX}"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(lzma.compress(raw, preset=9))
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="these alone")
    names = parser.parse_args().names
    for take in takes():
        if not names or take.name in names:
            kept = record(take)
            sys.stdout.write(f"{kept.relative_to(ROOT)}: {kept.stat().st_size} bytes\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
