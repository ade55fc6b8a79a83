"""What a run is called, and what it says about itself. What was recorded inside a program is folded in its order,
beside what every run has."""

from dataclasses import fields, replace
from zlib import crc32

import pytest

import program_events
from folding import fold
from golden import held_cases
from jaxprof import events as e
from jaxprof.base.errors import FileRefusedError
from jaxprof.base.text import REDACTED
from jaxprof.engine.main import EventPipe
from jaxprof.events.runs import CHUNK_CHARACTERS, INLINE_BYTES, split
from jaxprof.runner.session_recorder import SessionRecorder
from jaxprof.session import LogWriter, Run, Session
from jaxprof.session.lines import decode_header, decode_line, encode_line
from jaxprof.session.run import RunEnd
from tapes import unpacked

SPEC = e.RunSpec(workload="selu", variant="jit", how="jit", device="gpu:1")
PLAN = e.RunPlanned(run="r1", spec=SPEC)
TAPES = ("engines/measures", "engines/killed", "programs/point_clouds", "endings/raises_in_jit", "endings/killed")


def folded(*events):
    """The run of that plan, after these events."""
    return fold(e.Header(), [PLAN, *events]).runs["r1"]


def started(launch=1):
    return e.WorkerStarted(run="r1", pid=launch, python="python", launch=launch)


def finished(status="failed", **fields):
    return e.RunFinished(run="r1", status=status, **fields)


def closed(status="failed", **fields):
    return e.RunClosed(run="r1", workload="selu", variant="jit", device="gpu:1", status=status, **fields)


def shown(name, value):
    """A line; of a long value its begin, its length and its checksum."""
    text = repr(value)
    end = f"... {len(text)} characters, {crc32(text.encode()):08x}" if len(text) > 140 else ""
    return f"  {name}: {text[:140]}{end}\n"


def state(session):
    """All that a session holds, but its texts."""
    kept = {name: value for name, value in vars(session).items() if name not in ("runs", "texts", "header")}
    for run in session.runs.values():
        for holder in filter(None, (run, run.program)):
            kept |= {f"{run.id} {field.name}": getattr(holder, field.name) for field in fields(holder)}
    return "".join(shown(name, value) for name, value in kept.items() if value not in (None, "", [], {}))


def test_fold_of_real_tapes(tmp_path):
    cases = {}
    for tape in TAPES:
        header, *lines = unpacked(*tape.split("/"), tmp_path).read_bytes().splitlines()
        session, half = Session(decode_header(header, tape)), len(lines) // 2
        for when, part in (("half way", lines[:half]), ("the end", lines[half:])):
            session.extend(map(decode_line, part))
            cases[f"{tape}, {when}"] = state(session)
    held_cases("fold.txt", cases)


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        ("cancelled", "cancelled in phase run", "cancelled in phase run"),
        ("cancelled", "interrupted", "cancelled: interrupted"),
        ("failed", "out of memory", "failed: out of memory"),
        ("crashed", "", "crashed"),
    ],
)
def test_text_of_an_end_has_the_status_once(status, error, text):
    assert RunEnd(status, error, "").text == text


@pytest.mark.parametrize("status", ["ok", "failed", "cancelled"])
def test_the_line_that_closes_a_run_ends_it(status):
    """An engine that was killed has said nothing of its end itself."""
    begun = (started(), e.PhaseStarted(run="r1", phase="compile"))
    run = folded(*begun, closed(status, monotonic_seconds=8.0))
    assert run.status == status
    assert run.current_phase == ""
    assert run.over is True
    assert run.ended_seconds == 8.0
    assert run.shown.over
    run = folded(*begun, finished("ok", monotonic_seconds=7.0), closed(status, monotonic_seconds=8.0))
    assert (run.status, run.ended_seconds) == (status, 7.0), "the log's word on how, the engine's on when"


