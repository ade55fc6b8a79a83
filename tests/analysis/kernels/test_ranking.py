"""The kernels of a program as rows: weights and shares, order, filters and groups; and what they are on paper."""

from types import SimpleNamespace

import pytest

from golden import figures_text, held_cases
from hlo.kernels.programs import written
from jaxprof.analysis.kernels.ranking import (
    FIGURES,
    GROUPINGS,
    TEXTS,
    Ranking,
    filter_kernels,
    group_kernels,
    needs_origins,
    ranking_on,
    sort_kernels,
)
from jaxprof.cli.commands.hlo import SORTS
from jaxprof.devices.absent import machine_of
from jaxprof.devices.absent.least_time import exchanges, step_time
from jaxprof.hlo.kernels.cost.peaks import device
from jaxprof.hlo.kernels.kernels import Kernel, kernels
from jaxprof.hlo.text.parse import module
from jaxprof.report.kernels import COLUMNS
from tui.hlo_texts import HLO

KERNELS = kernels(module(HLO))
H100 = machine_of(device("h100"))


def times(**seconds):
    """What a capture has of kernels: their self time in one call."""
    more = {"flops_per_second": 1e9, "bytes_per_second": None, "share": None}
    return {name: SimpleNamespace(per_call_seconds=took, **more) for name, took in seconds.items()}


def names(ranking, numbers):
    return [ranking.kernels[number].name for number in numbers]


def sorted_names(ranking, column, *, turned=False):
    return names(ranking, sort_kernels(ranking, range(len(ranking)), column, turned=turned))


def test_basis_of_shares():
    assert (Ranking(KERNELS).basis, Ranking(KERNELS, H100).basis) == ("bytes", "least")
    assert sorted_names(Ranking(KERNELS), "share")[0] == "dot.1"
    assert Ranking(KERNELS, None, times(other=1.0)).basis == "bytes", "names of another program are no measure"
    measured = Ranking(KERNELS, H100, times(**{"reduce.1": 3e-6, "dot.1": 1e-6}))
    assert measured.basis == "measured"
    order = sort_kernels(measured, range(len(measured)), "share")
    assert names(measured, order) == ["reduce.1", "dot.1", "tanh_fusion", "grad_fusion"]
    assert [row.share for row in measured.rows(order)][2:] == [None, None], "unknown is not 0"
    assert measured.share_of(measured.total("weight", order)) == 1.0
    assert measured.share_of(measured.total("weight", order[2:])) is None
    assert sorted_names(measured, "share", turned=True)[:2] == ["dot.1", "reduce.1"], "unknown stays last"


def test_collective_is_bound_by_its_links():
    summed = "all-reduce(x), channel_id=1, replica_groups=[1,8]<=[8], to_apply=add"
    exchange = written(
        f"x = f32[4194304] parameter(0)\nROOT r = f32[4194304] {summed}", "is_scheduled=true, num_partitions=8"
    )
    over, step = exchanges(exchange, H100), step_time(exchange, H100)
    ranking = ranking_on(H100, exchange, kernels(exchange), None)
    row = ranking[0]
    assert row.bound == "links"
    assert row.over == over["main", "r"]
    assert row.least_seconds == step.bound_seconds == pytest.approx(16 * 2**20 / 450e9)
    assert ranking.step == step
    assert ranking_on(H100, exchange, kernels(exchange), times(r=1.0)).step is None  # what was measured says more
    assert ranking_on(None, exchange, kernels(exchange), None)[0].bound == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kind:gemm", ["dot.1"]),
        ("scope:transpose", ["grad_fusion"]),
        ("file:model.py:20", ["reduce.1"]),
        ("name:fusion scope:attn", ["tanh_fusion", "grad_fusion"]),
        ("loop tanh", ["tanh_fusion"]),
        ("kind:", ["dot.1", "tanh_fusion", "grad_fusion", "reduce.1"]),
        ("nothing", []),
    ],
)
def test_a_filter_looks_everywhere_or_where_it_is_told(text, found):
    ranking = Ranking(KERNELS)
    assert sorted(names(ranking, filter_kernels(ranking, text))) == sorted(found)


def test_groups_are_a_tree_with_sums():
    ranking, told = Ranking(KERNELS), {}
    for way in sorted(GROUPINGS.keys() - {"none"}):
        groups = group_kernels(ranking, range(len(ranking)), way)
        lines = [[group.path, names(ranking, group.all), [group.share, group.total("bytes")]] for group in groups]
        assert sum(group.count for group in groups) == len(KERNELS)
        assert all(group.total("least") is None for group in groups), "no device"
        told[way] = figures_text(*lines)
    held_cases("groups_of_kernels.txt", told)


@pytest.mark.parametrize("few", [0, 5_000])
def test_unknown_values_sort_last_in_both_orders(monkeypatch, few):
    monkeypatch.setattr("jaxprof.analysis.kernels.ranking.FEW", few)
    ranking, told = Ranking(KERNELS, H100, times(**{"dot.1": 1e-6, "reduce.1": 2e-6})), {}
    for column in (*SORTS[:2], "measured", *SORTS[2:]):
        told[column] = figures_text(*(sorted_names(ranking, column, turned=turned) for turned in (False, True)))
        assert column in COLUMNS
        assert column in FIGURES or column in TEXTS or column in ("share", "order")
    held_cases("orders_of_kernels.txt", told)


def test_filter_without_origins():
    ranking = Ranking(KERNELS)

    def cheap(text):
        assert needs_origins(text)
        return names(ranking, filter_kernels(ranking, text, by_origins=False))

    assert cheap("tanh") == ["tanh_fusion"]
    assert cheap("scope:attn") == cheap("file:model.py") == cheap("attn") == []
    assert not needs_origins("name:tanh kind:loop")
    assert needs_origins("", "source")
    assert needs_origins("", "share", "scope")
    assert not needs_origins("", "share", "kind")


def test_nothing_is_kept_that_was_read_to_arrange_kernels(monkeypatch):
    """No kernel of many is asked for its own origins: half a million of those would be more than all else."""

    def asked(kernel):
        raise AssertionError(kernel)

    monkeypatch.setattr(Kernel, "origins", property(asked))
    ranking = Ranking(kernels(module(HLO)))
    assert names(ranking, filter_kernels(ranking, "scope:transpose")) == ["grad_fusion"]
    assert names(ranking, sort_kernels(ranking, range(len(ranking)), "source"))[0] == "dot.1"
    for way in sorted(GROUPINGS.keys() - {"none"}):
        group_kernels(ranking, range(len(ranking)), way)
