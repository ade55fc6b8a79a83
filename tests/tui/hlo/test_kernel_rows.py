"""The rows of the kernel table: filter, order, groups, and the origins that they wait for."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue

import pytest
from textual.message import Message

from jaxprof.analysis.ranking import Ranking
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.read.parse import module
from jaxprof.tui.hlo import kernels as kernel_rows
from jaxprof.tui.hlo.kernels import Arrangement, KernelRows, OriginsFailed, OriginsRead
from tui.hlo_texts import HLO

KERNELS = kernels(module(HLO))


def names(rows: KernelRows) -> list[str]:
    return [rows.ranking.kernels[number].name for number in rows.numbers]


def shown(post: Callable[[Message], object] = lambda message: None) -> KernelRows:
    rows = KernelRows(post)
    rows.show(Ranking(KERNELS))
    return rows


def test_rows_are_sorted_turned_and_filtered() -> None:
    rows = shown()
    by_share = names(rows)
    assert sorted(by_share) == ["dot.1", "grad_fusion", "reduce.1", "tanh_fusion"]
    rows.sort_by("name")
    assert names(rows) == sorted(by_share)
    rows.sort_by("name")
    assert names(rows) == sorted(by_share, reverse=True), "by the same column again, the other way round"
    changes = rows.changes
    assert rows.set_filter("fusion")
    assert not rows.set_filter("fusion"), "nothing to do for the same words"
    assert (names(rows), rows.hidden, rows.changes) == (["tanh_fusion", "grad_fusion"], 2, changes + 1)
    assert list(rows.keys) == list(rows.numbers)


def test_groups_open_and_close_and_their_kernels_are_indented() -> None:
    rows = shown()
    rows.group_by("kind")
    paths = [key for key in rows.keys if isinstance(key, tuple)]
    assert paths == list(rows.groups)
    assert len(rows.keys) == len(paths) + len(KERNELS)
    assert [rows.depth(at) for at in range(len(rows.keys))] == [int(isinstance(key, int)) for key in rows.keys]
    first = rows.groups[paths[0]]
    rows.turn_group(first)
    assert rows.is_closed(first)
    assert len(rows.keys) == len(paths) + len(KERNELS) - len(first.members)
    assert len(rows.numbers) == len(KERNELS), "a closed group has kernels too"
    rows.turn_groups()
    assert not rows.is_closed(first), "some were closed: all are opened"
    rows.turn_groups()
    assert list(rows.keys) == paths
    rows.group_by("none")
    assert [rows.depth(at) for at in range(len(rows.keys))] == [0] * len(KERNELS)


def test_rows_wait_for_origins_and_are_arranged_once_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.analysis.ranking.FEW", 1)
    posted: Queue[Message] = Queue()
    rows = shown(posted.put)
    before = names(rows)
    rows.group_by("scope")
    assert (rows.arrangement, rows.wanted.grouping, rows.share_read) == (Arrangement(), "scope", 0.0)
    assert names(rows) == before
    assert not rows.take_origins(OriginsRead(KERNELS, 2))
    assert rows.share_read == 0.5
    assert not rows.take_origins(OriginsRead((), 1)), "of another program"
    assert rows.share_read == 0.5
    while not rows.take_origins(read := posted.get(timeout=30)):  # type: ignore[arg-type]
        assert isinstance(read, OriginsRead)
        assert read.origins is None
    assert [*rows.groups] == [("attn",), ("(no named scope)",)]
    assert rows.share_read is None
    rows.set_filter("scope:attn")
    assert sorted(names(rows)) == ["dot.1", "grad_fusion", "tanh_fusion"]


@pytest.mark.defects
def test_without_origins_the_rows_stay_and_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RecursionError("deep")

    monkeypatch.setattr("jaxprof.analysis.ranking.FEW", 1)
    monkeypatch.setattr(kernel_rows, "origin_columns", fail)
    posted: Queue[Message] = Queue()
    rows = shown(posted.put)
    before = names(rows)
    rows.sort_by("source")
    message = posted.get(timeout=30)
    assert isinstance(message, OriginsFailed)
    assert "RecursionError: deep" in message.error.what
    assert not rows.do_without_origins(OriginsFailed((), JaxprofError("of another program", "")))
    assert rows.share_read is not None
    assert rows.do_without_origins(message)
    assert (rows.share_read, rows.wanted, names(rows)) == (None, Arrangement(), before)


def test_nothing_is_posted_about_a_program_that_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    posted: Queue[Message] = Queue()
    reader = kernel_rows.OriginReader(posted.put)
    cancels: Queue[bool] = Queue()

    def read(kernels: object, tell: Callable[[int], object], cancelled: Callable[[], bool]) -> None:
        tell(1)
        reader.stop()
        tell(2)
        cancels.put(cancelled())

    monkeypatch.setattr(kernel_rows, "origin_columns", read)
    reader.read(KERNELS)
    assert cancels.get(timeout=30), "the reading is told to stop"
    message = posted.get_nowait()
    assert isinstance(message, OriginsRead)
    assert message.done == 1
    assert posted.empty()