def test_error_of_the_closing_event_wins():
    killed = finished(error="killed", advice="look")
    for events, error, advice in (
        ((), "", ""),
        ((killed, closed(error="out of memory", advice="smaller")), "out of memory", "smaller"),
        ((killed, closed()), "killed", "look"),
        ((closed(),), "", ""),
        ((closed(error="gone"),), "gone", ""),
    ):
        run = folded(*events)
        assert (run.error, run.hint) == (error, advice)


def launched(number, phase):
    """A launch with one phase."""
    of_run = {"run": "r1", "phase": phase}
    return [started(number), e.PhaseStarted(**of_run), e.PhaseEnded(**of_run, seconds=0.5)]


@pytest.mark.parametrize("number", [1, 2])
def test_restarted_launch_replaces_the_first_attempt(number):
    """It did not fit beside others, and is measured apart from them."""
    before = [event for launch in range(1, number + 1) for event in launched(launch, "trace")]
    run = folded(*before, *launched(number, "compile"))
    assert [each.number for each in run.launches] == [*range(1, number + 1)]
    assert set(run.launches[-1].phases) == {"compile"}
    assert set(run.phases) == ({"compile"} if number == 1 else {"trace"})


def test_runs_with_a_baseline_are_counted():
    def planned(run, side):
        return e.RunPlanned(run=run, spec=replace(PLAN.spec, baseline="r1", side=side))

    session = fold(e.Header(), [PLAN, *map(planned, ("r2", "r3", "r2"), ("B", "C", "B"))])
    assert session.family == {"r1": 2}


def test_redacted_command_has_a_notice():
    secret, plain = ["train.py", f"--token={REDACTED}"], ["train.py", "3"]
    for command, argv, notices in ((plain, plain, 0), (secret, plain, 1), (plain, secret, 1)):
        started = e.ProgramStarted(run="r1", argv=argv, how="script", directory="/")
        assert len(fold(e.Header(command=command), [PLAN, started]).notices) == notices


def test_event_of_a_run_without_a_plan_is_kept_with_a_notice():
    session = fold(e.Header(), [e.SamplesTaken(run="r9", series="run", seconds=[1.0])] * 3)
    assert session.runs["r9"].samples("run") == [1.0, 1.0, 1.0]
    assert session.notices == ["run r9 has no plan in this file"]
    assert session.runs["r9"].status == "running"
    (without,) = fold(e.Header(), [e.ProgressMade(fraction=0.5)]).notices
    assert without == "run (without id) has no plan in this file"


def test_repeated_notices_are_counted():
    session = Session()
    for text in ("damaged", "torn", "damaged"):
        session.notice(text)
    assert session.notices == ["damaged (2 times)", "torn"]


def test_samples_of_a_turn_belong_to_its_launch():
    def samples(block, *seconds):
        return e.SamplesTaken(run="r1", series="run", seconds=list(seconds), block=block)

    run = folded(
        *(started(1), samples(0, 1.0), samples(3, 2.0, 3.0)), *(started(2), samples(1, 4.0), samples(None, 9.0))
    )
    turns = [[(turn.number, turn.seconds) for turn in launch.turns] for launch in run.launches]
    assert turns == [[(0, (1.0,)), (3, (2.0, 3.0))], [(1, (4.0,))]]
    assert run.samples("run") == [1.0, 2.0, 3.0, 4.0, 9.0]
    early = folded(samples(0, 1.0))
    assert (early.samples("run"), early.launches) == ([1.0], [])


@pytest.mark.parametrize(
    ("index", "count", "known"), [(0, 4, (0, 4)), (3, 4, (3, 4)), (4, 4, (0, 1)), (-1, 4, (0, 1)), (0, 0, (0, 1))]
)
def test_process_index_of_a_job_that_is_impossible(index, count, known):
    session = fold(e.Header(), [e.ProcessIdentified(index=index, count=count)])
    assert (session.process_index, session.process_count) == known


