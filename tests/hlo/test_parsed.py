"""Each text is parsed once in a process, and no module outlives its use for long. Files and folders of HLO: what they
are known by, and the modules and stages in them."""

import gc
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from weakref import ref

import pytest

import jaxprof
from hlo_sources import BEFORE, BOTH_STAGES, DUMPED, FILES, FOLDERS, PROTO, TEXT
from jaxprof.base.errors import FileRefusedError, HloError
from jaxprof.hlo.files import reasons_in
from jaxprof.hlo.paths import holds_hlo, modules_at
from jaxprof.hlo.stages import ParsedTexts
from jaxprof.hlo.text import parse


def text(name="m"):
    return f"HloModule {name}\n\nENTRY e {{\n  ROOT p = f32[] parameter(0)\n}}\n"


@pytest.fixture
def parses(monkeypatch):
    """The texts that are parsed, each time that one is."""
    found = []

    def count(text):
        found.append(text)
        return real(text)

    real = parse.modules
    monkeypatch.setattr(parse, "modules", count)
    return found


def test_equal_texts_are_parsed_once(parses):
    texts = ParsedTexts()
    first, again = texts.modules(text()), texts.modules("".join(list(text())))
    assert first[0] is again[0]
    assert texts.modules(text("other"))[0].name == "other"
    for _ in range(2):
        with pytest.raises(HloError):
            texts.modules("no HLO")
    assert parses == [text(), text("other"), "no HLO", "no HLO"]


def test_threads_that_want_one_text_at_once_get_one_module(parses):
    texts, together = ParsedTexts(), Barrier(8)

    def take(_):
        together.wait()
        return texts.modules(text())[0]

    with ThreadPoolExecutor(8) as pool:
        found = set(map(id, pool.map(take, range(8))))
    assert (len(found), len(parses)) == (1, 1)


def gone(module):
    gc.collect()
    return module() is None


def test_parsed_texts_above_the_budget_keep_the_latest():
    """A report asks twice in a row, and holds nothing meanwhile."""
    texts = ParsedTexts(10)
    large = ref(texts.modules(text("large"))[0])
    assert not gone(large)
    texts.modules(text("next"))
    assert gone(large)


def test_parsed_texts_within_the_budget_are_kept():
    texts = ParsedTexts(2 * len(text("a")))
    first, second = ref(texts.modules(text("a"))[0]), ref(texts.modules(text("b"))[0])
    texts.modules(text("a"))
    texts.modules(text("c"))
    assert not gone(first)
    assert gone(second)
    held = texts.modules(text("c"))[0]
    texts.release()
    assert gone(first)
    assert texts.modules(text("c"))[0] is held


def test_whoever_shows_hlo_goes_through_the_one_parse():
    """A reader beside it would parse a text again, or open what the others do not."""
    source = Path(jaxprof.__file__).parent
    beside = [
        f"{path.relative_to(source)}: {line.strip()}"
        for package in ("analysis", "report", "runner", "tui", "cli", "api")
        for path in (source / package).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bjaxprof\.hlo\.read(\.(parse|files)\b| import .*\b(parse|files)\b)", line)
    ]
    assert beside == []


