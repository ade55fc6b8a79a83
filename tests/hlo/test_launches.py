"""What a GPU's runtime launches for an instruction, as XLA's thunk sequence beside a dump says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxprof.facts import recorder
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.launches import Launches, launches, with_launches
from jaxprof.hlo.open.paths import modules_at
from jaxprof.hlo.read import parse
from jaxprof.report.modules import HloProgram, facts_of_program, tree_text

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


def metadata(*named: tuple[str, int, str]) -> str:
    return "".join(
        f'thunk_metadata {{\n  thunk_info {{\n    profile_annotation: "{name}"\n    thunk_id: {number}\n  }}\n'
        f'  thunk_kind: "{kind}"\n}}\n'
        for name, number, kind in named
    )


METADATA = (
    'thunk_metadata {\n  thunk_info {\n    profile_annotation: "command_buffer_1"\n  }\n'
    '  thunk_kind: "kCommandBuffer"\n}\n'
) + metadata(
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


def dump(folder: Path, ending: str) -> Path:
    """A folder as XLA dumps it."""
    (folder / "module_0001.jit_f.sm_9.0a_gpu_after_optimizations.txt").write_text(HLO)
    (folder / f"module_0001.jit_f.{ending}.txt").write_text(SEQUENCE)
    (folder / "module_0001.jit_f.thunk_metadata.txt").write_text(METADATA)
    return folder


def test_each_launch_belongs_to_its_instruction_whatever_kernel_it_shares() -> None:
    module = parse.module(with_launches(HLO, SEQUENCE, METADATA))
    assert launches(module) == EXPECTED, "what holds others launches nothing; after its end no command buffer holds"


@pytest.mark.parametrize("ending", ["thunk_sequence_after_thunk_passes", "thunk_sequence"])
def test_a_dump_is_read_with_its_launches(tmp_path: Path, ending: str) -> None:
    (stages,) = modules_at(dump(tmp_path, ending))
    by_name = {kernel.name: kernel for kernel in kernels(stages.module())}
    assert by_name["sorted"].launches == EXPECTED["sorted"]
    said = (
        "2 launches (Copy, CustomKernel), 8 × 2 blocks of 512 threads, 4.00 KiB of shared memory, in command buffer 1"
    )
    assert said in tree_text(by_name["sorted"])
    assert "1 launch (CustomKernel), 32 blocks of 128 threads" in tree_text(by_name["loop.2"])


def test_kernels_that_differ_in_their_launches_alone_keep_their_own_in_json() -> None:
    program = HloProgram(parse.module(with_launches(HLO, SEQUENCE, METADATA)))
    rows = json.loads(json.dumps(recorder(facts_of_program("kernels"))(program), default=list))["kernels"]
    buffers = {row["name"]: row["launches"]["command_buffer"] for row in rows if "launches" in row}
    assert buffers == {"loop.1": 1, "sorted": 1, "loop.2": None}
    assert "launches" not in next(row for row in rows if row["name"] == "out"), "nothing is known of it"


@pytest.mark.parametrize(
    ("sequence", "described"),
    [("", METADATA), (SEQUENCE, ""), ("no thunks", "no metadata"), (SEQUENCE, METADATA.replace("thunk_id", "id"))],
)
def test_nothing_is_said_where_one_of_the_two_says_nothing(sequence: str, described: str) -> None:
    module = parse.module(with_launches(HLO, sequence, described))
    assert launches(module) == {}
    assert all(kernel.launches is None for kernel in kernels(module))
    assert not any("launch" in line for line in tree_text(kernels(module)[0]))


def test_the_text_stays_what_it_was_but_for_comments() -> None:
    text = with_launches(HLO, SEQUENCE, METADATA)
    assert text.startswith(HLO)
    assert all(line.startswith("// ") for line in text[len(HLO) :].splitlines())


def test_the_lines_of_a_kernel_stand_below_each_other() -> None:
    text = """HloModule m, is_scheduled=true

f {
  p = f32[8]{0} parameter(0)
  s = f32[8]{0} sine(p), metadata={op_name="a" source_file="one.py" source_line=1}
  ROOT e = f32[8]{0} exponential(s), metadata={op_name="b" source_file="two.py" source_line=2}
}

ENTRY main {
  a = f32[8]{0} parameter(0)
  ROOT y = f32[8]{0} fusion(a), kind=kLoop, calls=f
}
"""
    assert tree_text(kernels(parse.module(text))[0])[-2:] == ["from one.py:1", "     two.py:2"]


@pytest.mark.parametrize(
    "comment",
    [
        f"grid={'9' * 5000}x1x1 block=1x1x1",
        "grid=x1 block=1x1x1",
        f"grid=1x1x1 block=1x1x1 shared={'9' * 5000}",
        f"buffer={'9' * 5000}",
    ],
)
def test_a_comment_that_is_none_of_ours_says_nothing(comment: str) -> None:
    assert launches(parse.module(f"{HLO}// XLA thunks: sorted: Copy {comment}\n")) == {}


def test_one_block_and_one_thread_are_one() -> None:
    assert Launches(("CustomKernel",), (1, 1, 1), (1, 1, 1), 0, None).parts[1:] == ["1 block of 1 thread"]