@pytest.mark.parametrize("size", [10, INLINE_BYTES, INLINE_BYTES + 1, 3_000_000])
def test_texts_survive_splitting(size):
    mixed = "".join(chr(33 + (i * 7919) % 90) for i in range(90))
    text = (mixed * (size // 90 + 1))[:size]
    parts = list(split("hlo", text, "r1"))
    session = fold(e.Header(), [PLAN, *parts])
    assert session.text("r1", "hlo") == text
    assert (len(parts) == 1) == (size <= INLINE_BYTES)
    assert all(len(part.data) <= CHUNK_CHARACTERS for part in parts if isinstance(part, e.TextChunk))
    assert parts[-1].bytes == size if isinstance(parts[-1], e.TextRecorded) else False


@pytest.mark.parametrize("damage", ["not whole", "is damaged", "its hash differs"])
def test_text_with_a_missing_or_damaged_piece(damage):
    text = "".join(str(number * number) for number in range(INLINE_BYTES))
    *chunks, recorded = split("hlo", text, "r1")
    first, *others = (chunk for chunk in chunks if isinstance(chunk, e.TextChunk))
    if damage == "is damaged":
        others.append(replace(first, data=first.data[:100] + "AAAA" + first.data[104:]))
    elif damage == "its hash differs":  # whole, and packed as it should be
        another = split("hlo", "x" + text[1:], "r1")
        others = [replace(part, digest=recorded.digest) for part in another if isinstance(part, e.TextChunk)]
    with pytest.raises(FileRefusedError, match=damage):
        fold(e.Header(), [PLAN, *others, recorded]).text("r1", "hlo")


def test_long_texts_arrive_in_pieces(tmp_path):
    """No line on the pipe is as long as a module, and equal texts of two runs are kept once."""
    text = "".join(f"%fusion.{number} = f32[{number}]\n" for number in range(200_000))
    with (tmp_path / "pipe").open("wb") as sent:
        for run in ("r1", "r2"):
            EventPipe(sent.fileno()).send(e.TextRecorded(name="hlo", text=text, bytes=len(text)), run)
    received = (tmp_path / "pipe").read_bytes().splitlines(keepends=True)
    assert len(received) > 2
    assert max(map(len, received)) < CHUNK_CHARACTERS + 1000
    recorder = SessionRecorder(LogWriter(e.Header(), tmp_path / "x.jaxprof"), lambda events: None)
    for event in map(decode_line, received):
        recorder.session.runs.setdefault(event.run, Run(event.run, PLAN.spec))
        recorder.take(event, event.run, {})
    assert recorder.session.text("r1", "hlo") == recorder.session.text("r2", "hlo") == text
    kept = (tmp_path / "x.jaxprof").read_bytes()
    assert kept.count(b'"text_recorded"') == 2
    assert kept.count(b'"text_chunk"') == len(received) // 2 - 1


def test_notices_of_a_million_kinds_are_few():
    session = fold(e.Header(), [e.LogLine(run=f"r{number}", stream="stdout", text="x") for number in range(1000)])
    assert session.notices[0] == "run r0 has no plan in this file"
    assert session.notices[-1] == "something else could not be used (900 times)"
    assert len(session.notices) == 101


def test_label_of_a_side_begins_with_its_name():
    run, side = folded(), Run("r2", replace(SPEC, side="B"))
    assert run.label == "selu jit gpu:1"
    assert run.variant == "jit"
    assert run.as_baseline == "jit"
    assert side.label == "B selu jit gpu:1"
    assert side.variant == "B jit"
    assert side.as_baseline == "B"


@pytest.mark.parametrize(
    ("devices", "kind"),
    [
        ([], "gpu"),
        ([{"id": "cpu:0", "platform": "cpu", "kind": "cpu"}], "gpu"),
        ([{"id": "gpu:0", "platform": "gpu", "kind": "A"}, {"id": "gpu:1", "platform": "gpu", "kind": "B"}], "B"),
        ([{"id": "cuda:0", "platform": "gpu", "kind": "A"}], "A"),
        ([{"id": "gpu:1", "platform": "gpu", "kind": ""}], "gpu"),
    ],
)
def test_device_kind_of_a_run(devices, kind):
    assert folded(e.EnvironmentRead(run="r1", python="3", numpy="2", devices=devices)).device_kind == kind


def test_last_lines_of_long_output_stay_in_memory():
    run = folded(*(e.LogLine(run="r1", stream="stdout", text=str(number)) for number in range(10_003)))
    assert len(run.log) == 10_000
    assert run.log[0].text == "3"
    assert run.log[-1].text == "10002"


RUN = program_events.RUN


def running(function, thread="", stage="compile"):
    return e.StageRunning(run=RUN, function=function, stage=stage, began_seconds=1.0, thread=thread)


def program(*inside, **more):
    return program_events.session(*inside, **more).runs[RUN].program


def test_running_stage_ends_with_its_compile():
    both = (running("step"), running("load", "feeder"))
    assert program(*both, wall=None).running == {"": both[0], "feeder": both[1]}
    after = program(*both, program_events.compiled(thread="feeder"), wall=None)
    assert after.running == {"": both[0]}
    assert program(*both, program_events.compiled(), wall=None).running == {"feeder": both[1]}


def test_compile_without_a_row_at_the_end_was_cut_off():
    compiling = running("step")
    assert program(compiling).running == {"": compiling}
    assert program(running("step", stage="trace")).running == {}, "a trace that fails has no row either"
    assert program(compiling, program_events.compiled()).running == {}


def test_run_is_a_program_by_its_plan_or_its_events():
    planned, *events = program_events.program(wall=None)
    line = e.LogLine(run=RUN, stream="stdout", text="epoch 1")
    for inside, is_program, recorded in (
        ([planned, *events, line], True, True),
        ([planned, line], True, False),  # by its plan
        (events, True, True),  # by what was recorded in it
        ([PLAN, line], False, False),
    ):
        run = fold(program_events.HEADER, inside).runs[RUN]
        assert (run.is_program, run.program is not None) == (is_program, recorded)


IMPOSSIBLE = {
    "none": {"seconds": []},
    "negative": {"seconds": [0.5, -0.5]},
    "fewer counts": {"seconds": [0.5, 0.5], "counts": [1]},
    "no iteration": {"counts": [0]},
    "too many": {"seconds": [0.5] * 100_001},
    "too high": {"counts": [(1 << 53) + 1]},
    "too low": {"first": -(1 << 53)},
    "before the clock": {"began_seconds": -1.0},
}


@pytest.mark.parametrize("damage", IMPOSSIBLE)
def test_impossible_iterations_are_left_out_with_a_notice(damage):
    sound = {"first": 0, "seconds": [0.5]}
    kept, damaged = (
        program_events.iterations(**sound, counts=[1]),
        program_events.iterations(**sound | IMPOSSIBLE[damage]),
    )
    session = program_events.session(kept, damaged)
    assert session.runs[RUN].program.iterations == [kept]
    assert len([notice for notice in session.notices if "iterations of a loop were left out" in notice]) == 1


def test_sample_windows_of_one_loop_share_equal_values():
    """Else an app that follows a program grows by 3 KB a second."""
    line = e.SampledLine(file="/train.py", line=8, function="main", state="device_busy", kind="compiled", sites=[0])
    sites = [e.LoopSite(file="/train.py", function="main", loop_line=7, last_line=9, line=8)]
    window = e.ProgramSampled(run="r1", began_seconds=0.0, samples=9, lines=[line], sites=sites)
    other = replace(window, sites=[replace(sites[0], line=9)])
    windows = folded(*(decode_line(encode_line(each)) for each in (window, window, other))).program.sampled
    assert windows == [window, window, other]
    assert windows[0].sites is windows[1].sites
    assert windows[0].lines[0].file is windows[2].lines[0].file