@pytest.mark.parametrize("kind", FILES | FOLDERS)
def test_every_file_and_folder_has_its_module_in_its_stages(kind, tmp_path):
    path = (FILES | FOLDERS)[kind](tmp_path)
    assert holds_hlo(path)
    (found,) = modules_at(path)
    assert found.module().name == "jit_g"
    assert "%exp = " in found.text("hlo")
    assert set(found.stages) == ({"hlo_before", "hlo"} if kind in BOTH_STAGES else {"hlo"})
    if kind in BOTH_STAGES:
        assert (found.text("hlo_before"), found.label) == (BEFORE, DUMPED)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("notes.txt", b"what I tried\n"),
        ("trace.json", b'[{"args": {"name": "HloModule jit_g"}}]'),
        ("host.xplane.pb", PROTO),
        ("host.bin", b"\x0a\x09\x12\x07/device\x08\x01"),
        ("m.txt.gz", b"\x1f\x8b\x08broken"),
        ("empty.txt", b""),
    ],
)
def test_what_does_not_look_like_hlo(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    assert not holds_hlo(tmp_path / name)
    assert not holds_hlo(tmp_path)
    with pytest.raises(FileRefusedError, match="no HLO in the folder"):
        modules_at(tmp_path)


def test_a_dump_says_its_device_and_why_xla_did_not_fuse(tmp_path):
    name = "module_0001.jit_f"
    text = "HloModule jit_f, is_scheduled=true\n\nENTRY main {\n  ROOT x = f32[8] parameter(0)\n}\n"
    (tmp_path / f"{name}.sm_9.0a_gpu_after_optimizations.txt").write_text(text)
    (plain,) = modules_at(tmp_path)
    assert (plain.device, reasons_in(plain.module())) == ("", {})
    (tmp_path / f"{name}.gpu_target_config.pbtxt").write_text('device_description_str: "NVIDIA H100 80GB HBM3"\n')
    (tmp_path / f"{name}.priority_fusion_dump.txt").write_text(
        'fusion_steps {\n  producer_ineligible {\n    producer_name: "y"\n    reason: "no tiling"\n  }\n}\n'
    )
    (found,) = modules_at(tmp_path)
    assert (found.device, reasons_in(found.module())) == ("NVIDIA H100 80GB HBM3", {"y": "no tiling"})


_FUSED = """HloModule jit_f, is_scheduled=true

%c (p: f32[8]) -> f32[8] {{
  %p = f32[8] parameter(0)
  ROOT %n = f32[8] {operation}(%p)
}}

%d (p: f32[8]) -> f32[8] {{
  %p = f32[8] parameter(0)
  ROOT %n = f32[8] sine(%p)
}}

ENTRY main {{
  %x = f32[8] parameter(0)
  %{first} = f32[8] fusion(%x), kind=kLoop, calls=%c
  ROOT %{second} = f32[8] fusion(%{first}), kind=kLoop, calls=%d
}}
"""


@pytest.mark.parametrize(
    ("operation", "reasons"),
    [
        ("negate", {"loop_negate": "no tiling"}),
        ("sine", {}),  # which of both it was is not known
        ("cosine", {}),  # no kernel computes what it did
    ],
)
def test_a_reason_goes_to_the_kernel_that_has_another_name_now(operation, reasons, tmp_path):
    name = "module_0001.jit_f"
    final = _FUSED.format(operation=operation, first="loop_negate", second="loop_sine")
    (tmp_path / f"{name}.sm_9.0a_gpu_after_optimizations.txt").write_text(final)
    after = _FUSED.format(operation="sine" if operation == "sine" else "negate", first="fusion.1", second="fusion.2")
    (tmp_path / f"{name}.0001.fusion.after_priority-fusion.before_cse.txt").write_text(after)
    (tmp_path / f"{name}.priority_fusion_dump.txt").write_text(
        'fusion_steps {\n  producer_ineligible {\n    producer_name: "fusion.1"\n    reason: "no tiling"\n  }\n}\n'
    )
    (found,) = modules_at(tmp_path)
    assert reasons_in(found.module()) == reasons


def test_files_beside_a_dump_that_xla_does_not_write(tmp_path):
    (tmp_path / f"{DUMPED}.cpu_after_optimizations.txt").write_text(TEXT)
    (tmp_path / f"{DUMPED}.0006.simplification.after_dce.before_cse.txt").write_text(TEXT)
    (tmp_path / f"{DUMPED}.0006.simplification.after_dce.before_cse.hlo.pb").write_bytes(PROTO)
    (tmp_path / "mine.hlo").write_text(TEXT)
    assert [found.label for found in modules_at(tmp_path)] == ["mine", DUMPED]


@pytest.mark.parametrize("name", ["gemma3_1b.jit___call__", "module_0003.jit_f.1"])
@pytest.mark.parametrize("after", ["cpu_after_optimizations", "sm_9.0a_gpu_after_optimizations", "after_optimizations"])
def test_all_forms_of_a_module_are_one_whatever_its_name(name, after, tmp_path):
    (tmp_path / f"{name}.before_optimizations.txt").write_text(BEFORE)
    (alone,) = modules_at(tmp_path)
    assert alone.text("hlo") == alone.text("hlo_before") == BEFORE
    (tmp_path / f"{name}.{after}.txt").write_text(TEXT)
    (tmp_path / f"{name}.{after}.hlo.pb").write_bytes(b"broken, and not needed beside the text")
    (found,) = modules_at(tmp_path)
    assert found.label == name
    assert found.text("hlo") == TEXT
    assert found.text("hlo_before") == BEFORE


def test_modules_of_a_file_and_of_a_folder(tmp_path):
    path = tmp_path / "two.hlo"
    path.write_text("not yet")
    (later,) = modules_at(tmp_path)
    with pytest.raises(HloError, match=str(path)):
        later.modules()
    path.write_text(TEXT + "\n" + TEXT.replace("jit_g", "jit_h"))
    assert [(one.label, one.module().name) for one in later.each()] == [("jit_g", "jit_g"), ("jit_h", "jit_h")]
    first, second = modules_at(path)
    assert (first.title, second.title) == ("jit_g · two.hlo", "jit_h · two.hlo")
    assert second.text("hlo").startswith("HloModule jit_h")
    assert "jit_g" not in second.text("hlo")
    assert first.modules()[1] is second.module()
