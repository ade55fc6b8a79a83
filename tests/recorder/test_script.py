"""A program under `jaxprof script` is the program: what it prints, how it ends, and what it can see of its world."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jaxprof.events import ProgramStarted
from jaxprof.session import Session
from jaxprof.session.log import load
from recorder.running import OUT, notes_of, program_in, run_alone, run_recorded

pytestmark = pytest.mark.process

WORLD = """
import argparse, os, sys
print(__name__, __file__, sys.argv, sys.path, os.getcwd(), sys.flags, sys.orig_argv[1:])
print({name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "JAXPROF_P", "JAXPROF_F"))})
print("sitecustomize" in sys.modules)
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--out")
parser.add_argument("rest", nargs="*")
if __name__ == "__main__":
    print(parser.parse_args())
"""
GOES_ON = """
import os, time
def followed():
    return not os.environ["RECORDED"] or (os.path.exists("s.jaxprof") and "program_started" in open("s.jaxprof").read())
while not followed():
    time.sleep(0.02)
time.sleep(0.4)
"""
"""Lives on until the client looks at it. What has ended before that cannot be told from os._exit."""
PROGRAMS = {
    "an ordinary one": WORLD + "import atexit, signal, threading\n"
    "print(sys.stdin.isatty(), input(), sys.stdin.read().upper())\n"
    "thread = threading.Thread(target=sys.exit, args=(5,))\nthread.start()\nthread.join()\nprint('still here')\n"
    "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\natexit.register(print, 'bye')\n",
    "exit 3": "import sys\nsys.exit(3)",
    "_exit": "import os\nprint('now', flush=True)\nos._exit(4)",
    "exception": "def inner():\n    raise ValueError('ähm')\ninner()",
    "syntax error": "print('never'\n",
    "fork": "import os, sys\nif os.fork() == 0:\n    print('child', flush=True)\n    sys.exit(9)\n"
    "print(os.waitstatus_to_exitcode(os.wait()[1]))",
    "multiprocessing": "import multiprocessing as mp, os\n"
    "def work(number):\n    return number, sorted(name for name in os.environ if 'JAXPROF_P' in name)\n"
    "if __name__ == '__main__':\n    for how in ('fork', 'spawn'):\n"
    "        with mp.get_context(how).Pool(2) as pool:\n"
    "            print(pool.map(work, range(3)))",
    "exec": "import os, sys\nprint('before', flush=True)\n"
    f"os.execv(sys.executable, [sys.executable, '-c', {GOES_ON + 'print(7); exit(6)'!r}])",
    "closed descriptors": "import os\nos.closerange(3, 1 << 20)\nwith open('mine', 'w') as file:\n"
    "    file.write('x')\n    print(file.fileno())\nprint(open('mine').read())\n" + GOES_ON,
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "interrupted": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(30)",
}
SEEN = {"_exit": "not_unwound", "exec": "replaced", "closed descriptors": "pipe_closed", "killed": "not_unwound"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_the_same_under_the_recording(name: str, folder: Path) -> None:
    (folder / "x.py").write_text(PROGRAMS[name])
    words = ("x.py", "--epochs", "1", "--out", "o", "a b", "--", "-c", "ü")
    alone = run_alone(folder, *words, stdin="first\nsecond\n", RECORDED="")
    recorded = run_recorded(folder, *words, stdin="first\nsecond\n", RECORDED="1")
    assert recorded.out == alone.out
    assert recorded.err == alone.err
    assert recorded.code == (alone.code if alone.code >= 0 else 128 - alone.code)
    run = program_in(folder)
    assert run.program is not None
    assert run.program.ended is not None
    assert run.program.ended.exit_code == recorded.code
    assert run.program.ended.wall_seconds > 0
    assert (run.status == "ok") == (recorded.code == 0)
    assert notes_of(run) == [SEEN.get(name, "no_jax")]
    assert f"jaxprof: session: {OUT}\n" in recorded.notes


def test_a_module_is_run_as_python_does(folder: Path) -> None:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(WORLD)
    words = ("-m", "package.train", "--epochs", "2", "--out", "o")
    recorded = run_recorded(folder, *words)
    assert recorded.out == run_alone(folder, *words).out
    program = program_in(folder).program
    assert program is not None
    started = program.started
    assert isinstance(started, ProgramStarted)
    assert started.argv == list(words)
    assert started.how == "module"


def test_pythons_words_for_a_missing_file(folder: Path) -> None:
    alone = run_alone(folder, "nothing.py")
    recorded = run_recorded(folder, "nothing.py")
    assert (recorded.code, recorded.out, recorded.err) == (2, "", alone.err)
    assert recorded.notes == "jaxprof: nothing was recorded: there is no nothing.py\n"
    assert not (folder / OUT).exists()


@pytest.mark.parametrize("path", ["", ":/somewhere"])
def test_the_users_import_path_is_as_it_was(folder: Path, path: str) -> None:
    (folder / "x.py").write_text(WORLD)
    variables = {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    alone = run_alone(folder, "x.py", **variables)
    assert run_recorded(folder, "x.py", **variables).out == alone.out


@pytest.mark.parametrize("text", ["print('own', __name__, __file__)", "1 / 0"])
@pytest.mark.parametrize("variables", [{}, {"RANKED": "x"}], ids=["started early", "started late"])
def test_a_sitecustomize_of_the_users_comes_after_ours(text: str, variables: dict[str, str], folder: Path) -> None:
    """The client is a Python, too: what its own start prints comes before what the program prints."""
    own = folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(text)
    (folder / "x.py").write_text("import sys\nprint(sys.modules.get('sitecustomize'))")
    alone = run_alone(folder, "x.py", PYTHONPATH=str(own))
    recorded = run_recorded(folder, "x.py", PYTHONPATH=str(own), **variables)
    started = alone.out.removesuffix(alone.out.splitlines(keepends=True)[-1])
    assert (recorded.out, recorded.err) == (started + alone.out, alone.err + alone.err)
    assert notes_of(program_in(folder)) == ["no_jax"]


@pytest.mark.parametrize(
    ("harm", "done", "place"),
    [
        ("cut", "os.truncate(path, 0)", OUT),
        ("replaced by another file", "os.unlink(path); open(path, 'w').write('mine')", "s-2.jaxprof"),
    ],
)
def test_a_program_cannot_lose_its_session(harm: str, done: str, place: str, folder: Path) -> None:
    wait = f"import os\npath = {OUT!r}\nwhile not os.path.exists(path) or not os.path.getsize(path): pass\n"
    (folder / "x.py").write_text(f"{wait}{done}\n")
    recorded = run_recorded(folder, "x.py")
    assert recorded.code == 0, recorded.err
    assert f"session: {place} ({OUT} was {harm} while it was written" in recorded.notes
    session = load(folder / place, Session)
    assert (session.complete, session.notices) == (True, [])
    assert session.runs["r1"].closed is not None


def test_a_python_that_reads_no_sitecustomize_is_told(folder: Path) -> None:
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    python.chmod(0o755)
    (folder / "x.py").write_text("print('well')")
    recorded = run_recorded(folder, "x.py", options=("--python", str(python)))
    assert (recorded.code, recorded.out) == (0, "well\n")
    assert notes_of(program_in(folder)) == ["not_recorded"]
    assert "-I, -E or -S" in recorded.notes


def test_an_old_python_is_refused(folder: Path) -> None:
    python = folder / "python"
    python.write_text('#!/bin/sh\necho \'{"python": [3, 9, 1], "jax": null, "numpy": null}\'\n')
    python.chmod(0o755)
    (folder / "x.py").write_text("print('never')")
    recorded = run_recorded(folder, "x.py", options=("--python", str(python)))
    assert recorded.code == 2
    assert "3.9.1" in recorded.notes
    assert "3.11 or newer" in recorded.notes
