"""A scrubbed copy of a session: readable, for its owner alone, without the secrets and names of the original."""

import json
import stat
from dataclasses import replace

import pytest

from jaxprof import events as e
from jaxprof.errors import FileRefusedError, StorageError
from jaxprof.session import Session
from jaxprof.session.log import LogWriter, load, new_header
from jaxprof.session.log.codec import encode_header, encode_line
from jaxprof.session.log.scrubbing import scrub
from jaxprof.session.texts import split
from report import sessions

SECRET = "kq7Zr93hWmXv21"
HOST = "bobs-laptop.example.com"
TELLING = (SECRET, "bobby", "bobs-laptop", "MHcCAQEEIB", "GPU-1234", "/home/al", "/root")
HLO = (
    "HloModule m\nENTRY %main {\n  %token.1 = token[] after-all()\n  %key = (u32[2]{0}, token[]) recv(%token.1)\n"
    '  ROOT %a = f32[8]{0} parameter(0), metadata={op_name="jit(f)/token" source_file="/home/bobby/train.py"}\n}\n'
)
LINES = (
    "-----BEGIN EC PRIVATE KEY-----",
    "MHcCAQEEIB",
    "-----END EC PRIVATE KEY-----",
    "to bobby@bobs-laptop:/home/bobby",
    "from /home/al/x and /root/.netrc",
)


def _raw(**values):
    return json.dumps(values).encode() + b"\n"


def old_session(path):
    """As a version wrote it that looked for no secret; its end is damaged."""
    header = replace(new_header({"variables": {}}), schema_minor=1, host=HOST, command=["x", "--token", SECRET])
    user = {"user": "bobby", "pid": 3, "name": "/home/bobby/x"}
    device = _raw(type="device_reading", run="r1", device="gpu:0", processes=[user])
    closure = [{"name": "api_key", "before": SECRET, "now": f"'{SECRET}'"}]
    change = _raw(type="compiled", run="r1", function="f", closure=closure)
    events = [
        *sessions.events()[:-1],
        e.ProgramStarted(run="r1", argv=["p.py", f"--api-key={SECRET}"], how="program", directory="/home/bobby/work"),
        e.EnvironmentRead(run="r1", python="3.12", numpy="2", devices=[{"id": "gpu:0", "uuid": "GPU-1234"}]),
        *(e.LogLine(run="r1", stream="stdout", text=line) for line in LINES),
        e.TextRecorded(run="r1", name="source", text=f"# /scratch/bobby/x\npassword = '{SECRET}'\nkey = random.key(0)"),
        e.TextRecorded(run="r1", name="timeline", text=json.dumps({"ops": [f'"token": "{SECRET}"', "/home/bobby/a"]})),
        *split("hlo", HLO * 1000, "r2"),
        *split("hlo", HLO * 1000, "r1"),
        e.RunFinished(run="r1", status="failed", error=f"login with token={SECRET}", traceback='File "/home/bobby/x"'),
    ]
    unknown = _raw(type="of_tomorrow", note=f"Authorization: Bearer {SECRET}", inside=[{"api_key": SECRET, "n": 1}])
    torn = encode_line(e.LogLine(run="r1", stream="stdout", text=f"token={SECRET}"))[:-9]
    path.write_bytes(
        encode_header(header) + b"".join(map(encode_line, events)) + device + change + unknown + b"{damaged\n\n" + torn
    )
    return path


def test_the_copy_has_every_event_and_no_secret(tmp_path):
    source = old_session(tmp_path / "old.jaxprof")
    before = source.read_bytes()
    done = scrub(source, tmp_path / "sent" / "new.jaxprof")
    assert source.read_bytes() == before
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600
    assert [path.name for path in done.path.parent.iterdir()] == ["new.jaxprof"]
    copy, original = load(done.path, Session), load(source, Session)
    plain = done.path.read_text() + (copy.text("r2", "hlo") or "")
    assert [word for word in TELLING if word in plain] == []
    assert list(copy.runs) == list(original.runs)
    assert [notice for notice in copy.notices if "[redacted]" not in notice] == [
        notice for notice in original.notices if "unknown" in notice
    ]
    numbers = [json.loads(line)["seq"] for line in done.path.read_bytes().splitlines()[1:]]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert copy.header.host == "host"
    assert copy.text("r1", "hlo") == (HLO * 1000).replace("bobby", "user")
    assert copy.text("r1", "source") == "# /scratch/user/x\npassword = '[redacted]'\nkey = random.key(0)"
    assert json.loads(copy.text("r1", "timeline") or "")["ops"][1] == "/home/user/a"
    assert [run.status for run in copy.runs.values()] == [run.status for run in original.runs.values()]
    assert (done.lines_left_out, done.texts_left_out, done.output_lines) == (2, 0, len(LINES))
    assert done.secrets >= 10
    assert {"source", "timeline", "hlo"} <= set(done.kept_texts)


def test_an_unusual_home_of_the_user_has_no_name_either(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/u/dora")
    line = e.LogLine(run="r1", stream="stdout", text="read /u/dora/x and /u/doras")
    (source := tmp_path / "s.jaxprof").write_bytes(encode_header(new_header({})) + encode_line(line))
    done = scrub(source, tmp_path / "copy.jaxprof")
    (kept,) = load(done.path, Session).runs["r1"].log
    assert kept.text == "read /home/user/x and /u/doras"
    assert (done.secrets, done.names, done.lines_left_out, done.output_lines) == (0, 2, 0, 1), "the host's and this one"


def test_what_was_scrubbed_has_nothing_left_to_replace(tmp_path):
    source = old_session(tmp_path / "old.jaxprof")
    once = scrub(source, source).path.read_bytes()
    again = scrub(source, source)
    assert (again.secrets, again.names) == (0, 0)
    assert again.path.read_bytes() == once
    assert stat.S_IMODE(source.stat().st_mode) == 0o600


def test_a_text_with_a_lost_piece_is_not_in_the_copy(tmp_path):
    first, *_, last = split("hlo", "".join(map(str, range(300_000))))
    source = tmp_path / "s.jaxprof"
    source.write_bytes(encode_header(new_header({})) + encode_line(replace(first, count=3)) + encode_line(last))
    done = scrub(source, tmp_path / "copy.jaxprof")
    assert done.texts_left_out == 1
    assert len(done.path.read_bytes().splitlines()) == 1


def test_nothing_is_replaced_unasked(tmp_path):
    source = old_session(tmp_path / "old.jaxprof")
    other = tmp_path / "other.jaxprof"
    other.write_text("mine")
    with pytest.raises(StorageError, match="exists"):
        scrub(source, other)
    with pytest.raises(FileRefusedError):
        scrub(other, source)
    assert other.read_text() == "mine"
    writer = LogWriter(new_header({}), tmp_path / "live.jaxprof")
    with pytest.raises(StorageError, match="being written"):
        scrub(tmp_path / "live.jaxprof", tmp_path / "live.jaxprof")
    writer.close()
