"""Keeps jaxlib's profiler from complaining, twice a capture, that TensorFlow is not there.

jaxlib's Python hooks (`python_hooks.cc`, seen in 0.7.2) look for `tensorflow.python.profiler.trace` whenever a trace
starts or stops, to set its `enabled`, and write `Can't import tensorflow.python.profiler.trace` to stderr where they
do not find it. In the log of a run that is an error that is none. An installed TensorFlow is left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Final

HOOK: Final = "tensorflow.python.profiler.trace"


@contextmanager
def stand_in_for_tensorflow() -> Iterator[None]:
    """While it lasts, empty modules bear the names that are looked for; they were not there before, nor are after."""
    if "tensorflow" in sys.modules or find_spec("tensorflow") is not None:
        yield
        return
    parts = HOOK.split(".")
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    made = {name: ModuleType(name) for name in names}
    for outer, inner, attribute in zip(names, names[1:], parts[1:], strict=False):
        setattr(made[outer], attribute, made[inner])
    sys.modules.update(made)
    try:
        yield
    finally:
        for name in names:
            if sys.modules.get(name) is made[name]:
                del sys.modules[name]
