"""Broken text: an HloError, or a module that is partial and says so; never another exception, never quadratic time.
Modules that nest deeper than Python's stack: every analysis ends, and says where it did not look."""

import functools
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from jaxprof.errors import HloError
from jaxprof.hlo.analysis.barriers import barriers
from jaxprof.hlo.analysis.cost.flops import DEEPEST, CostModel
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.kernels import kernels, totals
from jaxprof.hlo.analysis.notices import problems
from jaxprof.hlo.read.parse import modules

from .broken import HEAD, worst_texts

PRINTED = (Path(__file__).parent / "printed.hlo").read_text()
WRITTEN = (Path(__file__).parent / "written.hlo").read_text()
TIMES = 1500
"""How often the worst texts repeat a thing."""
WORST = functools.cache(functools.partial(worst_texts, TIMES))
MOST = 15.0
"""How many times as long as sound lines they may take; the slowest takes 4 times as long."""


def look_at_everything(module):
    _ = module.entry, module.aliases, module.entry_layout, module.callers, module.text
    lines = [problem.line for problem in problems(module)]
    assert lines == sorted(lines)
    last_line = module.source.line_count
    for computation in module.computations.values():
        _ = computation.root, computation.parameters, computation.header, computation.text
        assert 1 <= computation.line <= last_line
        for instruction in computation.instructions:
            _ = instruction.opcode, instruction.wrapped_opcode, instruction.operands, instruction.called
            _ = instruction.metadata, instruction.literal, instruction.parameter_number, instruction.backend_config
            _ = instruction.users, instruction.stack, instruction.operand_instructions(), instruction.integers("index")
            _ = instruction.shape.bytes, str(instruction.shape), instruction.shape.padded_bytes
            assert 1 <= instruction.line <= last_line
            assert bool(instruction.opcode) == instruction.readable
            assert instruction.text in module.source.text or computation.is_synthetic


def check(text):
    with suppress(HloError):
        for module in modules(text):
            look_at_everything(module)


@pytest.mark.parametrize("text", [PRINTED, WRITTEN], ids=["printed", "written"])
def test_cut_off_anywhere(text):
    assert [problems(module) for module in modules(text)] == [()] * len(modules(text)), "whole, it has no problem"
    for end in range(0, len(text), 7 if os.environ.get("JAXPROF_LONG") else 41):
        check(text[:end])
        check(text[end:])


def seconds(text):
    """The CPU time in which a text is read and looked at."""
    start = time.process_time()
    check(text)
    return time.process_time() - start


@functools.cache
def seconds_of_sound_lines():
    """What this machine takes for as many lines without a fault."""
    lines = "".join(f"  a{number} = f32[] add(p, p)\n" for number in range(TIMES))
    return min(seconds(f"{HEAD}{lines}}}\n") for _ in range(3))


@pytest.mark.parametrize("name", worst_texts(1))
def test_time_is_linear(name):
    assert seconds(WORST()[name]) < MOST * seconds_of_sound_lines()


LEVELS = 3000
_FUSION, _CALL = "fusion(%p), kind=kLoop, calls=", "call(%p), to_apply="


def nested(levels, calling):
    """A negation in a computation that a computation calls, and so on."""
    computations = ["%c0 (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n  ROOT %r = f32[8] negate(%p)\n}\n"]
    for level in range(1, levels + 1):
        head = "ENTRY %main" if level == levels else f"%c{level}"
        root = f"  ROOT %r = f32[8] {calling}%c{level - 1}"
        computations.append(f"{head} (p: f32[8]) -> f32[8] {{\n  %p = f32[8] parameter(0)\n{root}\n}}\n")
    return "HloModule m, is_scheduled=true\n\n" + "\n".join(computations)


@pytest.mark.parametrize("calling", [_FUSION, _CALL], ids=["fusions", "calls"])
def test_every_analysis_ends(calling):
    (module,) = modules(nested(LEVELS, calling))
    assert len(kernels(module)) <= LEVELS
    barriers(module), findings(module), totals(module)


@pytest.mark.parametrize(("levels", "opaque"), [(DEEPEST // 2, 0), (LEVELS, 1)])
def test_what_is_too_deep_makes_the_cost_a_lower_bound(levels, opaque):
    (module,) = modules(nested(levels, _FUSION))
    cost = CostModel().computation(module.entry)
    assert (cost.opaque, cost.flops) == (opaque, 0.0 if opaque else 8.0)
