"""A session in a notebook: a small piece of HTML that can do no harm."""

from __future__ import annotations

from folding import fold
from jaxprof import events as e
from jaxprof.report.html import to_html
from jaxprof.session import Session
from report import sessions


def program(functions: int = 1, name: str = "train_step") -> Session:
    run = {"run": "r1"}
    return fold(
        sessions.HEADER,
        [
            e.RunPlanned(spec=e.RunSpec(workload="train.py", variant="program", how="program", device="host"), **run),
            e.WorkerStarted(pid=1, python="p", monotonic_seconds=1.0, **run),
            e.ProgramStarted(argv=["train.py"], how="script", monotonic_seconds=1.0, **run),
            *(
                e.Compiled(
                    function=f"{name}{number or ''}",
                    began_seconds=2.0,
                    compile_seconds=1.5,
                    called_from=e.SourceLocation("train.py", 88, "main"),
                    reason_code="shape",
                    reason="argument x: f32[4] → f32[3]",
                    **run,
                )
                for number in range(functions)
            ),
            e.ProgramSampled(
                began_seconds=1.0, samples=90, states={"compile": 1.5, "host_busy": 7.5}, monotonic_seconds=10.0, **run
            ),
            e.ProgramEnded(exit_code=0, wall_seconds=9.0, monotonic_seconds=10.0, **run),
            e.RunFinished(status="ok", monotonic_seconds=10.0, **run),
        ],
    )


def test_it_stays_small() -> None:
    found = to_html(program(functions=500))
    assert "and 488 more" in found
    assert len(found) < 20_000
    assert len(to_html(program(name="f" * 100_000))) < 20_000
