"""Programs made of events: a training loop that recompiles, one that compiles right now, one that failed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jaxprof import events as e
from tui.session_tapes import HOSTILE, Tape

HOME = "/home/me/models"


def at(line: int, file: str = "train.py", function: str = "main") -> e.SourceLocation:
    """A line of the program."""
    return e.SourceLocation(f"{HOME}/{file}", line, function)


def begun(*arguments: str, began_seconds: float = 1000.0) -> Tape:
    """A program that has just started."""
    tape = Tape(began_seconds)
    tape.add(e.RunPlanned, "r1", spec=e.RunSpec(workload="train.py", variant="program", how="program", device="host"))
    tape.add(e.WorkerStarted, "r1", pid=4711, python="/venv/bin/python")
    tape.add(e.ProgramStarted, "r1", argv=["train.py", *arguments], how="script", directory=HOME)
    tape.add(e.LogLine, "r1", stream="stdout", text="loading the data")
    return tape


def _site(line: dict[str, Any]) -> e.LoopSite:
    where = {name: line[name] for name in ("file", "line", "function", "call") if name in line}
    return e.LoopSite(**where, loop_line=89, last_line=96)


def stretch(tape: Tape, seconds: float, lines: list[dict[str, Any]] | None = None, **states: float) -> None:
    """A second or so of the program; `states` are shares."""
    began = tape.now
    tape.now += seconds
    tape.add(
        e.ProgramSampled, "r1", began_seconds=began, samples=round(seconds * 50),
        states={state: share * seconds for state, share in states.items()},
        lines=[e.SampledLine(**line, sites=[number]) for number, line in enumerate(lines or [])],
        sites=[_site(line) for line in lines or []],
        own_seconds=0.004 * seconds,
    )  # fmt: skip


def compiled(tape: Tape, function: str, seconds: float, **fields: Any) -> None:
    """A row of the ledger, a tenth of it trace, a tenth lower."""
    given: dict[str, Any] = {
        "called_from": at(88), "defined_at": at(40, function=function), "cache": "off", "reason_code": "first",
        "operations": 412, "signature": [e.SignatureLeaf(name="params['w']", type="f32[512,512]")],
        "trace_seconds": seconds * 0.1, "lower_seconds": seconds * 0.1, "compile_seconds": seconds * 0.8,
        "began_seconds": tape.now - seconds, **fields,
    }  # fmt: skip
    tape.add(e.Compiled, "r1", function=function, **given)


def reading(tape: Tape, utilisation: float) -> None:
    """The GPU and the host at this moment."""
    tape.add(
        e.DeviceReading, device="cuda:0", utilisation=utilisation, memory_used_bytes=int(20e9 + 4e9 * utilisation),
        memory_limit_bytes=int(140e9), power_watts=120 + 400 * utilisation, power_limit_watts=700.0,
    )  # fmt: skip
    tape.add(e.DeviceReading, device="cpu:0", utilisation=0.3, memory_used_bytes=int(9e9), memory_limit_bytes=int(64e9))


def training(*, steps: int = 24) -> Tape:
    """A loop whose last batch has another shape, over some seconds; still going on."""
    tape = begun("--epochs", "1")
    stretch(tape, 0.8, **{"import": 1.0})
    tape.add(e.JaxImported, "r1", seconds=0.61, version="0.10.2")
    stretch(tape, 1.2, [{**asdict(at(21)), "state": "data", "seconds": 0.9, "call": "load"}], data=0.8, host_busy=0.2)
    stretch(tape, 2.6, [{**asdict(at(88)), "state": "compile", "seconds": 2.0, "call": "train_step"}],
            trace=0.1, lower=0.1, compile=0.8)  # fmt: skip
    compiled(tape, "train_step", 2.6)
    compiled(tape, "add", 0.02, op_by_op=True, library=True, called_from=at(92), defined_at=e.NOWHERE)
    for step in range(steps):
        again = step % 6 == 5
        busy = 0.3 if again else 0.75
        rows = [
            {**asdict(at(90)), "state": "device_busy", "kind": "compiled", "seconds": busy * 0.6, "call": "train_step"},
            {**asdict(at(91)), "state": "device_busy", "kind": "sync", "seconds": busy * 0.3, "call": "float()"},
            {**asdict(at(91)), "state": "transfer", "kind": "transfer", "seconds": 0.1, "call": "float()"},
        ]
        shares = {"compile": 0.5} if again else {"data": 0.05}
        stretch(tape, 1.0, rows, device_busy=busy, transfer=0.1, host_busy=0.08, **shares)
        reading(tape, busy)
        tape.add(e.ArraysCounted, "r1", count=31 + 2 * step, bytes=int(12e6 + 4e5 * step), devices={})
        tape.add(e.StepsCounted, "r1", where=at(89), found_by="monitoring", count=40, seconds=1.0,
                 lines=[e.TimedLine(line=90, seconds=0.5, hits=40), e.TimedLine(line=91, seconds=0.5, hits=40)],
                 intervals_seconds=tape.noise(0.025, 20))  # fmt: skip
        tape.add(e.LogLine, "r1", stream="stdout", text=f"step {40 * (step + 1)}: loss {2.3 / (step + 1):.3f}")
        if again:
            compiled(
                tape, "train_step", 0.5, reason_code="shape", called_from=at(90),
                reason=f"argument batch: f32[32,512] → f32[{step},512]",
                signature=[
                    e.SignatureLeaf(name="params['w']", type="f32[512,512]"),
                    e.SignatureLeaf(name="batch", type=f"f32[{step},512]"),
                ],
            )  # fmt: skip
    return tape


def finished(status: str = "ok", exit_code: int = 0, error: str = "", steps: int = 24) -> Tape:
    """The same, over."""
    tape = training(steps=steps)
    rows = [
        e.CopiesSeen(direction="host_to_device", count=960, bytes=31_457_280, source="guard"),
        e.CopiesSeen(direction="device_to_host", count=41, seconds=2.4, source="samples", **asdict(at(91))),
    ]
    tape.add(e.TransfersSeen, "r1", rows=rows)
    tape.add(e.ProgramEnded, "r1", exit_code=exit_code, wall_seconds=tape.now - 1000.0)
    tape.finish("r1", status, error=error)
    tape.close()
    return tape


def compiling() -> Tape:
    """In the middle of a long compile, of which nothing more is heard."""
    tape = begun()
    stretch(tape, 1.0, **{"import": 1.0})
    tape.add(e.JaxImported, "r1", seconds=0.61, version="0.10.2")
    began = tape.now
    tape.now += 0.5
    tape.add(e.StageRunning, "r1", function="train_step", stage="compile", began_seconds=began, called_from=at(88))
    return tape


def hostile() -> Tape:
    """Names and lines that no screen may obey."""
    tape = begun(HOSTILE)
    tape.add(e.JaxImported, "r1", seconds=0.61, version="0.10.2")
    where = e.SourceLocation(f"/home/{HOSTILE}.py", 3, HOSTILE)
    stretch(tape, 1.0, [{**asdict(where), "state": "host_busy", "seconds": 0.9, "call": HOSTILE}], host_busy=1.0)
    compiled(tape, HOSTILE, 0.4, called_from=where, defined_at=where)
    compiled(
        tape, HOSTILE, 0.4, called_from=where, defined_at=where, reason_code="static_argument",
        reason=f"static argument {HOSTILE}: 3 → 4",
        signature=[e.SignatureLeaf(name=HOSTILE, type=HOSTILE, static=True)],
    )  # fmt: skip
    tape.add(e.LogLine, "r1", stream="stderr", text=HOSTILE)
    tape.finish("r1", "failed", error=HOSTILE)
    return tape
