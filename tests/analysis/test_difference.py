from __future__ import annotations

from jaxprof.analysis.difference import FigureDifference, figures, pairs


def test_a_pair_is_made_by_the_best_key_and_says_whether_its_content_is_the_same() -> None:
    found = pairs(["a1", "b1", "c1"], ["b2", "a1", "d1"], [lambda one: one, lambda one: one[0]], lambda one: one)
    assert [(pair.status, pair.before, pair.after, pair.either) for pair in found] == [
        ("changed", "b1", "b2", "b2"),
        ("same", "a1", "a1", "a1"),
        ("new", None, "d1", "d1"),
        ("gone", "c1", None, "c1"),
    ]


def test_what_one_side_has_alone_is_its_whole_part_of_the_difference() -> None:
    found = pairs([1j, 2 + 0j], [3 + 0j], [lambda one: one.imag], lambda one: one)
    assert [pair.part("real") for pair in found] == [1.0, 0.0]
    assert [pair.part("imag") for pair in found] == [0.0, -1.0]


def test_a_figure_that_a_side_does_not_know_does_not_differ() -> None:
    found = figures({"a": 1.0, "b": 2.0}, {"b": 3.0, "c": None}, "second")
    assert [(one.code, one.differs, one.growth) for one in found] == [
        ("a", None, None),
        ("b", True, 0.5),
        ("c", None, None),
    ]
    assert FigureDifference("a", 0.0, 1.0).growth is None
