from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.child import Child


@pytest.fixture
def start() -> Iterator[Callable[..., Child]]:
    """Starts engines, and ends them after the test."""
    children: list[Child] = []

    def started(*arguments: str, **options: object) -> Child:
        children.append(Child(*arguments, **options))  # type: ignore[arg-type]
        return children[-1]

    yield started
    for child in children:
        child.close()


@pytest.fixture(scope="module")
def engine() -> Iterator[Child]:
    """One engine for the runs of a module that leave it alive: importing jax is most of what a test costs."""
    child = Child()
    yield child
    child.close()
