"""The process itself: what it can import, what it answers, who may write, and on which Python."""

import ast
import json
import os
import subprocess
import sys

import pytest

from engine.child import ENGINE
from jaxprof.engine.main import EventPipe
from jaxprof.engine.protocol.request import DescribeRequest, DevicesRequest
from jaxprof.events import Heartbeat


@pytest.mark.process
def test_engine_start_makes_only_jaxprof_importable(start, tmp_path):
    own = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.path))"]
    plain = json.loads(subprocess.run(own, capture_output=True, check=True, cwd=tmp_path).stdout)
    source = tmp_path / "mine.py"
    source.write_text(
        "import importlib.util, sys\n"
        f"plain = {plain!r}  # an editable install is on every path of its environment\n"
        "shadowing = [name for name in ('request', 'channel', 'bench') if importlib.util.find_spec(name)]\n"
        f"beside = [path for path in sys.path if path not in plain and path.startswith({str(ENGINE.parents[2])!r})]\n"
        "assert not shadowing and not beside, (shadowing, beside)\n"
        "assert 'msgspec' not in sys.modules and 'textual' not in sys.modules\n"
        'print(\'{\\"type\\": \\"answer\\"}\')\n'
        "def fine(x):\n    return x\n"
    )
    child = start()
    child.send(DescribeRequest(targets=[f"{source}:fine"], arguments=["f32[8]"]))
    answer = child.answer()
    assert answer["error"] == "", answer
    (info,) = answer["data"]
    assert info["name"] == "mine.py:fine"
    assert [variant["name"] for variant in info["variants"]] == ["jax", "jit"]
    child.hang_up()
    assert child.process.stdout.read() == b'{"type": "answer"}\n', "what user code prints is not among the events"


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
@pytest.mark.process
@pytest.mark.parametrize(
    ("call", "threads"),
    [("Engine._serve_run(engine, request)", "1"), ("open_trace(request, lambda event: None, RunControl())", "several")],
)
def test_profile_is_read_without_threads_for_products(call, threads, tmp_path):
    """In a process of the engine's: a program that records itself keeps those of its own NumPy, and its environment."""
    program = (
        "import os; from types import SimpleNamespace\n"
        "from jaxprof.engine.main import Engine, OpenTraceRequest, RunControl, open_trace\n"
        "request = OpenTraceRequest(path='none'); pipe = SimpleNamespace(send=lambda event, run: None)\n"
        f"engine = SimpleNamespace(_pipe=pipe, _control=RunControl()); {call}\n"
        "import numpy; count = len(os.listdir('/proc/self/task'))\n"
        "print(count if 'OPENBLAS_NUM_THREADS' in os.environ else 'several')"
    )
    environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert done.stdout == f"{threads}\n"


@pytest.mark.process
def test_devices_are_answered_as_data(start):
    child = start(environment={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
    child.send(DevicesRequest())
    data = child.answer()["data"]
    assert [device["id"] for device in data["devices"]] == ["cpu:0", "cpu:1"]
    assert data["default"] == "cpu:0"
    assert data["devices"][0]["memory_limit_bytes"] is None, "a CPU has no allocator limit, which is not 0"


def test_a_forked_child_writes_nothing(monkeypatch):
    reader, writer = os.pipe()
    pipe = EventPipe(writer)
    assert not os.get_inheritable(writer)
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        pipe.send(Heartbeat(run="child"))
    pipe.send(Heartbeat(run="parent"))
    assert json.loads(os.read(reader, 4096))["run"] == "parent"
    os.close(reader)
    os.close(writer)


def test_the_first_file_is_readable_by_an_older_python():
    ast.parse(ENGINE.read_text(), feature_version=(3, 7))
