"""Whatever a line holds, it is a value that every report can show, or it is refused."""

import json
import os
from itertools import islice

import pytest

import program_events
from jaxprof import events as e
from jaxprof.base.errors import FileRefusedError
from jaxprof.base.limits import DEPTH
from jaxprof.facts import recorder
from jaxprof.facts.answers import OF_PROGRAMS, facts_of_view
from jaxprof.facts.runs import RUNS, run_rows
from jaxprof.facts.session_tree import to_dict
from jaxprof.report import Table, csv_lines
from jaxprof.report import session_text as views
from jaxprof.report.envelope import json_pieces
from jaxprof.report.session_text import to_text
from jaxprof.session import Library, Session
from jaxprof.session.lines import (
    LARGEST_FLOAT,
    LARGEST_INTEGER,
    are_bounded,
    decode_header,
    decode_line,
    encode_header,
    encode_line,
)
from report import sessions

_IMPOSSIBLE = {
    "integer": "1" + "0" * 400,
    "digits": "1" + "0" * 5000,
    "beyond": "1e308",
    "infinite": "1e400",
    "nan": "NaN",
    "infinity": "-Infinity",
    "deep": "[" * 5000 + "]" * 5000,
    "levels": '{"a":' * (DEPTH.default + 2) + "1" + "}" * (DEPTH.default + 2),
    "object": '{"a": {"a": 1}}',
    "array": '[null, "x", {}]',
}
_EXTREME = [repr(LARGEST_FLOAT), repr(-LARGEST_FLOAT), str(LARGEST_INTEGER), str(-LARGEST_INTEGER), "0", "5e-324"]
_RUNS = sessions.captured_events()
_PROGRAM = program_events.training_events()
_STORED = {"runs": _RUNS, "program": _PROGRAM}


def _places(value, at=()):
    """Where a value stands within another one; of a list, in its first item."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*at, key))


def _with(value, place, text):
    """The JSON of `value` with `text` at a place."""
    mark, inner = "the place that is changed", value
    for key in place[:-1]:
        inner = inner[key]
    kept, inner[place[-1]] = inner[place[-1]], mark
    changed = json.dumps(value).replace(json.dumps(mark), text)
    inner[place[-1]] = kept
    return changed


def _changed(events, texts):
    """Each field of each type of event, once, with each of the texts in its place; and the number of the event."""
    seen = set()
    for number, event in enumerate(events):
        line = json.loads(encode_line(event))
        for place in _places(line):
            key = (event.type, *(part for part in place if isinstance(part, str)))
            if place != ("type",) and key not in seen:
                seen.add(key)
                yield from ((number, _with(line, place, text)) for text in texts)


@pytest.mark.parametrize("kind", _IMPOSSIBLE)
@pytest.mark.parametrize("name", _STORED)
def test_an_impossible_value_is_refused(name, kind):
    looked_at = 0
    for _, line in _changed(_STORED[name], [_IMPOSSIBLE[kind]]):
        looked_at += 1
        try:
            event = decode_line(line.encode())
        except ValueError:
            continue
        assert are_bounded(event), line[:300]
    assert looked_at > 100


@pytest.mark.parametrize("name", _STORED)
def test_every_report_shows_the_most_extreme_value_that_is_read(name):
    """Also of a field of its own, without the others: an event is folded whole."""
    events = _STORED[name]
    every = 1 if os.environ.get("JAXPROF_LONG") else 25
    for number, line in islice(_changed(events, _EXTREME), None, None, every):
        try:
            changed = decode_line(line.encode())
        except ValueError:
            continue
        session = Session(sessions.HEADER)
        session.extend([*events[:number], changed, *events[number + 1 :]])
        try:
            _show(session, name)
        except Exception as error:
            error.add_note(line[:300])
            raise


def _show(session, name):
    to_text(session), list(csv_lines(Table(RUNS.facts, run_rows(session))))
    "".join(json_pieces(to_dict(session)))
    for view in OF_PROGRAMS if name == "program" else ("kernels", "compile", "steps", "memory", "trust"):
        views.view_text(session, view), "".join(json_pieces(recorder(facts_of_view(view))(session)))


def test_the_bounds_are_those_that_are_named():
    line = '{"type":"samples_taken","run":"r1","series":"run","seconds":[%s]}'
    assert decode_line((line % "1e100").encode()) == e.SamplesTaken(run="r1", series="run", seconds=[LARGEST_FLOAT])
    with pytest.raises(ValueError, match=r"<= 1e\+100"):
        decode_line((line % "1.1e100").encode())
    line = '{"type":"phase_ended","run":"r1","phase":"transfer_in","seconds":1,"bytes":%s}'
    largest = decode_line((line % "9223372036854775807").encode())
    assert largest == e.PhaseEnded(run="r1", phase="transfer_in", seconds=1.0, bytes=LARGEST_INTEGER)
    for beyond in ("9223372036854775808", "-9223372036854775808"):
        with pytest.raises(ValueError, match="9223372036854775807"):
            decode_line((line % beyond).encode())


@pytest.mark.parametrize("beyond", [LARGEST_INTEGER + 1, -LARGEST_INTEGER - 1, 2 * LARGEST_FLOAT, float("nan")])
def test_as_many_levels_are_read_as_are_named_and_no_more(beyond):
    value = 1
    for _ in range(DEPTH.most + 1):  # the first level is the line itself
        value = [value]
    assert are_bounded(value)
    assert not are_bounded([value])
    assert are_bounded({"a": None, "b": "x", "c": [True, -LARGEST_INTEGER, LARGEST_FLOAT]})
    assert not are_bounded({"a": ([beyond],)})


@pytest.mark.parametrize("kind", _IMPOSSIBLE)
def test_a_damaged_header_refuses_its_file_alone(kind, tmp_path):
    header = encode_header(sessions.HEADER)
    lines = b"".join(map(encode_line, _RUNS))
    (tmp_path / "good.jaxprof").write_bytes(header + lines)
    for place in _places(json.loads(header)):
        damaged = _with(json.loads(header), place, _IMPOSSIBLE[kind]).encode()
        (tmp_path / "bad.jaxprof").write_bytes(damaged + b"\n" + lines)
        try:
            decode_header(damaged, "bad")
            refused = False
        except FileRefusedError:
            refused = True
        entries = {entry.name: entry for entry in Library(tmp_path).entries()}
        assert (bool(entries["bad"].problem), entries["good"].workloads) == (refused, ["selu"])
        assert not refused or entries["bad"].process_index == 0, "it claims no place in a job"
