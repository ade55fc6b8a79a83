"""Kernels without the name of an HLO op, joined with the op that launched them.

Library kernels (cuBLAS, cuDNN, Tensile) and kernels of older profilers may carry none. The launch on the host that has
the same correlation id names the op: that is certain. Without one, a kernel between two kernels of one op is taken for
that op's as well, and marked: it is a guess.
"""

from __future__ import annotations

import numpy as np

from jaxprof.trace.launch import copies_of
from jaxprof.trace.model import ABSENT, NO_OP, Lane, Trace


def match_kernels(trace: Trace) -> None:
    """Fills `op_of` of the device's streams where it can be found, and `guessed` where it is a guess."""
    correlations = [
        (lane.correlation[rows], lane.op_of[rows])
        for lane in trace.lanes
        if lane.kind == "host" and lane.correlation is not None
        for rows in [np.flatnonzero((lane.correlation != ABSENT) & (lane.op_of != NO_OP))]
    ]
    keys = np.concatenate([np.zeros(0, np.int64), *(key for key, _ in correlations)])
    ops = np.concatenate([np.zeros(0, np.int64), *(op for _, op in correlations)])
    order = np.argsort(keys, kind="stable")
    keys, ops = keys[order], ops[order]
    for lane in trace.lanes:
        if lane.kind == "stream" and (lane.op_of == NO_OP).any():
            if len(keys) and lane.correlation is not None:
                missing = np.flatnonzero((lane.op_of == NO_OP) & (lane.correlation != ABSENT))
                at = np.minimum(np.searchsorted(keys, lane.correlation[missing]), len(keys) - 1)
                same = keys[at] == lane.correlation[missing]
                lane.op_of[missing[same]] = ops[at[same]]
            _between(lane)


def _between(lane: Lane) -> None:
    """Kernels between two of one op: the op's, by a guess."""
    order = np.argsort(lane.starts, kind="stable")
    op = lane.op_of[order]
    known = np.flatnonzero(op != NO_OP)
    missing = np.flatnonzero((op == NO_OP) & ~copies_of(lane)[order])
    if not len(known) or not len(missing):
        return
    after = np.searchsorted(known, missing)
    inside = (after > 0) & (after < len(known))
    missing, after = missing[inside], after[inside]
    before_op, after_op = op[known[after - 1]], op[known[after]]
    same = before_op == after_op
    rows = order[missing[same]]
    if len(rows):
        lane.op_of[rows] = before_op[same]
        lane.guessed = np.zeros(len(lane), np.bool_)
        lane.guessed[rows] = True
