import fcntl
import os
import select
import threading
from unittest.mock import Mock

import pytest

from jaxprof.recorder.pipe import PATIENCE_SECONDS, ProgramPipe, hidden


class Reader:
    """The client's end of a pipe."""

    def __init__(self):
        self.end, writing = os.pipe()
        reading = os.dup(self.end)
        os.set_blocking(self.end, False)
        before = set(os.listdir("/dev/fd"))
        self.pipe = ProgramPipe(writing, reading)
        self.ours = {int(name) for name in set(os.listdir("/dev/fd")) - before} - {writing, reading}

    def lines(self):
        data = b""
        while True:
            try:
                came = os.read(self.end, 1 << 20)
            except BlockingIOError:
                return data.split(b"\n")
            data += came

    def close(self):
        for descriptor in (self.end, *self.ours):
            try:
                os.close(descriptor)
            except OSError:
                continue


@pytest.fixture
def reader():
    made = Reader()
    yield made
    made.close()


def fill(pipe):
    """Sends until the pipe takes no more; how many were sent."""
    for number in range(100_000):
        pipe.send(b"%06d" % number * 100)
        if pipe.dropped:
            return number + 1
    raise AssertionError("the pipe takes everything")


def test_lines_of_several_threads_do_not_mix(reader):
    words = [bytes([65 + number]) * 300 for number in range(8)]

    def work(word):
        for _ in range(20):
            reader.pipe.send(word)

    threads = [threading.Thread(target=work, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reader.lines()) == sorted([b"", *words * 20])
    assert reader.pipe.dropped == 0


def test_the_descriptors_are_high_and_closed_on_exec(reader):
    assert len(reader.ours) == 2
    assert min(reader.ours) > 500
    assert not any(os.get_inheritable(number) for number in reader.ours)


def test_a_limit_that_leaves_no_high_numbers_is_met(monkeypatch):
    monkeypatch.setattr(fcntl, "fcntl", Mock(side_effect=OSError(24, "Too many open files")))
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    assert hidden(writing) == writing
    assert not os.get_inheritable(writing)
    os.close(reading)
    os.close(writing)


def test_a_reader_that_does_not_read_holds_the_program_up_once(reader, monkeypatch):
    waits = []

    class Poll:
        def register(self, *_): ...

        def poll(self, milliseconds):
            waits.append(milliseconds / 1000)
            return []

    monkeypatch.setattr(select, "poll", Poll)
    sent = fill(reader.pipe)
    for _ in range(50):
        reader.pipe.send(b"lost")
    assert waits == [PATIENCE_SECONDS]
    lines = reader.lines()
    lost = reader.pipe.dropped
    assert lost >= 50
    reader.pipe.send(b"after")
    rest = reader.lines()
    lines[-1] += rest[0]  # the other half of the line that did not fit
    assert reader.pipe.dropped == lost
    assert lines == [b"%06d" % number * 100 for number in range(sent)][: len(lines)]
    assert rest[1:] == [b"after", b""]


def test_a_reader_that_has_gone_is_no_signal_and_no_error(reader):
    os.close(reader.end)
    fill(reader.pipe)
    assert reader.pipe.dropped > 0


def test_nothing_goes_into_a_file_that_took_our_number(reader, tmp_path):
    for number in reader.ours:
        os.close(number)
    files = []
    for number in reader.ours:
        opened = os.open(tmp_path / str(number), os.O_CREAT | os.O_RDWR)
        os.dup2(opened, number)
        files.append(opened)
    reader.pipe.send(b"ours")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"", b""]
    for opened in files:
        os.close(opened)


@pytest.mark.process
def test_a_forked_child_is_silent(reader):
    child = os.fork()
    if child == 0:
        reader.pipe.send(b"child")
        os._exit(0)
    os.waitpid(child, 0)
    reader.pipe.send(b"parent")
    assert reader.lines() == [b"parent", b""]
