"""Each text is parsed once in a process, and no module outlives its use for long."""

from __future__ import annotations

import gc
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from weakref import ref

import pytest

import jaxprof
from jaxprof.errors import HloError
from jaxprof.hlo.model import Module
from jaxprof.hlo.open import parsed
from jaxprof.hlo.open.parsed import ParsedTexts
from jaxprof.hlo.read import parse


def text(name: str = "m") -> str:
    return f"HloModule {name}\n\nENTRY e {{\n  ROOT p = f32[] parameter(0)\n}}\n"


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed, each time that one is."""
    found: list[str] = []

    def count(text: str) -> list[Module]:
        found.append(text)
        return real(text)

    real = parse.modules
    monkeypatch.setattr(parse, "modules", count)
    return found


def test_equal_texts_are_parsed_once(parses: list[str]) -> None:
    texts = ParsedTexts()
    first, again = texts.modules(text()), texts.modules("".join(list(text())))
    assert first[0] is again[0]
    assert texts.modules(text("other"))[0].name == "other"
    assert parses == [text(), text("other")]


def test_all_modules_of_a_text_are_there_as_long_as_one_of_them_is_held() -> None:
    texts = ParsedTexts(0)
    second = texts.modules(text("a") + text("b"))[1]
    texts.release()
    gc.collect()
    assert texts.modules(text("a") + text("b"))[1] is second
    assert [one.name for one in second.siblings] == ["a", "b"]


def test_threads_that_want_one_text_at_once_get_one_module(parses: list[str]) -> None:
    texts, together = ParsedTexts(), Barrier(8)

    def take(_: int) -> Module:
        together.wait()
        return texts.modules(text())[0]

    with ThreadPoolExecutor(8) as pool:
        found = set(map(id, pool.map(take, range(8))))
    assert (len(found), len(parses)) == (1, 1)


def test_a_text_that_is_no_hlo_is_refused_each_time(parses: list[str]) -> None:
    texts = ParsedTexts()
    for _ in range(2):
        with pytest.raises(HloError):
            texts.modules("no HLO")
    assert len(parses) == 2


def gone(module: ref[Module]) -> bool:
    gc.collect()
    return module() is None


def test_above_the_budget_the_latest_alone_is_kept_and_only_until_another_is_wanted() -> None:
    texts = ParsedTexts(10)
    large = ref(texts.modules(text("large"))[0])
    assert not gone(large), "a report asks twice in a row, and holds nothing meanwhile"
    texts.modules(text("next"))
    assert gone(large)


def test_within_the_budget_modules_are_kept_the_latest_of_them() -> None:
    texts = ParsedTexts(2 * len(text("a")))
    first, second = ref(texts.modules(text("a"))[0]), ref(texts.modules(text("b"))[0])
    texts.modules(text("a"))
    texts.modules(text("c"))
    assert not gone(first)
    assert gone(second)


def test_what_is_released_is_freed_unless_somebody_holds_it(parses: list[str]) -> None:
    texts = ParsedTexts()
    held, dropped = texts.modules(text("held"))[0], ref(texts.modules(text("dropped"))[0])
    texts.release()
    assert gone(dropped)
    assert texts.modules(text("held"))[0] is held
    assert len(parses) == 2


def test_work_on_a_module_is_done_once() -> None:
    module = parsed.modules(text("once"))[0]
    done: list[str] = []

    def work(module: Module) -> None:
        done.append(module.name)

    assert module.once(work) is module.once(work) is None
    assert done == ["once"]


def test_whoever_shows_hlo_goes_through_the_one_parse() -> None:
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
