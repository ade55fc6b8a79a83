"""The pytest plugin: the fixture and the marker `jaxprof`, and the options of pytest.

It stands beside the package and imports neither jaxprof nor jax: pytest loads it in every environment that has jaxprof.
What it does is in `jaxprof.testing`, which is imported by the first test that uses it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jaxprof.testing.calls import Caller

MARKER = (
    "jaxprof(max_compiles=N, max_kernels=N, max_flops=N, max_bytes=N, max_peak_bytes=N): fail the test if a function"
    " is compiled more often in it, or if the program of a call of the fixture `jaxprof` exceeds a limit"
)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def jaxprof(request: pytest.FixtureRequest) -> Generator[Caller, None, None]:
    """`result = jaxprof(fn, *args, **kwargs)` calls a JAX function and looks at its program: `result.compiles`,
    `.kernels`, `.flops`, `.bytes`, `.memory.peak_bytes`, `.median_seconds`; `result.value` is what it returned."""
    from jaxprof.testing.items import watched

    with watched(request.node) as watch:
        yield watch.caller


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a marker that cannot be read."""
    marked = [item for item in items if item.get_closest_marker("jaxprof") is not None]
    if marked:
        from jaxprof.testing.limits import refuse_wrong_markers

        refuse_wrong_markers(marked)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watches what a test with the marker or the fixture compiles, and applies its limits once it has passed."""
    if item.get_closest_marker("jaxprof") is None and "jaxprof" not in getattr(item, "fixturenames", ()):
        return (yield)
    from jaxprof.testing.items import limited

    with limited(item):
        return (yield)
