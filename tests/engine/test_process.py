"""The process itself: what it can import, what it answers, who may write, and on which Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from engine.child import ENGINE, Child
from jaxprof.engine.protocol.request import DescribeRequest, DevicesRequest

Start = Callable[..., Child]


@pytest.mark.process
def test_neither_jaxprofs_neighbours_nor_its_modules_become_importable(start, tmp_path):
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


@pytest.mark.process
def test_devices_are_answered_as_data(start):
    child = start(environment={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
    child.send(DevicesRequest())
    data = child.answer()["data"]
    assert [device["id"] for device in data["devices"]] == ["cpu:0", "cpu:1"]
    assert data["default_backend"] == "cpu"
    assert data["devices"][0]["memory_limit_bytes"] is None, "a CPU has no allocator limit, which is not 0"
    assert data["jax"]


@pytest.mark.process
def test_a_forked_child_writes_nothing():
    """In a process of its own: a test process with threads must not fork."""
    program = (
        "import os\n"
        "from jaxprof.engine.main import EventPipe\n"
        "from jaxprof.events import Heartbeat\n"
        "reader, writer = os.pipe()\n"
        "pipe = EventPipe(writer)\n"
        "assert not os.get_inheritable(writer)\n"
        "child = os.fork()\n"
        "pipe.send(Heartbeat(run='child' if child == 0 else 'parent'))\n"
        "if child == 0:\n    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(os.read(reader, 4096).decode())\n"
    )
    source = {"PYTHONPATH": str(ENGINE.parents[2])}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, **source}
    )
    (line,) = found.stdout.strip().splitlines()
    assert json.loads(line)["run"] == "parent"


@pytest.mark.process
def test_the_first_file_is_readable_by_an_older_python():
    compile_old = "import ast, sys; ast.parse(open(sys.argv[1]).read(), feature_version=(3, 7))"
    subprocess.run([sys.executable, "-c", compile_old, str(ENGINE)], check=True)
