# ruff: noqa: E501 - an instruction of HLO is one line
"""What holds of any module, of real ones and of broken ones: it is read whole, or what is missing is said; every analysis
ends; what is computed once for many kernels is what each would have computed itself."""

import random
import sys

import pytest

import mutated
from hlo.agreement import COMPILED_BY_H100, NOT_READ, figures, real_files
from hlo.kernels.programs import attention_text, fused, written
from jaxprof.base.errors import HloError
from jaxprof.findings.hlo import findings
from jaxprof.hlo import files
from jaxprof.hlo.fingerprint import Fingerprints, diff
from jaxprof.hlo.kernels.barriers import barriers
from jaxprof.hlo.kernels.collectives import collectives
from jaxprof.hlo.kernels.cost.peaks import DEVICES, roofline
from jaxprof.hlo.kernels.kernels import kernels, stream, totals
from jaxprof.hlo.kernels.notices import problems
from jaxprof.hlo.text.parse import modules

from .test_origin import assert_columns
from .test_totals import CHAIN, LOOP


def everything(module, most_roofs=40):
    found = kernels(module)
    assert all(kernel.bytes_read >= 0 and kernel.bytes_written >= 0 for kernel in found)
    assert all(kernel.flops is None or kernel.flops >= 0 for kernel in found)
    assert all(kernel.kind for kernel in found)
    assert totals(module).bytes >= 0
    assert all(barrier.bytes >= 0 for barrier in barriers(module))
    findings(module)
    collectives(module)
    assert_columns(found)
    for kernel in found[:most_roofs]:
        roofline(kernel, DEVICES["h100"])


@pytest.mark.parametrize("path", [COMPILED_BY_H100, *real_files()], ids=lambda path: path.name[-60:])
def test_real_files(path, monkeypatch):
    try:
        found = modules(files.read_text(path))
    except HloError:
        return  # some are deliberately no HLO
    for module in found:
        told = [problem for problem in problems(module) if not problem.message.startswith(tuple(NOT_READ))]
        assert told == []
        for computation in module.computations.values():
            for instruction in computation:
                assert instruction.shape.dtype, instruction.text
                assert all(computation.get(name) for name in instruction.operands), instruction.text[:300]
                assert all(module.get(name) for name in instruction.called), instruction.text[:300]
        everything(module)
        if len(module.computations) < 2000:
            assert {difference.status for difference in diff(module, module)} <= {"same"}
    shared = [figures(module) for module in found]
    monkeypatch.setattr(sys.modules[stream.__module__], "alike", lambda instruction: None)
    assert shared == [figures(module) for module in found]


_LIBRARY_CALL = """
    x = f32[8,16]{1,0} parameter(0)
    w = f32[16,4]{1,0} parameter(1)
    g = (f32[8,4]{1,0}, s8[64]{0}) custom-call(x, w), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}
    v = f32[8,4]{1,0} convolution(x, w), dim_labels=bf_io->bf
    s = f32[8,4]{1,0} sort(v), dimensions={1}, to_apply=less
    o = f32[8,4]{1,0} all-reduce(s), replica_groups={{0,1}}, to_apply=add
"""
_WITHOUT_SENSE = """
    x = f32[8,16]{1,0} parameter(0)
    a = f32[8,4]{1,0} convolution(x, x), dim_labels=bf
    b = f32[8,4]{1,0} convolution(x, x), dim_labels=b_io->bf
    c = f32[8,4]{1,0} custom-call(x), custom_call_target="__cudnn$convForward"
    d = f32[8,16]{1,0} dynamic-update-slice(x)
    e = f32[8]{0} get-tuple-element(x), index=7
    loop = (s32[], f32[8]) while(x), condition=less, body=add
"""
_UPDATE = "e = f32[8,16]{1,0} exponential(p0)\nROOT u = f32[8,16]{1,0} dynamic-update-slice(e, p1, p2, p2)"
_TEXTS = (
    written(_LIBRARY_CALL).source.text,
    written(_WITHOUT_SENSE).source.text,
    written(fused(_UPDATE, "f32[8,16]{1,0}", "f32[1,16]{1,0}", "s32[]")).source.text,
    written(attention_text(turns=3)).source.text,
    CHAIN,
    LOOP,
)


@pytest.mark.parametrize("number", range(len(_TEXTS)))
def test_every_analysis_ends_on_a_text_with_faults(number):
    chance = random.Random(number)
    for _ in range(30):
        raw = mutated.with_faults(_TEXTS[number].encode(), chance)
        try:
            found = modules(raw.decode("utf-8", "replace"))
        except HloError:
            continue
        for module in found:
            everything(module)
            for name in module.computations:
                Fingerprints(module).of(name)
