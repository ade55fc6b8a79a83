"""Events of programs with fixed figures: what a recording gives, without a program."""

from dataclasses import asdict, replace
from typing import Any

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.findings.program_result import program_result
from jaxprof.session import Session

RUN = "r1"
FOLDER = "/home/me/work"
BEGAN = 100.0
"""Monotonic seconds at which the process of every program here starts."""
HEADER = e.Header(
    jaxprof="0.1.0",
    session="0123456789ab",
    created="2026-11-21T04:05:06Z",
    host="box",
    command=["jaxprof", "script", "train.py"],
    wall_seconds=1000.0,
    monotonic_seconds=99.0,
)


def at(line: int, function: str = "main", file: str = "train.py") -> e.SourceLocation:
    """A place in the program."""
    return e.SourceLocation(f"{FOLDER}/{file}", line, function)


def leaf(name: str, type_: str, **more: Any) -> e.SignatureLeaf:
    """One argument of a signature."""
    return e.SignatureLeaf(name=name, type=type_, **more)


def compiled(function: str = "step", reason_code: str = "first", *, line: int = 88, **more: Any) -> e.Compiled:
    """One row of the ledger: 0.1 s in all, called from `line`, defined at line 20."""
    clocks = {"began_seconds": BEGAN + 1, "monotonic_seconds": BEGAN + 2}
    places = {"called_from": at(line), "defined_at": at(20, "")}
    figures = {"trace_seconds": 0.02, "lower_seconds": 0.01, "compile_seconds": 0.07, "operations": 40}
    return e.Compiled(run=RUN, function=function, reason_code=reason_code, **clocks | places | figures | more)


def reason(kind: str, name: str = "", before: str = "", now: str = "", **more: Any) -> e.CompileReason:
    """One reason for a compilation."""
    return e.CompileReason(kind=kind, name=name, before=before, now=now, **more)


def shaped(count: int, function: str = "step", name: str = "x", **more: Any) -> list[e.Event]:
    """A function that is compiled for batches of 1 to `count`."""
    rows = []
    for size in range(1, count + 1):
        code = "first" if size == 1 else "shape"
        changed = [] if size == 1 else [reason("shape", name, f"f32[{size - 1},128]", f"f32[{size},128]")]
        signature = [leaf(name, f"f32[{size},128]"), leaf("w", "f32[128,10]")]
        rows.append(compiled(function, code, signature=signature, reasons=changed, **more))
    return rows


_KINDS = {"device_busy": "compiled", "host_busy": "host", "waiting": "host"}


