"""Broken text: an HloError, or a module that is partial and says so; never another exception, never quadratic time.
Modules that nest deeper than Python's stack: every analysis ends, and says where it did not look."""

import functools
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from jaxprof.base.errors import HloError
from jaxprof.findings.hlo import findings
from jaxprof.hlo.kernels.barriers import barriers
from jaxprof.hlo.kernels.cost.model import DEEPEST, CostModel
from jaxprof.hlo.kernels.kernels import kernels, totals
from jaxprof.hlo.kernels.notices import problems
from jaxprof.hlo.text.parse import modules

HEAD = "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n"


def worst_texts(n):
    """Texts that are as bad as can be for a reader: each repeats one unfinished thing `n` times."""
    in_body = {
        "open parentheses": "  a = f32[] add(" * n,
        "lines of open parentheses": "  a = f32[] add((\n" * n,
        "lines of open attributes": "  a = f32[] add(p), x={\n" * n,
        "lines of open strings": '  a = f32[] add(p), x="\n' * n,
        "escaped quotes": '  a = f32[] add(p), x="' + '\\"' * 8 * n + "\n",
        "lines of escaped quotes": '  a = f32[] add(p), x="\\"\n' * n,
        "open comments": "  a = f32[] add(/* p)\n" * n,
        "lines of open comments": "  /* \n" * n,
        "closing braces": "   }\n" * n,
        "headers inside": "  foo {\n" * n,
        "open tuples": "  a = ((((((((((( add(p)\n" * n,
        "deep tuple": "  a = " + "(" * n + "f32[]" + ")" * n + " add(p)\n}",
        "wide tuple": "  a = (" + "f32[2]{0:T(8,128)}, " * n + "f32[]) tuple(p)\n}",
        "deep attribute": "  a = f32[] add(p), x=" + "{" * 5 * n + "}" * 5 * n + "\n}",
        "deep open attribute": "  a = f32[] add(p), x=" + "{" * 5 * n + "\n}",
        "open attribute of brackets": "  a = f32[] add(p), x={" + '{(a)"\\n"/*c*/}' * n + "\n}",
        "lines of short brackets": ("  a = f32[] add(p), x={" + "{a}" * 25 + "; y\n") * (n // 25 + 1),
        "open tuple of layouts": "  a = (" + "f32[2]{0:T(8,128)}, " * n + "\n",
        "strings of open metadata": "  a = f32[] add(p), metadata={" + '"x"' * n + "\n",
        "starred comments": "  a = f32[] add(/*" + "*a" * 5 * n + "\n",
        "spaces": " " * 10 * n + "\nENTRY" + " " * 10 * n + "\n",
        "equals signs": "  a = " * n,
        "one word": "  " + "a" * 10 * n + "\n",
        "ROOT": "  " + "ROOT " * 5 * n + "\n",
        "metadata": "  a = f32[] add(p), metadata={" + 'x="' * n + "}\n",
        "layout": "  a = f32[2]{0:" + "A" * 10 * n + "} add(p)\n}",
        "short forms": "  a = (f32[]) foo-start(\n" * n,
        "short forms on one line": "  a = (f32[]) foo-start(" * n,
        "closed short forms": "  a = ((f32[]), f32[]) foo-start(p)\n" * n,
        "in place": "  a = f32[] reduce(p), to_apply={\n" * n,
        "in place on one line": "  a = f32[] reduce(p), to_apply={ b = f32[] add(p) " * n,
        "closed in place": "  a = f32[] reduce(p), to_apply={ b = f32[] add(p) }\n" * n,
        "literal": "  c = f32[9] constant({" + "(1, 2), " * n + "})\n}",
        "lines of a literal": "  c = f32[9] constant({\n" + "  { 1, 2 },\n" * n + "})\n}",
        "operands": "  a = f32[] tuple(" + "p, " * n + "p)\n}",
        "chain of updates": "  a = f32[] async-update(a)\n" * n,
        "junk": "  x y z\n" * n,
        "per cent signs": "  a = f32[] add(" + "%" * 10 * n + ")\n}",
        "NUL": "\0" * 10 * n,
    }
    outside = {
        "comments": "/* x\n" * n,
        "open headers": "HloModule m\n" + "name (\n" * n,
        "headers on one line": "HloModule m\n" + "name { a = f32[] add(p)\n" * n,
        "line ends": "\n" * 10 * n + "module",
        "modules": "HloModule m, x={\n" * n,
        "modules with commas": "HloModule m,\n" * n,
        "frames": "HloModule m\nFileNames\n"
        + '1 "abc\n' * n
        + "StackFrames\n"
        + "1 {parent_frame_id=2}\n" * n
        + HEAD[12:],
        "titles": "HloModule m\n" + "FileNames\n" * n + HEAD[12:],
        "empty computations": "HloModule m\n" + "".join(f"a{number} {{\n}}\n" for number in range(n)),
        "open threads": "HloModule m\n" + "".join(f'a{number} {{\n}}, execution_thread="x\n' for number in range(n)),
    }
    return {name: HEAD + text for name, text in in_body.items()} | outside


PRINTED = (Path(__file__).parent / "printed.hlo").read_text()
WRITTEN = (Path(__file__).parent / "written.hlo").read_text()
TIMES = 1500
"""How often the worst texts repeat a thing."""
WORST = functools.cache(functools.partial(worst_texts, TIMES))
MOST = 15.0
"""How many times as long as sound lines they may take; the slowest takes 4 times as long."""


def look_at_everything(module):
    _ = module.entry, module.aliases, module.callers, module.text
    lines = [problem.line for problem in problems(module)]
    assert lines == sorted(lines)
    last_line = module.source.line_count
    for computation in module.computations.values():
        _ = computation.root, computation.parameters
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


def nested(levels, calling, times=1):
    """A negation in a computation that a computation calls so many times, and so on."""
    computations = ["%c0 (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n  ROOT %r = f32[8] negate(%p)\n}\n"]
    for level in range(1, levels + 1):
        head = "ENTRY %main" if level == levels else f"%c{level}"
        calls = [f"%r{number} = f32[8] {calling}%c{level - 1}" for number in range(times)]
        body = "\n  ".join([*calls[1:], f"ROOT {calls[0]}"])
        computations.append(f"{head} (p: f32[8]) -> f32[8] {{\n  %p = f32[8] parameter(0)\n  {body}\n}}\n")
    return "HloModule m, is_scheduled=true\n\n" + "\n".join(computations)


@pytest.mark.parametrize("calling", [_FUSION, _CALL], ids=["fusions", "calls"])
def test_every_analysis_ends(calling):
    (module,) = modules(nested(LEVELS, calling))
    assert len(kernels(module)) <= LEVELS
    barriers(module), findings(module), totals(module)


def test_shared_computations_take_linear_time():
    (module,) = modules(nested(60, _CALL, times=2))
    assert [kernel.count for kernel in kernels(module)] == [2**60]
    assert totals(module).flops == 8 * 2**60


@pytest.mark.parametrize(("levels", "opaque"), [(DEEPEST // 2, 0), (LEVELS, 1)])
def test_what_is_too_deep_makes_the_cost_a_lower_bound(levels, opaque):
    (module,) = modules(nested(levels, _FUSION))
    cost = CostModel().computation(module.entry)
    assert (cost.opaque, cost.flops) == (opaque, 0.0 if opaque else 8.0)
