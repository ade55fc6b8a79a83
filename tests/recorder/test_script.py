"""A program under `jaxprof script` is the program: what it prints, how it ends, and what it can see of its world.
Signals, and a client that dies: the program feels what it would feel without us."""

import signal
import subprocess
import sys

import pytest

from jaxprof.session import Session
from jaxprof.session.log import load
from recorder.running import (
    OUT,
    SOURCE,
    client,
    environment,
    notes_of,
    program_in,
    run_alone,
    run_recorded,
    session_in,
)
from terminal import Terminal

WORLD = """
import argparse, atexit, multiprocessing, os, signal, sys, threading
print(__name__, __file__, sys.argv, sys.path, os.getcwd(), sys.flags, sys.orig_argv[1:])
print({name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "JAXPROF_P", "JAXPROF_F"))})
print("sitecustomize" in sys.modules)
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--api-key")
parser.add_argument("rest", nargs="*")
def work(number):
    return number, sorted(name for name in os.environ if "JAXPROF_P" in name)
if __name__ == "__main__":
    print(parser.parse_args())
"""
ORDINARY = f"""{WORLD}
    print(sys.stdin.isatty(), input(), sys.stdin.read().upper())
    thread = threading.Thread(target=sys.exit, args=(5,))
    thread.start()
    thread.join()
    print("still here")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    atexit.register(print, "bye")
    for how in ("fork", "spawn"):
        with multiprocessing.get_context(how).Pool(1) as pool:
            print(pool.map(work, range(3)))
    raise ValueError("ähm")
"""
GOES_ON = """
import os, sys, time
print("sitecustomize" in sys.modules, flush=True)
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
CLOSES = f"""
import os
os.closerange(3, 1 << 20)
with open("mine", "w") as file:
    file.write("x")
    print(file.fileno())
print(open("mine").read())
{GOES_ON}"""
REPLACED = GOES_ON + "print(7, flush=True)\nos.kill(os.getpid(), 9)"
BECOMES_ANOTHER = f"""
import os, sys
print("before", flush=True)
os.execv(sys.executable, [sys.executable, "-c", {REPLACED!r}])
"""


def as_alone(folder, *words, own="", **variables):
    """A program under the recording, after it was run without, and what was the same in both. `own`: a sitecustomize of
    the user's; the client is a Python, too: what its start prints comes before what the program prints."""
    given = {"stdin": "first\nsecond\n", "PYTHONPATH": ":/somewhere", "PYTHONUNBUFFERED": "1", **variables}
    if own:
        (folder / "own").mkdir()
        (folder / "own" / "sitecustomize.py").write_text(own)
        given["PYTHONPATH"] = str(folder / "own")
    alone = run_alone(folder, *words, **given, RECORDED="")
    recorded = run_recorded(folder, *words, **given, RECORDED="1")
    assert recorded.out == (alone.out.splitlines(keepends=True)[0] if own else "") + alone.out
    assert recorded.err == (alone.err if own else "") + alone.err
    assert recorded.code == (alone.code if alone.code >= 0 else 128 - alone.code)
    run = program_in(folder)
    assert run.program.ended.exit_code == recorded.code
    assert run.program.ended.wall_seconds > 0
    assert (run.status == "ok") == (recorded.code == 0)
    assert f"jaxprof: session: {OUT}\n" in recorded.notes
    return run


@pytest.mark.process(programs=1)
def test_a_program_is_the_same_under_the_recording_and_its_secrets_are_not_kept(tmp_path):
    (tmp_path / "x.py").write_text(ORDINARY)
    run = as_alone(tmp_path, "x.py", "--epochs", "1", "--api-key", "sesame", "a b", "--", "-c", "ü")
    assert (run.program.ended.error, notes_of(run)) == ("ValueError: ähm", ["no_jax"])
    assert "sesame" not in (tmp_path / OUT).read_text()
    (notice,) = session_in(tmp_path).notices
    assert "possible secret" in notice


PRINTS = "print('own', __name__, __file__)\n"


@pytest.mark.process(programs=1)
@pytest.mark.parametrize(("text", "own"), [(CLOSES, PRINTS), (BECOMES_ANOTHER, "")], ids=["closed descriptors", "exec"])
def test_so_is_one_whose_end_cannot_be_seen(text, own, tmp_path):
    (tmp_path / "x.py").write_text(text)
    run = as_alone(tmp_path, "x.py", own=own)
    assert (run.program.ended.error, notes_of(run)) == ("", ["not_unwound"])


@pytest.mark.process(programs=1)
def test_a_module_is_run_as_python_does_and_a_sitecustomize_that_fails_is_the_users(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(WORLD)
    words = ("-m", "package.train", "--epochs", "2")
    run = as_alone(tmp_path, *words, own=f"{PRINTS}1 / 0")
    assert (run.program.started.argv, run.program.started.how) == (list(words), "module")
    assert (run.status, notes_of(run)) == ("ok", ["no_jax"])


def test_a_missing_file_ends_as_in_python_and_nothing_is_recorded(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = call("script", "--plain", "--out", OUT, "nothing.py")
    assert (said.code, said.out) == (2, "")
    assert "there is no file nothing.py" in said.err
    assert not (tmp_path / OUT).exists()


@pytest.mark.process(programs=1)
def test_a_python_that_reads_no_sitecustomize_is_told_and_a_program_cannot_lose_its_session(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    python.chmod(0o755)
    wait = f"import os\npath = {OUT!r}\nwhile not os.path.exists(path) or not os.path.getsize(path): pass\n"
    (tmp_path / "x.py").write_text(f"{wait}os.unlink(path)\nopen(path, 'w').write('mine')\nprint('well')")
    recorded = run_recorded(tmp_path, "x.py", options=("--python", str(python)))
    assert (recorded.code, recorded.out) == (0, "well\n"), recorded.err
    assert "-I, -E or -S" in recorded.notes
    assert f"session: s-2.jaxprof ({OUT} was replaced by another file while it was written" in recorded.notes
    session = load(tmp_path / "s-2.jaxprof", Session)
    assert (session.complete, session.notices) == (True, [])
    assert notes_of(session.runs["r1"]) == ["not_recorded"]


SECONDS = 20.0
WAITS = "import sys, time\nprint('ready', flush=True)\nfor _ in range(600):\n    time.sleep(0.1)\n"
HANDLES = """
import os, signal, time
def handler(number, frame):
    os.write(1, f"got {signal.Signals(number).name}\\n".encode())
for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, handler)
print("ready", flush=True)
for _ in range(600):
    time.sleep(0.1)
"""


@pytest.mark.process(programs=1)
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


@pytest.mark.process(programs=1)
def test_signals_sent_to_us_reach_the_program_one_by_one_and_what_sigterm_ends_is_kept(tmp_path):
    (tmp_path / "x.py").write_text(HANDLES)
    process = start(tmp_path, "x.py")
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
        process.send_signal(number)
        assert process.stdout.readline() == f"got {number.name}\n"
    process.terminate()
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 143, err
    run = program_in(tmp_path)
    assert run.status == "crashed"
    assert "SIGTERM" in run.error


@pytest.mark.process(programs=1)
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


@pytest.mark.process
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
