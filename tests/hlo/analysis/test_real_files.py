# ruff: noqa: E501 - an instruction of HLO is one line
"""The whole analysis over modules of every kind, real and broken: no exception, no endless time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hlo.analysis.programs import written
from hlo.corpus import REAL_FILES
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.barriers import barriers
from jaxprof.hlo.analysis.collectives import collectives
from jaxprof.hlo.analysis.cost.peaks import DEVICES
from jaxprof.hlo.analysis.cost.roofline import roofline
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.fingerprint import Fingerprints, diff
from jaxprof.hlo.analysis.kernels import kernels, totals
from jaxprof.hlo.analysis.tree import tree
from jaxprof.hlo.graph import inside, neighbourhood, to_dot
from jaxprof.hlo.model import Module
from jaxprof.hlo.read.parse import modules

_ALL = sorted(path for path in REAL_FILES.glob("*") if path.suffix in (".hlo", ".txt")) if REAL_FILES.is_dir() else []
_LARGE = 3_200_000
_FILES = [path for path in _ALL if path.stat().st_size < _LARGE]
"""The largest ones have a test of their own."""


def _everything(module: Module, most_trees: int = 40) -> None:
    found = kernels(module)
    assert all(kernel.bytes_read >= 0 and kernel.bytes_written >= 0 for kernel in found)
    assert all(kernel.flops is None or kernel.flops >= 0 for kernel in found)
    assert all(kernel.kind for kernel in found)
    assert totals(module).bytes >= 0
    assert all(barrier.bytes >= 0 for barrier in barriers(module))
    findings(module)
    collectives(module)
    for kernel in found[:most_trees]:
        assert tree(kernel.instruction)
        roofline(kernel, DEVICES["h100"])
    if found:
        to_dot(neighbourhood(module, found[-1]))
        to_dot(inside(module, found[0]))


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.name[-60:])
def test_real_files(path: Path) -> None:
    try:
        found = modules(path.read_text(encoding="utf-8", errors="replace"))
    except JaxprofError:
        return  # some are deliberately no HLO
    for module in found:
        _everything(module)
        if len(module.computations) < 2000:
            assert {difference.status for difference in diff(module, module)} <= {"same"}


_TEXT = """
    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    fused {
      p = f32[8,16]{1,0} parameter(0)
      q = f32[1,16]{1,0} parameter(1)
      i = s32[] parameter(2)
      e = f32[8,16]{1,0} exponential(p)
      k = f32[3,16]{1,0} slice(e), slice={[0:3], [0:16]}
      ROOT u = f32[8,16]{1,0} dynamic-update-slice(p, q, i, i)
    }

    body {
      t = (s32[], f32[8,16]{1,0}) parameter(0)
      i = s32[] get-tuple-element(t), index=0
      x = f32[8,16]{1,0} get-tuple-element(t), index=1
      one = s32[] constant(1)
      n = s32[] add(i, one)
      q = f32[1,16]{1,0} slice(x), slice={[0:1], [0:16]}
      f = f32[8,16]{1,0} fusion(x, q, i), kind=kLoop, calls=fused, metadata={op_name="jit(f)/jvp(a)/exp" stack_frame_id=2}
      ROOT r = (s32[], f32[8,16]{1,0}) tuple(n, f)
    }

    condition {
      t = (s32[], f32[8,16]{1,0}) parameter(0)
      i = s32[] get-tuple-element(t), index=0
      ten = s32[] constant(10)
      ROOT l = pred[] compare(i, ten), direction=LT
    }

    ENTRY main {
      x = f32[8,16]{1,0} parameter(0)
      w = f32[16,4]{1,0} parameter(1)
      z = s32[] constant(0)
      c = f32[] constant(0)
      t = (s32[], f32[8,16]{1,0}) tuple(z, x)
      loop = (s32[], f32[8,16]{1,0}) while(t), condition=condition, body=body
      y = f32[8,16]{1,0} get-tuple-element(loop), index=1
      d = f32[8,4]{1,0} dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      g = (f32[8,4]{1,0}, s8[64]{0}) custom-call(y, w), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}
      v = f32[8,4]{1,0} convolution(y, w), dim_labels=bf_io->bf
      s = f32[8,4]{1,0} sort(d), dimensions={1}, to_apply=add
      o = f32[8,4]{1,0} all-reduce(s), replica_groups={{0,1}}, to_apply=add
      ROOT r = f32[8]{0} reduce(o, c), dimensions={1}, to_apply=add
    }
"""
_LINES = _TEXT.strip().splitlines()
_SLOW = [HealthCheck.too_slow]


def _survives(text: str) -> None:
    try:
        found = modules(f"HloModule broken, is_scheduled=true\n\n{text}")
    except JaxprofError:
        return
    for module in found:
        _everything(module)
        for name in module.computations:
            Fingerprints(module).of(name)


def test_the_sound_text_is_understood_whole() -> None:
    found = {kernel.name: kernel for kernel in kernels(written(_TEXT))}
    assert found["f"].count == 10
    assert all(kernel.flops is not None for kernel in found.values())


@given(cut=st.integers(0, len(_TEXT)))
@settings(suppress_health_check=_SLOW)
def test_text_that_ends_early(cut: int) -> None:
    _survives(_TEXT[:cut])


@given(order=st.permutations(range(len(_LINES))), most=st.integers(1, 6))
@settings(suppress_health_check=_SLOW)
def test_lines_that_changed_places(order: list[int], most: int) -> None:
    lines = list(_LINES)
    for a, b in zip(order[:most], order[-most:], strict=True):
        lines[a], lines[b] = lines[b], lines[a]
    _survives("\n".join(lines))


@given(
    places=st.lists(st.integers(0, len(_TEXT) - 1), min_size=1, max_size=12),
    letters=st.text('0123456789-,={}[]()<>?x_.abf \n"', min_size=12, max_size=12),
)
@settings(suppress_health_check=_SLOW)
def test_letters_that_were_struck(places: list[int], letters: str) -> None:
    text = list(_TEXT)
    for place, letter in zip(places, letters, strict=False):
        text[place] = letter
    _survives("".join(text))
