"""`jaxprof open --browser`: who may read the page, how it follows a session, how it ends."""

import http.client
import os
import re
import signal
import threading
from contextlib import contextmanager

import pytest

import browser
from cli.calling import start
from jaxprof import events as e
from jaxprof.report.page.server import FollowedPage, PageServer
from jaxprof.session.log import LogWriter, new_header
from report import sessions


@pytest.fixture
def writer(tmp_path):
    """A session that is being written, with one run."""
    made = LogWriter(new_header(), tmp_path / "s.jaxprof")
    write(made, sessions.numpy_run("r1"))
    yield made
    made.close()


def write(writer, events):
    for event in events:
        writer.append(event)
    writer.sync()


@contextmanager
def served(path):
    with PageServer(FollowedPage(path, "s")) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(server, path, host=None, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        headers = {"Host": host} if host is not None else {}
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


def test_only_who_knows_the_token_and_asks_for_this_machine_reads_it(writer):
    with served(writer.path) as server:
        page = f"/{server.token}/"
        status, text, headers = get(server, page)
        assert (status, "selu" in text, headers["Cache-Control"]) == (200, True, "no-store")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        for host in ("127.0.0.1", f"localhost:{server.port}", "localhost:9999"):
            assert get(server, page, host)[0] == 200
        for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", ""):
            status, text, _ = get(server, page, host)
            assert (status, "selu" in text) == (403, False)
        for path in ("/", "/state", f"/{server.token[:-1]}/", f"/x{server.token}/state"):
            status, text, _ = get(server, path)
            assert (status, server.token in text) == (403, False)
        assert get(server, page + "other")[0] == 404
        assert get(server, page, method="POST")[0] == 501
        assert get(server, page, method="HEAD")[:2] == (200, "")
        assert (len(server.token) >= 32, server.server_address[0]) == (True, "127.0.0.1")


def test_the_page_grows_with_the_session_until_it_is_over(writer):
    with served(writer.path) as server:
        page, state = f"/{server.token}/", f"/{server.token}/state"
        before = get(server, state)[1]
        assert get(server, state)[1] == before
        assert "being written" in get(server, page)[1]
        write(writer, sessions.jit_run("r2", "r1"))
        after = get(server, state)[1]
        assert after != before
        assert not after.endswith(" over")
        assert "jit(selu)" in get(server, page)[1]
        write(writer, [e.SessionClosed()])
        writer.close()
        assert get(server, state)[1].endswith(" over")
        assert "complete" in get(server, page)[1]


def test_a_port_that_is_taken_is_refused(call, writer):
    with PageServer(FollowedPage(writer.path, "s")) as server:
        done = call("open", "--browser", writer.path, "--port", str(server.port))
    assert (done.code, f"port {server.port} cannot be used" in done.err) == (2, True)


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
def test_the_command_prints_its_address_and_ends_with_ctrl_c(writer):
    process = start("open", "--browser", writer.path)
    address = process.stdout.readline().strip()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[\w-]{32}/)", address)
    assert found, address
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
    connection.request("GET", found[2])
    assert connection.getresponse().status == 200
    connection.close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert f"ssh -L {found[1]}:127.0.0.1:{found[1]} " in err
    assert err.endswith("ended\n")


def measured(count):
    """A compiled run (r2) with captures and that many kernels."""
    rows = [e.KernelTimes(name=f"k{number}", self_seconds=1e-6 * (count - number), count=1) for number in range(count)]
    kernels = e.KernelsMeasured(run="r2", kind="run", rows=rows)
    run = sessions.jit_run("r2", "r1")
    return [*run[:-2], *sessions.captures("r2"), kernels, *run[-2:]]


@pytest.mark.skipif(browser.executable() is None, reason=browser.MISSING)
@pytest.mark.timeout(300)
def test_what_the_reader_did_outlasts_an_update(writer, tmp_path):
    write(writer, measured(30))
    box, canvas = "document.querySelector('#kernels .table')", "document.querySelector('#compile canvas.own')"
    rows = f"[...{box}.querySelectorAll('tbody tr')].filter((row) => !row.hidden).map((row) => row.textContent)"
    seen = f"[{rows}, {canvas}.dataset.from]"
    with served(writer.path) as server, browser.chromium(tmp_path / "chromium", browser.executable()) as tab:
        page = tab()
        page.open(server.address)
        page.ask(f"{box}.querySelector('th button').click()")
        page.ask(f"{box}.querySelector('input').focus()")
        page.call("Input.insertText", text="k1")
        page.ask("page.draw_all()")
        page.ask(f"{canvas}.dispatchEvent(new KeyboardEvent('keydown', {{ key: '+' }}))")
        page.until(f"{canvas}.dataset.from > 0")
        before = page.ask(seen)
        assert len(before[0]) == 11
        page.ask("window.old = document.querySelector('main')")
        write(writer, [*sessions.failed_run("r3", "r1"), e.SessionClosed()])
        writer.close()
        page.until("document.querySelector('main') !== window.old && document.body.textContent.includes('complete')")
        page.until(f"{canvas} !== null")
        assert page.ask(seen) == before
        assert page.ask(f"document.activeElement === {box}.querySelector('input')")
        assert page.complaints == []
        assert {address.rpartition("/")[2] for address in page.requests} <= {"", "state", "data:,", ","}
