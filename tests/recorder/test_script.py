"""A program under `jaxprof script` is the program: what it prints, how it ends, and what it can see of its world.
Signals, and a client that dies: the program feels what it would feel without us."""

import signal
import subprocess
import sys

import pytest

from jaxprof.session import Session
from jaxprof.session.log import load
from recorder.running import OUT, SOURCE, client, environment, notes_of, program_in, run_alone, run_recorded
from terminal import Terminal

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
def looked():
    with open(f"/proc/{os.getppid()}/status") as status:
        return int(status.read().partition("\\nvoluntary_ctxt_switches:")[2].split()[0])
while not followed():
    time.sleep(0.02)
if os.environ["RECORDED"]:
    before = looked()
    time.sleep(0.4)
    while looked() < before + 10:  # on a busy machine it takes longer to look at this process
        time.sleep(0.02)
"""
"""Lives on until the client looks at it. What has ended before that cannot be told from os._exit."""
PROGRAMS = {
    "an ordinary one": WORLD + "import atexit, signal, threading\n"
    "print(sys.stdin.isatty(), input(), sys.stdin.read().upper())\n"
    "thread = threading.Thread(target=sys.exit, args=(5,))\nthread.start()\nthread.join()\nprint('still here')\n"
    "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\natexit.register(print, 'bye')\n",
    "_exit": "import os\nprint('now', flush=True)\nos._exit(4)",
    "exception": "def inner():\n    raise ValueError('ähm')\ninner()",
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
}
SEEN = dict.fromkeys(("_exit", "exec", "closed descriptors", "killed"), "not_unwound")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_the_same_under_the_recording(name, tmp_path):
    (tmp_path / "x.py").write_text(PROGRAMS[name])
    words = ("x.py", "--epochs", "1", "--out", "o", "a b", "--", "-c", "ü")
    given = {"stdin": "first\nsecond\n", "PYTHONPATH": ":/somewhere", "PYTHONUNBUFFERED": "1"}
    alone = run_alone(tmp_path, *words, **given, RECORDED="")
    recorded = run_recorded(tmp_path, *words, **given, RECORDED="1")
    assert recorded.out == alone.out
    assert recorded.err == alone.err
    assert recorded.code == (alone.code if alone.code >= 0 else 128 - alone.code)
    run = program_in(tmp_path)
    assert run.program.ended.exit_code == recorded.code
    assert run.program.ended.wall_seconds > 0
    assert (run.status == "ok") == (recorded.code == 0)
    assert run.program.ended.error == ("ValueError: ähm" if name == "exception" else "")
    assert notes_of(run) == [SEEN.get(name, "no_jax")]
    assert f"jaxprof: session: {OUT}\n" in recorded.notes


def test_a_module_is_run_as_python_does(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(WORLD)
    words = ("-m", "package.train", "--epochs", "2", "--out", "o")
    recorded = run_recorded(tmp_path, *words)
    assert recorded.out == run_alone(tmp_path, *words).out
    started = program_in(tmp_path).program.started
    assert started.argv == list(words)
    assert started.how == "module"


def test_a_missing_file_ends_as_in_python_and_nothing_is_recorded(tmp_path):
    recorded = run_recorded(tmp_path, "nothing.py")
    assert (recorded.code, recorded.out) == (run_alone(tmp_path, "nothing.py").code, "")
    assert "there is no file nothing.py" in recorded.notes
    assert not (tmp_path / OUT).exists()


@pytest.mark.parametrize(
    ("text", "variables"),
    [("print('own', __name__, __file__)", {}), ("1 / 0", {"RANKED": "x"})],
    ids=["started early", "started late, and failing"],
)
def test_a_sitecustomize_of_the_users_comes_after_ours(text, variables, tmp_path):
    """The client is a Python, too: what its own start prints comes before what the program prints."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(text)
    (tmp_path / "x.py").write_text("import sys\nprint(sys.modules.get('sitecustomize'))")
    alone = run_alone(tmp_path, "x.py", PYTHONPATH=str(own))
    recorded = run_recorded(tmp_path, "x.py", PYTHONPATH=str(own), **variables)
    started = alone.out.removesuffix(alone.out.splitlines(keepends=True)[-1])
    assert (recorded.out, recorded.err) == (started + alone.out, alone.err + alone.err)
    assert notes_of(program_in(tmp_path)) == ["no_jax"]


