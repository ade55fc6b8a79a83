"""A session in a notebook: a small piece of HTML that can do no harm."""

from __future__ import annotations

from html.parser import HTMLParser

from folding import fold
from jaxprof import events as e
from jaxprof.report.html import to_html
from jaxprof.session import Session
from report import sessions


class Tags(HTMLParser):
    """Which elements there are, whether each is closed, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


ELEMENTS = {"div", "b", "p", "table", "tr", "th", "td", "ul", "li", "span"}


def parsed(session: Session) -> Tags:
    found = Tags(to_html(session))
    assert not found.open
    assert set(found.names) <= ELEMENTS
    assert found.attributes <= {"style", "title", "colspan"}
    return found


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


def test_measured_runs_are_a_table_with_their_warnings() -> None:
    found = parsed(sessions.whole())
    for word in ("selu", "numpy", "jit", "4.37 ms", "± ", "jax 0.10.2"):
        assert word in found.text


def test_a_program_has_its_time_line_and_its_ledger() -> None:
    found = parsed(program())
    for word in ("train.py", "exit code 0", "host busy", "train_step", "train.py:88", "f32[4] → f32[3]", "1.50 s"):
        assert word in found.text
    assert "span" in found.names


def test_it_stays_small() -> None:
    found = to_html(program(functions=500))
    assert "and 488 more" in found
    assert len(found) < 20_000
    assert len(to_html(program(name="f" * 100_000))) < 20_000
