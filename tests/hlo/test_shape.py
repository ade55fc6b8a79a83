"""Shapes: what is written, what it means, what it occupies. Line numbers without a table of lines. Places in
StableHLO and jaxprs: the text loses them and they keep their meaning. What a GPU's runtime
launches for an instruction, as XLA's thunk sequence beside a dump says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.hlo import source as module
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.hlo.dumped import Launches, launches, with_launches
from jaxprof.hlo.open.paths import modules_at
from jaxprof.hlo.places import LineOrigin, without_comments, without_locations
from jaxprof.hlo.read import parse
from jaxprof.hlo.shape import parse_shape
from jaxprof.hlo.source import Source
from tables import rows
from tui.hlo_texts import FILE, JAXPR, STABLEHLO


def test_what_a_shape_says():
    for text, fact, value in rows("""
        bf16[8,1024]{1,0}               dtype         bf16
        bf16[8,1024]{1,0}               dimensions    (8, 1024)
        bf16[8,1024]{1,0}               bytes         16384
        bf16[8,1024]{1,0}               known         True
        f32[0,7]                        elements      0
        f32[]{:T(128)}                  padded_bytes  512
        s32[2,<=8, 3,?]{3,2,1,0}        dimensions    (2, 8, 3, -1)
        s32[2,<=8, 3,?]{3,2,1,0}        dynamic       (1, 3)
        s32[2,<=8, 3,?]{3,2,1,0}        elements      48
        s32[2,<=8, 3,?]{3,2,1,0}        known         False
        ()                              elements      0
        ()                              is_tuple      True
        s4[3]                           bytes         3
        s4[3]{0:E(4)}                   bytes         2
        u2[9]{0:E(2)}                   bytes         3
        f8e4m3b11fnuz[5]                bytes         5
        c128[2]                         bytes         32
        token[]                         bytes         0
        # 10 rows of 100 in tiles of 8 by 128: 16 rows of 128
        f32[10,100]{1,0:T(8,128)}       padded_bytes  8192
        f32[10,100]{0,1:T(8,128)}       padded_bytes  53248
        (f32[10]{0:T(128)}, f32[3])     padded_bytes  524
    """):
        shape = parse_shape(text)
        assert str(getattr(shape, fact)) == value
        assert str(shape) == text.replace(", 3,", ",3,")


def test_everything_in_a_layout():
    layout = parse_shape("s4[16,256]{1,0:T(*,128)(2,1)L(512)E(4)S(5)}").layout
    assert (layout.minor_to_major, layout.tiles) == ((1, 0), ((None, 128), (2, 1)))
    assert (layout.element_bits, layout.memory_space) == (4, 5)


def test_nested_tuple_with_comments():
    shape = parse_shape("((f32[2]{0:T(8,128)}, /*index=1*/()), token[], opaque[], b(f32[4]))")
    assert [member.dtype for member in shape.tuple_shapes] == ["tuple", "token", "opaque", "buffer"]
    assert [leaf.dtype for leaf in shape.leaves()] == ["f32", "token", "opaque", "f32"]
    assert (shape.bytes, shape.elements) == (8 + 16, 2 + 4)
    assert str(shape) == "((f32[2]{0:T(8,128)}, ()), token[], opaque[], b(f32[4]))"


@pytest.mark.parametrize(
    "text", ["", "f32", "f32[", "f32[x]", "(f32[2]", "(f32[2] s32[])", "f32[2] add", "(" * 5000, "f32[--1]"]
)
def test_what_is_not_a_shape(text):
    with pytest.raises(ValueError, match=r"not a|expected"):
        parse_shape(text)


@given(st.text("ab\n", max_size=300), st.integers(1, 7))
def test_agrees_with_split(text, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        source = Source(text)
        lines = text.split("\n")
        ends_with_break = text.endswith("\n") or not text
        assert source.line_count == len(lines) - ends_with_break
        at = 0
        for number, line in enumerate(lines, start=1):
            assert source.offset(number) == at
            assert source.line(at) == number
            assert source.line(at + len(line)) == number
            at += len(line) + 1
        assert source.offset(len(lines) + 6) == len(text)
        assert source.lines(2, 2) == text.splitlines()[1:3]


def test_stablehlo_loses_its_locations_and_keeps_their_meaning():
    text, places = without_locations(STABLEHLO)
    assert "loc(" not in text
    lines = text.split("\n")
    tanh = next(number for number, line in enumerate(lines) if "tanh" in line)
    assert lines[tanh] == "    %1 = stablehlo.tanh %0 : tensor<256x512xf32>"
    assert places.of(tanh) == LineOrigin(HloSourceLocation(FILE, 11), "jit(loss)/jvp(attn)/tanh")
    assert lines[1].startswith("  func.func public @main(%arg0: tensor<256x512xf32>, %arg1: tensor<512x512xf32>)")


def test_a_jaxpr_loses_its_comments_and_keeps_their_meaning():
    text, places = without_comments(JAXPR)
    lines = text.split("\n")
    assert "#" not in text
    assert lines[1] == "    c:f32[256,512] = dot_general["
    assert places.of(1) == LineOrigin(HloSourceLocation(FILE, 10), "jvp(attn)/dot_general")
    assert lines[5] == "    d:f32[256,512] = tanh c"
    assert places.of(5) == LineOrigin(HloSourceLocation(FILE, 11), "jvp(attn)/tanh")


HLO = """HloModule jit_f, is_scheduled=true