@pytest.mark.parametrize(
    ("harm", "done", "place"),
    [
        ("deleted", "os.unlink(path)", OUT),
        ("replaced by another file", "os.unlink(path); open(path, 'w').write('mine')", "s-2.jaxprof"),
    ],
)
def test_a_program_cannot_lose_its_session(harm, done, place, tmp_path):
    wait = f"import os\npath = {OUT!r}\nwhile not os.path.exists(path) or not os.path.getsize(path): pass\n"
    (tmp_path / "x.py").write_text(f"{wait}{done}\n")
    recorded = run_recorded(tmp_path, "x.py")
    assert recorded.code == 0, recorded.err
    assert f"session: {place} ({OUT} was {harm} while it was written" in recorded.notes
    session = load(tmp_path / place, Session)
    assert (session.complete, session.notices) == (True, [])
    assert session.runs["r1"].closed is not None


def test_a_python_that_reads_no_sitecustomize_is_told(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    python.chmod(0o755)
    (tmp_path / "x.py").write_text("print('well')")
    recorded = run_recorded(tmp_path, "x.py", options=("--python", str(python)))
    assert (recorded.code, recorded.out) == (0, "well\n")
    assert notes_of(program_in(tmp_path)) == ["not_recorded"]
    assert "-I, -E or -S" in recorded.notes


SECONDS = 20.0
WAITS = "import sys, time\nprint('ready', flush=True)\nfor _ in range(600):\n    time.sleep(0.1)\n"
HANDLES = """
import os, signal, sys, time
def handler(number, frame):
    os.write(1, f"got {signal.Signals(number).name}\\n".encode())
    if number == signal.SIGHUP:
        sys.exit(7)
for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, handler)
print("ready", flush=True)
for _ in range(600):
    time.sleep(0.1)
"""


def test_ctrl_c_interrupts_the_program_and_not_the_recording(tmp_path):
    (tmp_path / "x.py").write_text(WAITS)
    with Terminal(client("x.py"), tmp_path, environment()) as terminal:
        terminal.until("ready")
        terminal.type(b"\x03")
        assert terminal.end() == 130
    traceback = terminal.plain.partition("^C")[2].partition("jaxprof: ")[0].splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[1].startswith(f'  File "{tmp_path}/x.py", line ')
    assert traceback[-1] == "KeyboardInterrupt"
    assert len([line for line in traceback if line.startswith("  File")]) == 1
    run = program_in(tmp_path)
    assert run.status == "cancelled"
    assert run.program.ended.exit_code == 130
    assert notes_of(run) == ["no_jax"]


def start(folder, *words):
    """Under the recording, without a terminal, once the program has said that it is ready."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(client(*words), cwd=folder, env=environment(), text=True, **pipes)
    assert process.stdout.readline() == "ready\n"
    return process


def test_signals_sent_to_us_reach_the_program_one_by_one(tmp_path):
    (tmp_path / "x.py").write_text(HANDLES)
    process = start(tmp_path, "x.py")
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
        process.send_signal(number)
        assert process.stdout.readline() == f"got {number.name}\n"
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 7, err
    assert program_in(tmp_path).closed is not None


def test_a_program_that_sigterm_ends_is_kept(tmp_path):
    (tmp_path / "x.py").write_text(WAITS)
    process = start(tmp_path, "x.py")
    process.terminate()
    process.communicate(timeout=SECONDS)
    assert process.returncode == 143
    run = program_in(tmp_path)
    assert run.status == "crashed"
    assert "SIGTERM" in run.error


def test_the_program_outlives_a_client_that_is_killed(tmp_path):
    (tmp_path / "x.py").write_text(
        "import signal, sys, time\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nprint('ready', flush=True)\n"
        "sys.stdin.readline()\nsys.path.insert(0, 'fake')\nimport jax\nopen('done', 'w').write('well')\n"
    )
    fake = tmp_path / "fake" / "jax"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("__version__ = '0'\n")
    process = start(tmp_path, "x.py")
    process.kill()
    process.wait()
    process.stdin.write("go on\n")
    process.stdin.close()
    assert process.stdout.read() == ""  # until the program has ended
    assert (tmp_path / "done").read_text() == "well"


@pytest.mark.parametrize(("last", "code"), [("", 1), ("; be_interrupted()", -signal.SIGINT)])
def test_source_that_is_run_while_a_program_ends_does_not_take_its_interrupt(last, code):
    """Python forgets that it was interrupted when it runs more source: what is imported at the end, for one."""
    program = (
        "import atexit\nfrom jaxprof.recorder.launch import be_interrupted\n"
        f"def end():\n    exec('1'){last}\natexit.register(end)\nraise KeyboardInterrupt\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(SOURCE)}
    )
    assert "KeyboardInterrupt" in done.stderr
    assert done.returncode == code