def line(
    number: int,
    seconds: float,
    state: str,
    call: str = "",
    function: str = "main",
    *,
    kind: str = "",
    loop: int | None = 85,
    under: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A line of the source in a window: in a loop that begins at line `loop` and, where it is in a function that is
    called there, `under` another line of it."""
    place = {"file": f"{FOLDER}/train.py", "line": under or number, "function": "main"}
    sites = [] if loop is None else [{**place, "call": call, "loop_line": loop, "last_line": 99}]
    told = {"seconds": seconds, "state": state, "call": call, "kind": kind or _KINDS.get(state, state)}
    return {**place, "line": number, "function": function, **told, **more, "at": sites}


def sampled(
    began: float, seconds: float, states: dict[str, float], lines: list[dict[str, Any]] | None = None
) -> e.ProgramSampled:
    """A sample window that begins `began` seconds after the program."""
    told = []
    sites = []
    for one in lines or []:
        around = [e.LoopSite(**site) for site in one.get("at", [])]
        sites += [site for site in around if site not in sites]
        fields = {name: value for name, value in one.items() if name != "at"}
        told.append(e.SampledLine(**fields, sites=list(map(sites.index, around))))
    clocks = {"began_seconds": BEGAN + began, "monotonic_seconds": BEGAN + began + seconds}
    taken = {"samples": round(100 * seconds), "own_seconds": 0.004 * seconds}
    return e.ProgramSampled(run=RUN, **clocks, **taken, states=states, lines=told, sites=sites)


def steady(count: int, states: dict[str, float], lines: list[dict[str, Any]] | None = None) -> list[e.Event]:
    """`count` windows of a second each, all alike."""
    first = sampled(0, 1.0, states, lines)
    moments = (BEGAN + second for second in range(count))
    return [replace(first, began_seconds=moment, monotonic_seconds=moment + 1.0) for moment in moments]


def loop(*lines: dict[str, Any], count: int = 10) -> list[e.Event]:
    """`count` seconds of a loop: what these lines take of each, and the rest is a compiled function's on the device."""
    taken = sum(each["seconds"] for each in lines)
    states = {"device_busy": 1.0 - taken} | {each["state"]: each["seconds"] for each in lines}
    return steady(count, states, [*lines, line(88, 1.0 - taken, "device_busy", "step")])


def inline(
    ran: float,
    held: float,
    each: float,
    leaves: int = 1,
    empty: float = 0.0,
    *,
    numbers: int = 0,
    rate: int = 0,
    idle: float = 0.0,
) -> list[e.Event]:
    """A loop in whose call the thread ran without the interpreter's lock, and with it, beside an `empty` call with as
    many `numbers`; `rate`: of its iterations a second, as the loop's counter shows it; `idle`: between them."""
    lines = [
        line(88, ran, "device_busy", "step", kind="inline"),
        line(88, held, "host_busy", "step", kind="call"),
        line(87, idle, "waiting", "selector.select()", kind="idle"),
    ]
    row = compiled(signature=[leaf("x", "f32[3]")], signature_more=leaves - 1, numbers=numbers)
    timed: list[e.Event] = [e.EmptyCallTimed(run=RUN, seconds=empty, numbers=numbers)] if empty else []
    timed += [iterations(0, [9.0], counts=[9 * rate], found_by="number")] if rate else []
    states = {"device_busy": ran, "host_busy": held, "waiting": idle}
    return [row, *steady(10, states, lines), steps(1000, each), *timed]


def steps(
    count: int,
    each: float,
    number: int = 85,
    function: str = "main",
    lines: dict[int, float] | None = None,
    seldom: float = 0.0,
) -> e.StepsCounted:
    """`count` steps of a loop, a few per cent apart; `lines`: the share of its seconds that a line of it takes;
    `seldom`: the share of all their seconds that only every fiftieth step takes."""
    intervals = [each * (1 - seldom) * (1 + 0.02 * (index % 5 - 2)) for index in range(min(count, 100))]
    intervals = [took + (50 * seldom * each if index % 50 == 10 else 0.0) for index, took in enumerate(intervals)]
    timed = [e.TimedLine(line=line, seconds=share * count * each, hits=count) for line, share in (lines or {}).items()]
    figures = {"count": count, "seconds": count * each, "intervals_seconds": intervals, "lines": timed}
    return e.StepsCounted(run=RUN, where=at(number, function), **figures)


def iterations(first: int, seconds: list[float], number: int = 85, name: str = "step", **more: Any) -> e.StepsTaken:
    """Iterations of the loop at line `number`, one after another from the start of the program's sixth second."""
    fields = {"found_by": "monitoring", "began_seconds": BEGAN + 5.1, "where": at(number)} | more
    return e.StepsTaken(run=RUN, first=first, numbered_by=name, seconds=seconds, **fields)


def arrays(counts: list[int], size: int = 1024) -> list[e.Event]:
    """The live arrays, counted once a second."""
    return [
        e.ArraysCounted(run=RUN, monotonic_seconds=BEGAN + second, count=count, bytes=count * size)
        for second, count in enumerate(counts, start=1)
    ]


def copies(direction: str, count: int, **more: Any) -> e.TransfersSeen:
    """Copies in one direction."""
    return e.TransfersSeen(run=RUN, rows=[e.CopiesSeen(direction=direction, count=count, **more)])


def stands(seconds: float = 30.0, *, line: int = 91, until: float = 50.0, **more: Any) -> e.StandstillSeen:
    """What a recorder sees `until` so long after the start, of a program whose last iteration, number 188, ended so
    many seconds before: it sleeps at a line."""
    now = BEGAN + until
    seen: dict[str, Any] = {
        "step": 188, "usual_seconds": 0.01, "longest_seconds": 0.1, "at": at(line), "call": "time.sleep()",
        "kind": "host", "still_seconds": now - seconds, "busy_share": 0.0, "process_share": 0.01,
        "moved_bytes_per_second": 100.0,
        "wait": e.SystemWait(state="S", call="sleep"), "inner": at(line),
        "threads": [e.ThreadStack(name="MainThread", frames=[at(line)])],
    }  # fmt: skip
    return e.StandstillSeen(run=RUN, monotonic_seconds=now, since_seconds=now - seconds, **{**seen, **more})


def program(
    *inside: e.Event,
    argv: tuple[str, ...] = ("train.py", "--epochs", "3"),
    wall: float | None = 10.0,
    exit_code: int | None = 0,
    notes: list[dict[str, Any]] | None = None,
) -> list[e.Event]:
    """A whole program around what was seen `inside`, with the end that is among it; with `wall` None it was cut off."""
    given = next((event for event in inside if isinstance(event, e.ProgramEnded)), None)
    exit_code = exit_code if given is None else given.exit_code
    made = [
        e.RunPlanned(run=RUN, spec=e.RunSpec(workload=argv[0], variant="program", how="program", device="host")),
        e.WorkerStarted(run=RUN, pid=100, python="/usr/bin/python3", monotonic_seconds=BEGAN),
        e.ProgramStarted(run=RUN, argv=list(argv), how="script", directory=FOLDER, monotonic_seconds=BEGAN + 0.05),
        *inside,
    ]
    if wall is None:
        return made
    status = "ok" if exit_code == 0 else "failed" if exit_code != 130 else "cancelled"
    error = "" if exit_code == 0 else f"exit code {exit_code}"
    end = BEGAN + wall
    ended = given or e.ProgramEnded(run=RUN, exit_code=exit_code, wall_seconds=wall, notes=notes or [])
    return [
        *made,
        replace(ended, monotonic_seconds=end),
        e.RunFinished(run=RUN, status=status, error=error, monotonic_seconds=end),
        e.RunClosed(
            run=RUN, workload=argv[0], variant="program", device="host", status=status, error=error,
            wall_seconds=wall, monotonic_seconds=end,
        ),
        e.SessionClosed(monotonic_seconds=end),
    ]  # fmt: skip


def session(*inside: e.Event, **more: Any) -> Session:
    """The session of `program(...)`."""
    return fold(HEADER, program(*inside, **more))


def result(*inside: e.Event, **more: Any) -> ProgramResult:
    """The figures of `program(...)`."""
    return program_result(session(*inside, **more), RUN)


def cut_off_events() -> list[e.Event]:
    """A program that was killed in its fourth second, in the middle of a compilation."""
    return program(
        *(sampled(second, 1.0, {"import": 0.4, "compile": 0.6}) for second in range(3)),
        compiled(),
        e.StageRunning(
            run=RUN, function="step", stage="compile", began_seconds=BEGAN + 2.2, monotonic_seconds=BEGAN + 3.2
        ),
        wall=None,
    )


def without_jax_events() -> list[e.Event]:
    """A program that ended with an exception before it imported jax."""
    return program(argv=("hello.py",), wall=0.2, exit_code=1, notes=[e.Note(code="no_jax")])


def cut_off() -> Session:
    return fold(HEADER, cut_off_events())


def without_jax() -> Session:
    return fold(HEADER, without_jax_events())


def training() -> Session:
    return fold(HEADER, training_events())


def training_events() -> list[e.Event]:
    """A training script with most of what can be found: shapes that vary, a wait in the loop, a cache that is off."""
    warm = {"import": 0.9, "host_busy": 0.1}
    compiling = {"trace": 0.15, "lower": 0.08, "compile": 0.6, "device_busy": 0.12, "data": 0.05}
    training = {"compile": 0.1, "device_busy": 0.62, "host_busy": 0.1, "data": 0.08, "waiting": 0.1}
    lines = [
        line(91, 0.4, "device_busy", "float()", kind="sync"),
        line(88, 0.22, "device_busy", "step"),
        line(86, 0.08, "data", "next()"),
    ]
    return program(
        sampled(0.1, 1.0, warm, [line(3, 0.9, "import", "import")]),
        e.JaxImported(run=RUN, seconds=0.62, version="0.10.2", monotonic_seconds=BEGAN + 1.0),
        *(sampled(1.1 + second, 1.0, compiling, [line(88, 0.1, "device_busy", "step")]) for second in range(4)),
        *(sampled(5.1 + second, 1.0, training, lines) for second in range(15)),
        *shaped(33, cache="off", compile_seconds=0.1),
        compiled("init", line=70, cache="off", compile_seconds=0.4, defined_at=at(9, "")),
        *(compiled(name, line=72, op_by_op=True, cache="off", operations=1, defined_at=e.NOWHERE, library=True,
                   compile_seconds=0.01, lower_seconds=0.002, trace_seconds=None) for name in ("add", "mul", "sin")),
        steps(2400, 6.2e-3, 85, lines={91: 0.5, 88: 0.4, 86: 0.1}),
        iterations(12, [6.2e-3] * 2388),
        *arrays([40, 60, 61, 61, 60, 61]),
        copies("host_to_device", 14, seconds=0.14, **asdict(at(88))),
        wall=20.4,
        notes=[e.Note(code="pipe_full", lost=2)],
    )  # fmt: skip
