"""The pytest plugin: the fixture and the marker `jaxprof`, and the options of pytest.

It stands beside the package and imports neither jaxprof nor jax: pytest loads it in every environment that has jaxprof.
What it does is in `jaxprof.testing`, which is imported by the first test that uses it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.testing.calls import Caller

MARKER = (
    "jaxprof(max_compiles=N, max_kernels=N, max_flops=N, max_bytes=N, max_peak_bytes=N): fail the test if a function"
    " is compiled more often in it, or if the program of a call of the fixture `jaxprof` exceeds a limit"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("jaxprof", "jaxprof: programs that tests call with the fixture jaxprof")
    group.addoption(
        "--jaxprof-save",
        metavar="FILE",
        help="Save the programs as a session, which `jaxprof gate` and `jaxprof compare` take.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker, and reads the options."""
    config.addinivalue_line("markers", MARKER)
    if not hasattr(config, "workerinput"):  # the workers of pytest-xdist report to the controller
        config.pluginmanager.register(_Reports(config), "jaxprof-reports")


@pytest.fixture
def jaxprof(request: pytest.FixtureRequest) -> Generator[Caller, None, None]:
    """`result = jaxprof(fn, *args, **kwargs)` calls a JAX function and looks at its program: `result.compiles`,
    `.kernels`, `.flops`, `.bytes`, `.memory.peak_bytes`; `result.value` is what it returned."""
    from jaxprof.testing.items import watch_test

    with watch_test(request.node) as caller:
        yield caller


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a marker that cannot be read. A worker of pytest-xdist cannot refuse a run: there its test fails."""
    marked = [item for item in items if item.get_closest_marker("jaxprof") is not None]
    if marked and not hasattr(marked[0].config, "workerinput"):
        from jaxprof.testing.items import refuse_wrong_markers

        refuse_wrong_markers(marked)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watches what a test with the marker or the fixture compiles, and applies its limits once it has passed."""
    if not _is_used(item):
        return (yield)
    from jaxprof.testing.items import enforce_limits

    with enforce_limits(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the programs of a finished test to its last report, which pytest-xdist carries to the controller."""
    report = yield
    if call.when == "teardown" and _is_used(item):
        from jaxprof.testing.items import lines_of

        report.jaxprof_lines = lines_of(item)  # type: ignore[attr-defined]
    return report


def _is_used(item: pytest.Item) -> bool:
    return item.get_closest_marker("jaxprof") is not None or "jaxprof" in getattr(item, "fixturenames", ())


class _Reports:
    """Collects the programs of the tests; at the end of the run, shows and saves them."""

    def __init__(self, config: pytest.Config) -> None:
        self.programs: dict[str, list[str]] = {}
        self.lines: list[str] = []
        self.path: Path | None = None
        option = config.getoption("jaxprof_save")
        if option is not None:
            from jaxprof.testing.items import file_of

            self.path = file_of(option)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The last attempt of a test counts."""
        lines = getattr(report, "jaxprof_lines", None)
        if lines:
            self.programs[report.nodeid] = lines

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.programs and self.path is None:
            return
        from jaxprof.testing.items import report

        self.lines, failed = report(self.path, self.programs)
        if failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.lines:
            terminalreporter.section("jaxprof")
            for line in self.lines:
                terminalreporter.write_line(line)
