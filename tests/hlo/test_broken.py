"""Broken text: an HloError, or a module that is partial and says so; never another exception, never quadratic time."""

from __future__ import annotations

import functools
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

import mutated
from jaxprof.errors import HloError
from jaxprof.hlo.analysis.notices import problems
from jaxprof.hlo.model import Module
from jaxprof.hlo.read import files
from jaxprof.hlo.read.parse import modules

from .broken import worst_texts

PRINTED = (Path(__file__).parent / "printed.hlo").read_text()
WRITTEN = (Path(__file__).parent / "written.hlo").read_text()
LONGEST_SECONDS = 2.0
WORST = functools.cache(functools.partial(worst_texts, 3000))


def look_at_everything(module: Module) -> None:
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


def check(text: str) -> None:
    with suppress(HloError):
        for module in modules(text):
            look_at_everything(module)


@pytest.mark.parametrize("text", [PRINTED, WRITTEN], ids=["printed", "written"])
def test_cut_off_anywhere(text):
    assert [problems(module) for module in modules(text)] == [()] * len(modules(text)), "whole, it has no problem"
    for end in range(0, len(text), 7 if os.environ.get("JAXPROF_LONG") else 41):
        check(text[:end])
        check(text[end:])


@pytest.mark.parametrize("number", range(40))
def test_faults_of_all_kinds(number):
    with suppress(HloError):
        for module in files.from_bytes(mutated.mutated("hlo", number)):
            look_at_everything(module)


@pytest.mark.parametrize("name", worst_texts(1))
def test_time_is_linear(name):
    text = WORST()[name]
    start = time.process_time()
    check(text)
    assert time.process_time() - start < LONGEST_SECONDS
