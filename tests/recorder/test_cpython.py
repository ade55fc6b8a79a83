"""A Python whose inside is not known: the recorder reads nothing of it, and what follows is unknown. No module but this
one looks at the version, at bytecode or at `sys.monitoring`."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jaxprof import recorder
from jaxprof.recorder import cpython
from waiting import SLOWER

SOURCES = Path(recorder.__file__).parent
FUTURE = """
import sys
class Version(tuple):
    major, minor, micro = 3, 99, 0
sys.version_info = Version((3, 99, 0, "final", 0))
"""
LOOP = """
def loop(step):
    total = 0
    for number in range(9):
        total += step(number)
    return total
"""
ONE_CALL = "def loop():\n  for number in range(1000, 1010):\n    wait()\nloop()"
READ = """
import json, threading, time
from jaxprof.events import ProgramSampled, WarningRaised
from jaxprof.recorder.samples.call_text import spot_of
from jaxprof.recorder.samples.iterations import LoopCounter, read_counter
from jaxprof.recorder.samples.loops import loops_of
from jaxprof.recorder.samples.sampler import StackSampler
from loop import loop

class Ledger:
    def stage_seconds(self):
        return {"trace": 0.0, "lower": 0.0, "compile": 0.0}
    def running(self):
        return []

def look(number):
    frame = sys._getframe(1)
    spot = spot_of(frame.f_code, frame.f_lasti)
    counter = read_counter(frame, LoopCounter("number", 0))
    seen.update(line=spot.line, text=spot.text, is_call=spot.is_call, operation=bool(spot.operation), counter=counter)
    return number

seen, events = {}, []
loop(look)
sampler = StackSampler(events.append, Ledger(), main_thread=threading.get_ident(), began_seconds=time.monotonic())
sampler.start()
ends = time.monotonic() + float(sys.argv[1])
while time.monotonic() < ends and not any(isinstance(event, WarningRaised) for event in events):
    loop(lambda number: time.sleep(0.001) or number)
sampler.stop()
print(json.dumps({
    **seen,
    "loops": len(loops_of(loop.__code__)),
    "sampled": any(isinstance(event, ProgramSampled) and event.states for event in events),
    "warned": [event.values for event in events if isinstance(event, WarningRaised)],
}))
"""


def read(folder, before, seconds):
    (folder / "loop.py").write_text(LOOP)
    program = folder / "read.py"
    program.write_text(f"import sys\n{before}\n{READ}")
    command = [sys.executable, program, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50 * SLOWER)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.process
def test_of_an_unknown_python_only_what_is_public_is_known(tmp_path):
    """Its calls and lines are, from the source; it is sampled, and what is missing is said."""
    here, future = read(tmp_path, "", 0.2), read(tmp_path, FUTURE, 30)
    known = {"line": 5, "text": "step", "is_call": True, "sampled": True}
    inside = {"loops": 1, "operation": True, "counter": 8 if cpython.READS_ANYWHERE else None}
    assert (known | inside).items() <= here.items()
    warned = [{"cause": "unknown_python"}]
    assert future == {**known, "loops": 0, "operation": False, "counter": None, "warned": warned}


def test_the_versions_that_are_tested_are_known():
    assert cpython.IS_KNOWN


def test_no_other_module_looks_at_the_inside():
    inside = re.compile(r"\bdis\.(?!Instr)|\bimport (dis|opcode)\b|version_info|sys\.monitoring|pythonapi|co_code\b")
    looking = {
        str(path.relative_to(SOURCES)): found
        for path in SOURCES.rglob("*.py")
        if (found := inside.findall(re.sub(r'""".*?"""|#.*', "", path.read_text(), flags=re.DOTALL)))
    }
    assert looking.keys() <= {"cpython.py", "inject/sitecustomize.py", "samples/loops.py"}


@pytest.mark.skipif(cpython.HAS_MONITORING or not Path("/proc/self/mem").exists(), reason="has events, or no /proc")
@pytest.mark.parametrize(
    "source", ["for number in range(1000, 1010): wait()", "while True:\n  value = wait()", ONE_CALL]
)
def test_frame_content_changes_with_each_iteration(source):
    arrived, gate = threading.Semaphore(0), threading.Semaphore(0)

    def wait():
        arrived.release()
        gate.acquire()
        return object()

    def content():
        frame = sys._current_frames()[thread.ident]
        while frame.f_code.co_filename != "<loop>":
            frame = frame.f_back
        return cpython.frame_content(frame)

    names = {"wait": wait}
    thread = threading.Thread(target=exec, args=(compile(source, "<loop>", "exec"), names), daemon=True)
    thread.start()
    contents = []
    for _ in range(3):
        arrived.acquire()
        contents.append(content())
        assert contents[-1] == content()
        gate.release()
    assert len({*contents, b""}) == 4
