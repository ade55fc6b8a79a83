"""What stands behind the HLO screen: folds, searches, places, rows of the table, programs of files, exports."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.errors import FileRefusedError, StorageError
from jaxprof.hlo.analysis import Place, device, kernels, tree
from jaxprof.hlo.parse import module
from jaxprof.hlo.places import Spot, without_comments, without_locations
from jaxprof.tui.programs.export import HEADER, kernel_graph, kernels_csv, write
from jaxprof.tui.programs.folds import Folds
from jaxprof.tui.programs.opened import Opened, open_program, read_stage
from jaxprof.tui.programs.program import Program, programs_in, programs_of
from jaxprof.tui.programs.ranking import Ranked, filtered, grouped, ordered, rank
from jaxprof.tui.programs.search import Hits, compiled, matches, pieces
from jaxprof.tui.programs.source_file import excerpt
from jaxprof.tui.widgets.kernel_detail import branches
from tui.hlo_texts import FILE, HLO, JAXPR, STABLEHLO, program_session

MODULE = module(HLO)
KERNELS = kernels(MODULE)


def opened(program: Program) -> Opened:
    found = Opened(program)
    parts: list[str] = []
    open_program(found, parts.append, lambda: False)
    assert parts[-1] == "over"
    return found


# -- folds ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_folds_show_each_line_in_one_row(lengths: list[tuple[int, int]]) -> None:
    blocks, at = [], 0
    for gap, length in lengths:
        blocks.append((at + gap, at + gap + length))
        at += gap + length + 1
    folds = Folds(blocks)
    hidden = {line for first, last in folds.blocks for line in range(first + 1, last + 1)}
    shown = [line for line in range(at + 3) if line not in hidden]
    assert folds.hidden == len(hidden)
    assert [folds.line(row) for row in range(len(shown))] == shown
    assert [folds.row(line) for line in shown] == list(range(len(shown)))
    for first, last in folds.blocks:
        assert {folds.row(line) for line in range(first, last + 1)} == {folds.row(first)}
        assert folds.block(last) == (first, last)
        assert first in folds


def test_a_fold_swallows_those_inside_it() -> None:
    assert Folds([(2, 4), (8, 9)]).folded((1, 6)).blocks == ((1, 6), (8, 9))


# -- searching --------------------------------------------------------------------------------------------------------


@given(st.text("ab\n", max_size=300), st.integers(0, 300))
def test_pieces_cover_the_text_once_and_end_with_lines(text: str, start: int) -> None:
    start = min(start, len(text))
    found = list(pieces(text, start))
    covered = sorted(found)
    assert "".join(text[begin:end] for begin, end in covered) == text
    hits = Hits(compiled("ab"), start)
    for piece in found:
        hits.take(matches(text, hits.pattern, piece))
    hits.finish()
    split = 1 if text[max(0, start - 1) : start + 1] == "ab" and start else 0
    assert len(hits.offsets) == len(re.findall("ab", text)) - split


def test_the_next_match_is_behind_the_place_and_goes_round() -> None:
    hits = Hits(compiled("a"), 0)
    hits.take([3, 7, 11])
    hits.finish()
    assert [hits.following(at, 1) for at in (0, 3, 8, 11)] == [0, 1, 2, 0]
    assert [hits.following(at, -1) for at in (0, 3, 8, 12)] == [2, 2, 1, 2]
    assert hits.words(1) == "2 of 3"


# -- places -----------------------------------------------------------------------------------------------------------


def test_stablehlo_loses_its_locations_and_keeps_their_meaning() -> None:
    text, places = without_locations(STABLEHLO)
    assert "loc(" not in text
    lines = text.split("\n")
    tanh = next(number for number, line in enumerate(lines) if "tanh" in line)
    assert lines[tanh] == "    %1 = stablehlo.tanh %0 : tensor<256x512xf32>"
    assert places.of(tanh) == Spot(Place(FILE, 11), "jit(loss)/jvp(attn)/tanh")
    assert lines[1].startswith("  func.func public @main(%arg0: tensor<256x512xf32>, %arg1: tensor<512x512xf32>)")


def test_a_jaxpr_loses_its_comments_and_keeps_their_meaning() -> None:
    text, places = without_comments(JAXPR)
    lines = text.split("\n")
    assert "#" not in text
    assert lines[1] == "    c:f32[256,512] = dot_general["
    assert places.of(1) == Spot(Place(FILE, 10), "jvp(attn)/dot_general")
    assert lines[5] == "    d:f32[256,512] = tanh c"
    assert places.of(5) == Spot(Place(FILE, 11), "jvp(attn)/tanh")


@pytest.mark.parametrize("strip", [without_locations, without_comments])
def test_a_text_without_places_comes_back_as_it_is(strip: object) -> None:
    text = "module @m {\n  %0 = x.y %1\n}"
    assert callable(strip)
    assert strip(text)[0] == text


def test_a_line_of_one_stage_leads_to_the_same_operation_in_the_others() -> None:
    found = opened(programs_of(program_session(hlo_before=HLO))[0])
    hlo, jaxpr, stablehlo = (found.stages[name] for name in ("hlo", "jaxpr", "stablehlo"))
    line = found.kernel_line("main.9", "dot.1")
    assert line is not None
    spot = hlo.places.of(line)
    assert spot == Spot(Place(FILE, 10), "jit(loss)/jvp(attn)/dot_general")
    assert [jaxpr.document.line(n).strip() for n in jaxpr.places.lines(spot)] == ["c:f32[256,512] = dot_general["]
    assert ["dot_general" in stablehlo.document.line(n) for n in stablehlo.places.lines(spot)] == [True]
    back = jaxpr.places.of(jaxpr.places.lines(spot)[0])
    assert back is not None
    assert line in hlo.places.lines(back)
    assert len(hlo.places.lines(back)) == 1, "not the other instructions of that source line"


# -- rows of the table ------------------------------------------------------------------------------------------------


def names(rows: list[Ranked]) -> list[str]:
    return [row.kernel.name for row in rows]


def test_without_a_device_shares_are_of_bytes() -> None:
    ranking = rank(KERNELS, None)
    assert ranking.basis == "bytes"
    assert sum(row.share or 0 for row in ranking.kernels) == pytest.approx(1)
    assert names(ordered(ranking.kernels, "share"))[0] == "dot.1"


def test_with_a_device_shares_are_of_least_time_and_measured_time_comes_first() -> None:
    assert rank(KERNELS, device("h100")).basis == "least"
    measured = rank(KERNELS, device("h100"), {"reduce.1": 3e-6, "dot.1": 1e-6})
    assert measured.basis == "measured"
    assert names(ordered(measured.kernels, "share")) == ["reduce.1", "dot.1", "tanh_fusion", "grad_fusion"]
    assert [row.share for row in ordered(measured.kernels, "share")][2:] == [None, None], "unknown is not 0"
    assert names(ordered(measured.kernels, "share", turned=True))[:2] == ["dot.1", "reduce.1"], "unknown stays last"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kind:gemm", ["dot.1"]),
        ("scope:transpose", ["grad_fusion"]),
        ("file:model.py:20", ["reduce.1"]),
        ("name:fusion scope:attn", ["tanh_fusion", "grad_fusion"]),
        ("loop tanh", ["tanh_fusion"]),
        ("nothing", []),
    ],
)
def test_a_filter_looks_everywhere_or_where_it_is_told(text: str, found: list[str]) -> None:
    assert names(filtered(rank(KERNELS, None).kernels, text)) == found


def test_scopes_are_a_tree_with_sums() -> None:
    groups = grouped(rank(KERNELS, None).kernels, "scope")
    assert [group.path for group in groups] == [("attn",), ("(no named scope)",)]
    assert names(groups[0].all) == ["dot.1", "tanh_fusion", "grad_fusion"]
    total = groups[0].total(lambda row: row.kernel.total_bytes)
    assert total == sum(kernel.bytes for kernel in KERNELS if kernel.name != "reduce.1")


def test_forward_and_backward_are_told_apart() -> None:
    groups = {group.path[0]: names(group.all) for group in grouped(rank(KERNELS, None).kernels, "direction")}
    assert groups == {"forward": ["dot.1", "tanh_fusion", "reduce.1"], "backward": ["grad_fusion"]}


def test_an_only_child_stands_under_its_parent_and_not_further_in() -> None:
    fusion = MODULE["main.9"]["grad_fusion"]
    rows = tree(fusion)
    drawn = [f"{prefix}{row.opcode}" for prefix, row in zip(branches(rows), rows, strict=True)]
    assert drawn == ["subtract", "├ parameter", "└ multiply", "  ├ parameter", "  └ parameter"]
    tanh = tree(MODULE["main.9"]["tanh_fusion"])
    assert [f"{p}{row.opcode}" for p, row in zip(branches(tanh), tanh, strict=True)] == [
        "tanh", "← multiply", "← parameter",
    ]  # fmt: skip


# -- programs ---------------------------------------------------------------------------------------------------------


def test_an_unreadable_stage_leaves_the_others() -> None:
    found = opened(programs_of(program_session(hlo="\x00 not HLO"))[0])
    assert "hlo" in found.errors
    assert found.kernels is None
    assert set(found.stages) == {"jaxpr", "stablehlo"}


def test_a_folder_of_dumps_gives_modules_with_both_their_forms(tmp_path: Path) -> None:
    for name in ("before_optimizations", "cpu_after_optimizations", "cpu_after_optimizations-buffer-assignment"):
        (tmp_path / f"module_0001.jit_loss.{name}.txt").write_text(HLO)
    (tmp_path / "module_0003.jit_f.sm_9.0_gpu_after_optimizations.txt").write_text(HLO)
    found = programs_in(tmp_path)
    assert [(program.label, sorted(program.stages)) for program in found] == [
        ("module_0001.jit_loss", ["hlo", "hlo_before"]),
        ("module_0003.jit_f", ["hlo"]),
    ]
    assert [kernel.name for kernel in opened(found[0]).kernels or ()] == [kernel.name for kernel in KERNELS]


def test_each_module_of_a_file_is_a_program(tmp_path: Path) -> None:
    path = tmp_path / "two.hlo"
    path.write_text(HLO + HLO.replace("jit_loss", "jit_other").replace("%dot.1", "%dot.2"))
    first, second = (opened(program) for program in programs_in(path))
    assert [found.program.label for found in (first, second)] == ["jit_loss · two.hlo", "jit_other · two.hlo"]
    assert second.kernels is not None
    assert second.kernels[0].name == "dot.2"
    line = second.kernel_line("main.9", "dot.2")
    assert line is not None
    assert "%dot.2 =" in second.stages["hlo"].document.line(line)


@pytest.mark.parametrize("name", ["absent.hlo", "."])
def test_what_is_no_hlo_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileRefusedError):
        programs_in(tmp_path / name)


def test_stages_of_hlo_have_the_modules_ways() -> None:
    stage, found = read_stage(programs_of(program_session())[0], "hlo")
    assert [one.name for one in found] == ["jit_loss"]
    assert stage.hlo is not None


def test_a_source_file_is_read_only_if_it_is_one(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("a = 1\nb = 2\nc = 3\n")
    assert excerpt(Place(str(path), 2), 1).lines == ((1, "a = 1"), (2, "b = 2"), (3, "c = 3"))
    for bad in ("/dev/zero", str(tmp_path), "/no/such/file", "a\0b"):
        assert excerpt(Place(bad, 1), 1).lines == ()


# -- exports ----------------------------------------------------------------------------------------------------------


def test_the_table_as_csv_has_every_column_and_empty_cells_for_the_unknown() -> None:
    rows = list(csv.DictReader(io.StringIO(kernels_csv(rank(KERNELS, None).kernels))))
    assert tuple(rows[0]) == HEADER
    assert rows[0]["kernel"] == "dot.1"
    assert float(rows[0]["flops"]) == 2 * 256 * 512 * 512
    assert (rows[0]["file"], rows[0]["line"], rows[0]["least_seconds"]) == (FILE, "10", "")


@pytest.mark.parametrize(("form", "start"), [("dot", "digraph"), ("svg", "<svg")])
@pytest.mark.parametrize("what", ["inside", "near"])
def test_a_kernel_is_drawn(form: str, start: str, what: str) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == "grad_fusion")
    text = kernel_graph(MODULE, kernel, what, form)
    assert text.startswith(start)
    assert ("tanh_fusion" if what == "near" else "multiply") in text


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    write(path, "a")
    with pytest.raises(StorageError):
        write(path, "b")
    with pytest.raises(StorageError):
        write(tmp_path / "no" / "x", "b")
    assert path.read_text() == "a"
