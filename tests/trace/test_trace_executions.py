"""How often a program and an op ran: by run ids, by the host's calls, and by what comes again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import host, op, read
from xplane_wire import Event, Line, Plane

from jaxprof.trace.executions import executions_on
from jaxprof.trace.ops import op_executions, op_times

US = 1_000_000


def counts(*lines: Line) -> dict[str, int]:
    return {row.op.name: row.count for row in op_times(read(Plane("/host:CPU", list(lines))))}


class TestOpsOnThreads:
    def test_a_sort_is_a_copy_and_a_sort_and_ran_once_a_call(self) -> None:
        events = []
        for call in range(2):
            at = 100 * call
            events += [op("dot", at, 5, run_id=call + 1), op("sort", at + 5, 1, run_id=call + 1),
                       op("sort", at + 7, 30, run_id=call + 1)]  # fmt: skip
        assert counts(Line("t", events)) == {"dot": 2, "sort": 2}
        row = next(one for one in op_times(read(Plane("/host:CPU", [Line("t", events)]))) if one.op.name == "sort")
        assert (row.median_seconds, row.maximum_seconds) == pytest.approx((31e-6, 31e-6))

    def test_parts_on_several_threads_are_one_execution(self) -> None:
        first = [op("dot", 0, 10, run_id=1), op("dot", 50, 10, run_id=2)]
        second = [op("dot", 2, 10, run_id=1), op("dot", 80, 4, run_id=2)]
        assert counts(Line("a", first), Line("b", second)) == {"dot": 2}

    def test_iterations_of_a_loop_are_executions_of_its_body(self) -> None:
        events = [op("while", 0, 100, run_id=1)]
        for turn in range(4):
            at = 2 + 20 * turn
            events += [op("sort", at, 1, run_id=1), op("sort", at + 2, 9, run_id=1), op("add", at + 12, 1, run_id=1)]
        assert counts(Line("t", events)) == {"while": 1, "sort": 4, "add": 4}

    def test_of_a_loop_with_one_op_every_slice_is_an_iteration(self) -> None:
        events = [op("while", 0, 100, run_id=1), *(op("fusion", 2 + 20 * turn, 9, run_id=1) for turn in range(4))]
        assert counts(Line("t", events)) == {"while": 1, "fusion": 4}

    def test_parts_of_an_iteration_that_overlap_are_one(self) -> None:
        events = [op("while", 0, 100, run_id=1)]
        other = []
        for turn in range(3):
            events += [op("dot", 2 + 20 * turn, 9, run_id=1), op("add", 14 + 20 * turn, 1, run_id=1)]
            other += [op("dot", 4 + 20 * turn, 9, run_id=1)]
        assert counts(Line("a", events), Line("b", other)) == {"while": 1, "dot": 3, "add": 3}

    def test_without_run_ids_every_slice_is_counted(self) -> None:
        assert counts(Line("t", [op("dot", 0, 1), op("dot", 5, 1), op("dot", 9, 1)])) == {"dot": 3}

    def test_equal_run_ids_of_two_programs_are_two_runs(self) -> None:
        events = [op("dot", 0, 5, run_id=3), op("dot", 9, 5, run_id=3, module="jit_g", program=8)]
        rows = op_times(read(Plane("/host:CPU", [Line("t", events)])))
        assert [(row.op.module, row.count) for row in rows] == [("jit_f", 1), ("jit_g", 1)]

    @given(data=st.data())
    def test_numbers_count_up_and_far_times_do_not_matter(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, 12))
        column = st.lists(st.integers(0, 2), min_size=count, max_size=count)
        runs, ops = (np.array(data.draw(column), np.int64) for _ in range(2))
        starts = np.array(data.draw(st.lists(st.integers(0, 50), min_size=count, max_size=count)), np.int64)
        holds = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
        program = np.zeros(count, np.int64)
        near = op_executions(program, runs, ops, starts, starts + 5, holds)
        assert sorted(set(near.tolist())) == list(range(int(near.max()) + 1))
        far = op_executions(program, runs, ops, starts << 55, (starts + 5) << 55, holds)
        assert far.tolist() == near.tolist()


def gpu(kernels: list[Event], *hosts: Line) -> list[tuple[int, int]]:
    """Executions of the program that took the longest: begin and end in microseconds."""
    planes = [Plane("/device:GPU:0", [Line("Stream #1(Kernel)", kernels)]), Plane("/host:CPU", list(hosts))]
    found = executions_on(read(*planes), "gpu:0")[0]
    return list(zip((found.starts // US).tolist(), (found.ends // US).tolist(), strict=True))


class TestProgramsOnGpus:
    @staticmethod
    def calls(count: int) -> list[Event]:
        return [op(name, 100 * call + at, 5) for call in range(count) for name, at in (("a", 0), ("b", 10), ("c", 20))]

    def test_an_execution_ends_where_its_ops_come_again(self) -> None:
        assert gpu(self.calls(3)) == [(0, 25), (100, 125), (200, 225)]

    def test_a_kernel_that_lost_its_op_changes_nothing(self) -> None:
        for lost in range(15):
            kernels = self.calls(5)
            kernels[lost] = host("mystery", kernels[lost].offset // US, 5)
            found = gpu(kernels)
            assert len(found) == 5
            assert all(begin // 100 == end // 100 == number for number, (begin, end) in enumerate(found))

    def test_loops_within_executions(self) -> None:
        kernels = [
            op(name, 200 * call + at, 5)
            for call in range(2)
            for name, at in (("a", 0), ("x", 10), ("y", 20), ("x", 30), ("y", 40), ("x", 50), ("y", 60), ("z", 70))
        ]
        assert gpu(kernels) == [(0, 75), (200, 275)]

    def test_the_calls_of_the_host_tell_executions_of_one_op_apart(self) -> None:
        kernels = [op("gemm", 100 + 10 * n, 5, correlation_id=n) for n in range(6)]
        launches = [host("cuLaunchKernel", 5 + 10 * n, 2, correlation_id=n) for n in range(6)]
        called = [host("PjRtStreamExecutorLoadedExecutable::Execute", 20 * n, 18) for n in range(3)]
        hosts = [Line("Host Threads/7", launches, id=7), Line("python", called, id=7)]
        assert gpu(kernels, *hosts) == [(100, 115), (120, 135), (140, 155)]
