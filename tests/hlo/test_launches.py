"""What a GPU's runtime launches for an instruction, as XLA's thunk sequence beside a dump says."""

import pytest

from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.launches import Launches, launches, with_launches
from jaxprof.hlo.open.paths import modules_at
from jaxprof.hlo.read import parse

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
