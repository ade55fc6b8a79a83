"""Taking a profile from a program that runs: what is asked, what comes back, and what each failure is called.

JAX's own client is stood in for by a module of the same name; `test_a_real_server` uses the real one where xprof is
installed.
"""

import socket
import sys
import textwrap
import time

import pytest

from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.runner import attach
from jaxprof.runner.attach import Address, collect, read_address
from jaxprof.trace.sources import runs_at
from runner.stage import HERE


@pytest.fixture
def server():
    """Somebody who listens, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Address("127.0.0.1", listening.getsockname()[1])


@pytest.fixture
def client(tmp_path, monkeypatch):
    """A module `jax.collect_profile`, which is written by each test."""
    package = tmp_path / "stand_in" / "jax"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return package / "collect_profile.py"


@pytest.mark.parametrize(
    ("text", "host"), [("localhost:9999", "localhost"), ("9999", "localhost"), ("[::1]:9999", "::1")]
)
def test_an_address_is_read(text, host):
    assert read_address(text) == Address(host, 9999)
    assert read_address(str(Address(host, 9999))) == Address(host, 9999)


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "host:99999", "host:0", "http://a:9999", "a:b:9999"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError, match="is not HOST:PORT"):
        read_address(text)


@pytest.mark.process
def test_the_profile_is_there_once_the_client_says_so(server, client, tmp_path):
    client.write_text(
        textwrap.dedent("""
            import os, pathlib, sys, time
            words = dict(zip(sys.argv[3::2], sys.argv[4::2]))
            folder = pathlib.Path(words["--log_dir"], "plugins", "profile", "now")
            folder.mkdir(parents=True)
            (folder / "host.xplane.pb").write_bytes(b"x")
            asked = [*sys.argv[1:3], words["--host"], os.environ["JAX_PLATFORMS"]]
            (folder / "asked").write_text(" ".join(asked))
            print("Dumped profiling information in: there")
            time.sleep(600)
        """)
    )
    collect(server, 1.5, tmp_path / "out", HERE)
    assert [run.name for run in runs_at(tmp_path / "out")] == ["now"]
    asked = (tmp_path / "out" / "plugins" / "profile" / "now" / "asked").read_text()
    assert asked == f"{server.port} 1500 127.0.0.1 cpu"


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "error", "what", "hint"),
    [
        ("raise ImportError('`xprof` has to be installed.')", UsageError, "xprof", "pip install xprof"),
        ("raise RuntimeError('No trace event was collected')", WorkerError, "nothing was captured", "--seconds"),
        ("raise RuntimeError('UNAVAILABLE: failed to connect')", UsageError, "nothing answers", "start_server"),
        ("raise RuntimeError('something else')", WorkerError, "something else", "versions"),
    ],
)
def test_each_failure_has_its_name(server, client, tmp_path, program, error, what, hint):
    client.write_text(program)
    with pytest.raises(error) as raised:
        collect(server, 1, tmp_path / "out", HERE)
    assert what in raised.value.what
    assert hint in raised.value.hint


@pytest.mark.process
def test_of_what_a_server_says_without_end_only_the_end_is_kept():
    words = "import sys; sys.stdout.write('x' * 5_000_000 + 'Dumped profiling information'); sys.stdout.flush()"
    with attach._child([sys.executable, "-c", words]) as process:
        output = attach._output_until_written(process, time.monotonic() + 30)
    assert output.endswith(b"Dumped profiling information")
    assert len(output) < 200_000
