import pytest

from engine.child import Child


@pytest.fixture
def start():
    """Starts engines, and ends them after the test."""
    children = []

    def started(*arguments, **options):
        children.append(Child(*arguments, **options))
        return children[-1]

    yield started
    for child in children:
        child.close()


@pytest.fixture(scope="module")
def engine():
    """One engine for the runs of a module that leave it alive: importing jax is most of what a test costs."""
    child = Child()
    yield child
    child.close()
