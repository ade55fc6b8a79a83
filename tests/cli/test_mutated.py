"""Inputs with faults in them, through every reader and every command that takes a file: never a traceback, never a
hang, nothing that steers a terminal. `bench/faults.py` goes further."""

import signal
import time

import pytest

import mutated
from mutated import COMMANDS, READERS, attempt, fault_of_reader, originals, outcome, spoken
from query.conftest import InThisProcess

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarm to end a hang")

READ = 100
CALLED = {"session": 4, "hlo": 4, "profile": 1}
"""Inputs a command: a profile is read in a process of its own, which takes a second."""
WAYS = [(kind, words) for kind, ways in COMMANDS.items() for words in ways]


@pytest.mark.parametrize("kind", READERS)
def test_readers(kind):
    assert all(fault_of_reader(kind, raw) is None for raw in originals(kind))
    assert len({mutated.mutated(kind, number) for number in range(READ)}) > 0.9 * READ
    faults = {number: fault_of_reader(kind, mutated.mutated(kind, number)) for number in range(READ)}
    assert {number: fault for number, fault in faults.items() if fault} == {}


@pytest.mark.process
@pytest.mark.parametrize(("kind", "words"), WAYS, ids=[" ".join((kind, *words)) for kind, words in WAYS])
def test_commands(kind, words, monkeypatch):
    monkeypatch.setattr("jaxprof.query.sql_process.SqlProcess", InThisProcess)
    assert outcome(kind, originals(kind)[-1], words) == (0, None), "the sound file is taken"
    faults = {number: outcome(kind, mutated.mutated(kind, number), words)[1] for number in range(CALLED[kind])}
    assert {number: fault for number, fault in faults.items() if fault} == {}


def test_what_counts_as_a_fault(monkeypatch):
    monkeypatch.setattr(mutated, "LONGEST_SECONDS", 0.05)
    found = [attempt(lambda: 1 / 0), attempt(lambda: time.sleep(60)), spoken("Traceback (most recent call last):")]
    found += map(spoken, "\x1b\x07\r\x7f\x9b\u202e")
    assert [fault.kind for fault in found] == ["traceback", "hang", "traceback", *["control character"] * 6]
    assert spoken("a table\n\tof words") is None