doubled {
  p = f32[4096] parameter(0)
  ROOT d = f32[4096] add(p, p)
}

ENTRY main {
  x = f32[4096] parameter(0)
  loop.1 = f32[4096] fusion(x), kind=kLoop, calls=doubled
  sorted = f32[4096] sort(loop.1), dimensions={0}, to_apply=less
  loop.2 = f32[4096] fusion(sorted), kind=kLoop, calls=doubled
  ROOT out = f32[4096] copy(loop.2)
}
"""
SEQUENCE = """000: kCommandBuffer [source       | next=005 (1)]
    001: kCustomKernel [source | next=002 (1)] loop_1 grid: [32, 1, 1] threads: [128, 1, 1]  shared_memory: 0 bytes
    002: kCopy         [prev=001 (1) | next=003 (1)] kCopy
    003: kCustomKernel [prev=002 (1) | sink] sort_1 grid: [8, 2, 1] threads: [512, 1, 1]  shared_memory: 4096 bytes
004: kWhile        [prev=000 (1) | next=005 (1)]
  body:
    006: kGemm [source | sink]
005: kCustomKernel [prev=004 (1) | sink        ] loop_1 grid: [32, 1, 1] threads: [128, 1, 1]  shared_memory: 0 bytes
"""


def metadata(*named):
    return "".join(
        f'thunk_metadata {{\n  thunk_info {{\n    profile_annotation: "{name}"\n'
        + (f"    thunk_id: {number}\n" if number is not None else "")
        + f'  }}\n  thunk_kind: "{kind}"\n}}\n'
        for name, number, kind in named
    )


METADATA = metadata(("command_buffer_1", None, "kCommandBuffer")) + metadata(
    ("loop.1", 1, "kCustomKernel"),
    ("sorted", 2, "kCopy"),
    ("sorted", 3, "kCustomKernel"),
    ("while.1", 4, "kWhile"),
    ("loop.2", 5, "kCustomKernel"),
    ("product", 6, "kGemm"),
)
EXPECTED = {
    "loop.1": Launches(("CustomKernel",), (32, 1, 1), (128, 1, 1), 0, 1),
    "sorted": Launches(("Copy", "CustomKernel"), (8, 2, 1), (512, 1, 1), 4096, 1),
    "loop.2": Launches(("CustomKernel",), (32, 1, 1), (128, 1, 1), 0, None),
    "product": Launches(("Gemm",), None, None, None, None),
}


def test_each_launch_belongs_to_its_instruction_whatever_kernel_it_shares():
    text = with_launches(HLO, SEQUENCE, METADATA)
    assert launches(parse.module(text)) == EXPECTED, "what holds others launches nothing, and no buffer after its end"
    assert text.startswith(HLO)
    assert all(line.startswith("// ") for line in text[len(HLO) :].splitlines())


@pytest.mark.parametrize("ending", ["thunk_sequence_after_thunk_passes", "thunk_sequence"])
def test_a_dump_is_read_with_its_launches(tmp_path, ending):
    (tmp_path / "module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt").write_text(HLO)
    (tmp_path / f"module_0001.jit_f.{ending}.txt").write_text(SEQUENCE)
    (tmp_path / "module_0001.jit_f.thunk_metadata.txt").write_text(METADATA)
    (stages,) = modules_at(tmp_path)
    by_name = {kernel.name: kernel for kernel in kernels(stages.module())}
    assert by_name["sorted"].launches == EXPECTED["sorted"]
    parts = [by_name[name].launches.parts for name in ("sorted", "loop.2")]
    assert [", ".join(each) for each in parts] == [
        "2 launches (Copy, CustomKernel), 8 × 2 blocks of 512 threads, 4.00 KiB of shared memory, in command buffer 1",
        "1 launch (CustomKernel), 32 blocks of 128 threads",
    ]


@pytest.mark.parametrize(
    ("sequence", "described"),
    [("", METADATA), (SEQUENCE, ""), ("no thunks", "no metadata"), (SEQUENCE, METADATA.replace("thunk_id", "id"))],
)
def test_nothing_is_said_where_one_of_the_two_says_nothing(sequence, described):
    module = parse.module(with_launches(HLO, sequence, described))
    assert launches(module) == {}
    assert all(kernel.launches is None for kernel in kernels(module))


@pytest.mark.parametrize(
    "comment",
    [
        f"grid={'9' * 5000}x1x1 block=1x1x1",
        "grid=x1 block=1x1x1",
        f"grid=1x1x1 block=1x1x1 shared={'9' * 5000}",
        f"buffer={'9' * 5000}",
    ],
)
def test_a_comment_that_is_none_of_ours_says_nothing(comment):
    assert launches(parse.module(f"{HLO}// XLA thunks: sorted: Copy {comment}\n")) == {}
