"""Quantities and errors as people read them, and texts from outside made safe to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.base import units
from jaxprof.base.errors import JaxprofError, missing_file, system_words, unknown_name
from jaxprof.base.text import columns, safe, safe_lines, shorten, whole_number
from tables import rows

AS_TEXT = {
    units.seconds: {
        None: "-", float("nan"): "-", 0.0: "0 ns", 0.2e-9: "< 1 ns", 22.5e-6: "22.5 µs", 4.37e-3: "4.37 ms",
        0.99996: "1.00 s", 1.61: "1.61 s", 125.0: "2 min 05 s", 4320.0: "1 h 12 min", -0.5: "-500 ms",
        999.96e-6: "1.00 ms",
    },
    units.bytes_: {
        None: "-", 0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 64 << 20: "64.0 MiB", 1000 << 20: "1000 MiB",
    },
    units.growth: {
        0.12: "+12 %", -0.004: "-0.40 %", -9.8e-7: "under 0.001 %", 9.8e-7: "under 0.001 %", -2e-5: "-0.0020 %",
        0.0: "0 %", None: "-",
    },
    units.percent: {
        0.87: "87 %", 0.004: "0.40 %", 9.8e-7: "under 0.001 %", 1.1e-5: "0.0011 %", 0.0: "0 %",
        117.04: "over 10\u202f000 %", 99.0: "9900 %", 0.999: "100 %",
    },
    units.percent_or_less: {
        None: "-", 0: "0 %", 1e-9: "< 0.1 %", 0.00099: "< 0.1 %", 0.001: "0.10 %", 0.5: "50 %", 1: "100 %",
    },
    units.ratio: {
        6.93: "6.9×", 28.4: "28×", 0.456: "0.46×", 0.0012: "0.0012×", 0.000032: "1/31k×", 0.0: "0×",
    },
    units.scaled: {42: "42", 2e6: "2.00 M", 999_499: "999 k", 999_600: "1.00 M", None: "-"},
    units.integer: {1_000_000: "1\u202f000\u202f000"},
    units.value_text: {1000: "1\u202f000", 0.5: "0.5", True: "True", "float32": "float32", None: "-"},
}  # fmt: skip


@pytest.mark.parametrize("unit", AS_TEXT, ids=lambda unit: unit.__name__)
def test_a_quantity_as_text(unit):
    assert {value: unit(value) for value in AS_TEXT[unit]} == AS_TEXT[unit]
    assert units.scaled(812e9, "B/s") == "812 GB/s"


def test_a_ratio_with_its_interval():
    for figures, text in rows("""
        6.9 6.8 7.0                6.9× (6.8-7.0)
        6.884 6.861 6.931          6.88× (6.86-6.93)
        2.0 2.0 2.0                2.00× (2.00-2.00)
        3.2258e-5 3.125e-5 3.3e-5  1/31k× (1/32k-1/30k)
        # Bounds that say nothing have no digits.
        0.55 1e-18 6e28            0.55× (0-∞)
        1.2 0.012 118              1.2× (0.012-118)
        30000 29000 31000          30000× (29000-31000)
        # A bound that is not 1 does not look like 1.
        1.13 1.04 1.22             1.13× (1.04-1.22)
        1.2 1.13 1.27              1.2× (1.1-1.3)
    """):
        assert units.ratio_interval(*map(float, figures.split())) == text
    assert units.ratio_interval(6.9, None, 7.0) == "6.9×"


def test_the_interval_of_a_time_that_says_nothing_has_no_digits():
    assert units.between(0.62e-3, 0.64e-3) == "620 µs to 640 µs"
    assert units.between(1.1e-9, 788.0) == units.between(0.0, 1.0) == "0 to ∞"
    assert units.spread(9.0, 1.1e-9, 788.0) == "0 to ∞"


def test_one_thing_is_not_several():
    assert units.counted(1, "kernel") == "1 kernel"
    assert units.counted(3, "launch") == "3 launches"
    assert units.counted(2, "miss") == "2 misses"
    assert units.counted(12_000, "sample") == "12\u202f000 samples"
    assert units.counted(2, "kernel writes", "kernels write") == "2 kernels write"


def test_how_many_more_names_follow_is_a_number_like_others():
    assert units.and_more(["a", "b"], 2) == "a, b"
    assert units.and_more([*"ab", *range(1234)], 2) == "a, b and 1\u202f234 more"


def test_a_missing_file_names_its_neighbours_or_the_folder(tmp_path):
    (tmp_path / "train.py").touch()
    assert missing_file(tmp_path / "trian.py").hint == "Similar names there: train.py."
    assert missing_file(tmp_path / "zzzzzzzz").hint == f"The folder is {tmp_path}."
    assert missing_file(tmp_path / "models" / "train.py").hint == f"There is no folder {tmp_path / 'models'} either."
    assert missing_file("with\0nul").what == "there is no file with\0nul"


def test_error_text_and_system_words():
    assert system_words(OSError(28, "No space left on device", "/tmp/x")) == "No space left on device"
    assert system_words(OSError("cannot seek")) == "cannot seek"
    assert str(JaxprofError("it failed", "mend it")) == "it failed\nmend it"
    assert "matmul" in unknown_name("workload", "matmull", ["matmul", "selu"]).hint


def test_escape_sequences_are_shown_and_plain_text_is_left_alone():
    for text, shown in {
        "a\x1b[31mred": "a\u241b[31mred", "bell\x07": "bell\u2407", "rtl\u202eevil": "rtl\\u202eevil",
        "csi\x9b1m": "csi\\x9b1m", "selu jit µs ×": "selu jit µs ×",
    }.items():  # fmt: skip
        assert safe(text) == shown
    assert safe_lines("a\r\nb\rc\td") == ["a", "b", "c   d"]
    assert (shorten("matmul", 4), shorten("表表表", 4)) == ("mat…", "表…")


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text):
    shown = safe(text)
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) <= 0x9F for character in shown)


@given(st.text(), st.integers(1, 40))
def test_shorten_keeps_the_width(text, width):
    assert columns(shorten(text, width)) <= width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/me/work/layers/attention.py:188", "…attention.py:188"),
        ("attention_of_the_decoder.py:188", "…e_decoder.py:188"),
        ("/home/me/work/attention.py", "…/work/attention.py"),
        ("jit(step)/jvp(Decoder)/layer_11/dot_general", "jit(step)/j…general"),
        ("args[1][0]['params']['kernel']", "args[1][0][…kernel']"),
        ("bf16[1024,512,512]{2,1,0}", "bf16[1024,512…"),
        ("the loop waits on the host: time.sleep()", "the loop waits…"),
        ("表表表表表表表:12", "…表表:12"),
        ("表表表表表表表表", "表表…表表"),
    ],
)
def test_a_text_keeps_the_end_that_tells_it_apart(text, shown):
    assert shorten(text, columns(shown)) == shown


def test_a_name_is_cut_in_its_middle():
    """At each width that one of these has."""
    name = "multiply_subtract_add_fusion.3"
    for shown in (name, "multiply_subtract…dd_fusion.3", "multiply_su…fusion.3", "multi…on.3", "mul…on.3"):
        assert shorten(name, len(shown)) == shown


@given(st.text(alphabet="abc_.1", max_size=60), st.integers(8, 60))
def test_a_cut_name_fills_its_room(name, width):
    assert columns(shorten(name, width)) == min(len(name), width)


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("9" * 18, 10**18 - 1), ("9" * 5000, None), ("-1", None), ("", None), ("x", None)]
)
def test_a_number_has_no_more_digits_than_python_reads(text, number):
    assert whole_number(text) == number
