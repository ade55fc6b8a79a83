"""Findings about loops and batches: a state that is moved whole for a change of a few elements, branches that all run,
and elements of a batch that wait for the slowest.

Each has two witnesses: the structure that JAX and XLA leave (a select between the former and the new state, an addition
of zeros, the index that chooses among the branches of a `cond`, an any-reduction in a condition), and the cost, counted
from shapes and trip counts, as a share of the module's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from jaxprof.base.grouping import grouped
from jaxprof.base.units import bytes_, integer, percent, scaled
from jaxprof.events import SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.compute import TINY_BYTES
from jaxprof.findings.hlo.scene import LARGE_BYTES, Scene, check, lines_of, module_finding, operations, total
from jaxprof.hlo.kernels import FREE
from jaxprof.hlo.kernels.cost.model import CostModel
from jaxprof.hlo.kernels.dataflow import Value, origin_through, resolve, sources
from jaxprof.hlo.kernels.kernels import Kernel
from jaxprof.hlo.kernels.kinds import instructions_in, values_of
from jaxprof.hlo.source import Frame, own_frame
from jaxprof.hlo.text.model import Computation, Instruction

_ENTERED = frozenset({"fusion", "call"})
_IN_ORDER = frozenset({"bitcast", "reshape", "copy", "copy-start", "convert"})
"""Operations of one operand that leave each element at its index."""
_REPEATED = _IN_ORDER | {"broadcast"}
_SHARE = 0.1
"""Share of the module's cost from which a loop or a branch is worth reporting."""
_SHARE_OF_ITERATION = 0.02
"""The same of one iteration of a loop of unknown length."""
_TIMES_NEEDED = 4
"""Smallest ratio of the bytes that move to those that change, and of an array to what changes of it."""
_SMALLEST = 1 << 10
"""Bytes of a state below which an iteration takes no longer if it moves all of them; on a GPU `TINY_BYTES`."""
_DEEPEST = 64


# -- a loop that moves its whole state ---------------------------------------------------------------------------------


class _Difference:
    """In how many elements arrays may differ from a former one in the state of a loop."""

    def __init__(self, body: Computation, former: Set[tuple[int, ...]]) -> None:
        self._body = body
        self._former = former
        self._known: dict[object, int | None] = {}
        self.between: list[Value] = []
        """The operations between the former array and those that were asked for."""

    def elements(self, value: Value | None, depth: int = 0) -> int | None:
        """Return the most elements that may differ; None if all may."""
        if value is None or depth > _DEEPEST:
            return None
        if value.opcode == "parameter" and value.instruction.computation is self._body:
            return 0 if value.member in self._former else None
        if value.key not in self._known:
            self._known[value.key] = None
            self._known[value.key] = differing = self._after(value, depth + 1)
            if differing is not None:
                self.between.append(value)
        return self._known[value.key]

    def _after(self, value: Value, depth: int) -> int | None:
        opcode, operands = value.opcode, sources(value, _ENTERED)
        if not operands or len(operands) < len(value.instruction.operands):
            return None
        if opcode in _IN_ORDER:
            return self.elements(operands[0], depth)
        if opcode in ("dynamic-update-slice", "scatter"):
            before, update = self.elements(operands[0], depth), operands[1 if opcode == "dynamic-update-slice" else -1]
            return None if before is None else before + update.elements
        if opcode == "select":
            one, other = (self.elements(operand, depth) for operand in operands[1:])
            return None if one is None or other is None else one + other
        return None


class _State:
    """Arrays in a loop's state that an iteration changes in a few elements, and the operations on the way from
    the former array to the new one."""

    def __init__(self, body: Computation, root: Instruction) -> None:
        self.between: list[tuple[Value, int, int]] = []
        """Operations on the way, each with the bytes of such an array, and those that have to be read and written."""
        leaves = root.shape.tuple_shapes
        members = [(number,) for number, leaf in enumerate(leaves) if leaf.is_array and leaf.elements > 1]
        new = {member: resolve(Value(root, member), _ENTERED) for member in members}
        changes = {member: self._add(_Difference(body, {member}), new[member]) for member in members}
        changing = {member: needed for member, needed in changes.items() if needed}
        for value in (new[member] for member in members if changing):
            # The former array goes on under another name, or a gradient keeps it beside all former ones.
            stored = origin_through(value, _IN_ORDER, _ENTERED)
            kept = value
            if stored is not None and stored.opcode == "dynamic-update-slice":
                kept = next(iter(sources(stored, _ENTERED)[1:]), None)
                if kept is None or "jvp(" not in stored.instruction.metadata.op_name:
                    continue
            like = {member for member in changing if kept and leaves[member[0]].elements == kept.elements}
            self._add(_Difference(body, like), kept, stored, max((changing[member] for member in like), default=0))

    def _add(self, difference: _Difference, value: Value | None, stored: Value | None = None, needed: int = 0) -> int:
        """Add the operations before a value that differs in a few elements, and the one that stores it; return the
        bytes that have to be read and written."""
        changed = difference.elements(value)
        if value is None or changed is None or changed * _TIMES_NEEDED > value.elements:
            return 0
        needed = max(needed, 2 * changed * value.shape.bytes // value.elements)
        self.between += ((each, value.shape.bytes, needed) for each in (*difference.between, *filter(None, [stored])))
        return needed

    def traffic_of(self, scene: Scene) -> tuple[dict[Kernel, int], int]:
        """Return the bytes of whole arrays that one execution of a kernel moves, and those that it has to. An update in
        place moves no whole array."""
        arrays: dict[int, tuple[int, int]] = {}
        for value, *sizes in self.between:
            instruction = id(_kernel_of(value))
            arrays[instruction] = min((sizes[0], sizes[1]), arrays.get(instruction, (sizes[0], sizes[1])))
        moved: dict[Kernel, int] = {}
        most = 0
        for kernel in scene.kernels:
            size, needed = arrays.get(id(kernel.instruction), (0, 0))
            if size and (whole := sum(part for part in scene.operand_traffic(kernel) if part * 2 > size)):
                moved[kernel] = whole
                most = max(most, needed)
        return moved, most


def _kernel_of(value: Value) -> Instruction:
    return next((fusion for fusion in value.fusions if fusion.opcode == "fusion"), value.instruction)


@check(
    "a loop moves its whole state to change a few elements",
    "An update in a loop is in place only if nothing else needs the former array. A select between the former and the "
    "updated one, a gradient that adds an array of zeros, or a copy reads and writes all of it in each iteration.",
    "Write elements, not arrays: buf.at[i].set(x) with nothing else in the loop that needs the former buf.",
    saves="all",
)
def whole_carry(scene: Scene) -> Iterator[Finding]:
    for loop, times in scene.loops():
        body = loop.callees()[0]
        if body.root is None or body.root.opcode != "tuple":
            continue
        state = _State(body, body.root)
        moved, needed = state.traffic_of(scene)
        if not moved:
            continue
        known = all(kernel.count is not None for kernel in moved)
        in_all = sum(size * (kernel.count or 1) for kernel, size in moved.items())
        each = in_all // max(kernel.count or 1 for kernel in moved)
        if each < max(_TIMES_NEEDED * needed, TINY_BYTES if scene.platform == "gpu" else _SMALLEST):
            continue
        works = {
            kernel: scene.work(kernel) * size / sum(scene.operand_traffic(kernel)) for kernel, size in moved.items()
        }
        if scene.share_of(works) < _SHARE or (known and in_all < LARGE_BYTES):
            continue
        kernels = sorted(works, key=works.__getitem__, reverse=True)
        scene.explained |= {loop.name, *(kernel.name for kernel in kernels)}
        often = "each iteration" if times is None else f"each of {integer(times)} iterations"
        whole = sum(sum(scene.operand_traffic(kernel)) * (kernel.count or 1) for kernel in scene.kernels)
        in_call = f": {bytes_(in_all)} a call, {percent(in_all / whole)} of the program's traffic" if known else ""
        values = [value for value, *_ in state.between]
        fix = _SELECTED if any(value.opcode == "select" for value in values) else _COPIED
        if any("jvp(" in value.instruction.metadata.op_name for value in values):
            fix = _OF_GRADIENT
        first = [value for kernel in kernels for value in values if _kernel_of(value) is kernel.instruction]
        yield replace(
            module_finding(
                f"{loop.name} moves {bytes_(each)} of its state in {often} to change {bytes_(needed // 2)} of it"
                f"{in_call}",
                tuple(kernel.name for kernel in kernels),
                in_all,
            ),
            own_fix=fix,
            places=lines_of([*first, *values]),
        )


_SELECTED = (
    "Let the condition choose the element, not the array: in place of cond(p, update, keep, buf) under vmap, or of "
    "where(p, updated, buf), write buf.at[i].set(where(p, x, buf[i])), which stays in place."
)
_OF_GRADIENT = (
    "Keep out of the differentiated loop's carry what only collects or looks up rows: return the new row as the scan's "
    "output (ys), take rows that it reads from its inputs (xs), and carry the last row alone. Gradients of ys and xs "
    "are slices; that of a carried array is a whole array in each iteration."
)
_COPIED = (
    "XLA copies the array because its former value is still needed after the update: read what is needed of it before "
    "(old = buf[i]; buf = buf.at[i].set(x)), and return it once, not also under another name."
)


# -- batches -----------------------------------------------------------------------------------------------------------

_MOST_OPERATIONS = 4096
"""Most operations of a branch that are looked at."""


class _Branch:
    """The operations from which an alternative of the select comes that `vmap` made of a `cond` or `switch`."""

    def __init__(self, scene: Scene, call: Instruction, results: Sequence[Value]) -> None:
        self.operations = 0.0
        """FLOPs and transcendentals in a call."""
        self.works: dict[Kernel, float] = {}
        """Effort of kernels, as far as it is that of the branch."""
        self.frame: Frame | None = None
        """Line of the operation that computes most."""
        costs, inside = CostModel(), set[int]()
        waiting, seen, most = list(results), {value.key for value in results}, -1.0
        while waiting and len(seen) < _MOST_OPERATIONS:
            value = waiting.pop()
            stack = value.instruction.stack
            if stack and not _is_in_branch(value.instruction, call):
                continue
            fresh = {source.key: source for source in sources(value, _ENTERED) if source.key not in seen}
            seen |= fresh.keys()
            waiting += fresh.values()
            inside.add(id(value.instruction))
            if value.opcode == "while":
                kernels = scene.kernels_in(value.instruction)
                self.works |= {kernel: scene.work(kernel) for kernel in kernels}
                done = sum(operations(kernel) * (kernel.count or 1) for kernel in kernels)
            else:
                cost, kernel = costs.instruction(value.instruction), scene.kernel_of.get(id(_kernel_of(value)))
                done = operations(cost) * (kernel.count or 1 if kernel else 1)
                if not stack and not done:
                    continue  # XLA's own: a copy, a change of layout
                if kernel is not None:
                    self.works[kernel] = self.works.get(kernel, 0.0) + scene.flops_as_bytes(kernel, done)
            self.operations += done
            if stack and done > most:
                most, self.frame = done, own_frame(stack)
        for kernel in self.works:
            working = (
                inner for inner in instructions_in(kernel.instruction) if inner.opcode not in FREE and inner.stack
            )
            if all(id(inner) in inside for inner in working):
                self.works[kernel] = scene.work(kernel)


def _is_in_branch(operation: Instruction, call: Instruction) -> bool:
    """Return whether an operation comes from a function that the call runs: its frames stand inside those of the call,
    or, where JAX traces branches by themselves, in place of them."""
    inner, outer = (
        list(zip(instruction.locations, instruction.stack, strict=False)) for instruction in (operation, call)
    )
    if outer[0] in inner[1:]:
        return True
    while inner and outer and inner[-1] == outer[-1]:
        del inner[-1], outer[-1]
    return bool(inner and outer) and inner[-1][1].function != outer[-1][1].function


@check(
    "every branch runs for every element of a batch",
    "Under vmap the condition differs from element to element, so that cond and switch become a select: all branches "
    "are computed for all elements, and all results but one are thrown away.",
    "Run elements that need different branches apart: jax.lax.map(f, xs) in place of jax.vmap(f)(xs) keeps the cond; "
    "or compute the costly branch only for those that need it: i = jnp.nonzero(p, size=n)[0], "
    "y.at[i].set(jax.vmap(costly)(x[i])). A condition that the whole batch shares (in_axes=None) stays a cond.",
    saves="part",
)
def both_branches(scene: Scene) -> Iterator[Finding]:
    if scene.module.source.text.find("vmap(", *scene.module.span) < 0:
        return
    values = (value for kernel in scene.kernels for value in values_of(kernel.instruction))
    calls = grouped(
        (frame, value) for value in values if value.opcode == "select" and (frame := _chooses_branch(value))
    )
    for selects in calls.values():
        chosen = {id(select.instruction) for select in selects}
        inner = {id(operand.instruction) for select in selects for operand in sources(select, _ENTERED)[1:]}
        alternatives = [
            list(_alternatives(select, chosen)) for select in selects if id(select.instruction) not in inner
        ]
        call = selects[0].instruction
        branches = [_Branch(scene, call, results) for results in zip(*alternatives, strict=False)]
        works: dict[Kernel, float] = {}
        for branch in branches:
            for kernel, work in branch.works.items():
                if kernel.name not in scene.explained:
                    works[kernel] = min(scene.work(kernel), works.get(kernel, 0.0) + work)
        share = scene.share_of(works)
        if share < _SHARE:
            continue
        branches.sort(key=lambda branch: -branch.operations)
        lines = [branch.frame.line for branch in branches if branch.frame is not None]
        costs = [
            scaled(branch.operations, "FLOP")
            + (f" (line {branch.frame.line})" if branch.frame and lines.count(branch.frame.line) == 1 else "")
            for branch in branches
        ]
        runs = "cond under vmap runs both" if len(branches) == 2 else f"switch under vmap runs all {len(branches)}"
        frames = [own_frame(call.stack), *(branch.frame for branch in branches)]
        yield replace(
            module_finding(
                f"{runs} branches for each element of the batch, which needs one of them: {', '.join(costs)}; "
                f"together about {percent(share)} of the program's work",
                tuple(kernel.name for kernel in sorted(works, key=works.__getitem__, reverse=True)),
            ),
            places=tuple(dict.fromkeys(SourceLocation(frame.file, frame.line) for frame in frames if frame)),
        )


def _chooses_branch(select: Value) -> int:
    """Return the stack frame's number of the `cond` or `switch` that `vmap` turned into this select; 0 for others.
    Its predicate compares the number of the branch, which JAX makes of the condition."""
    frame, name = select.instruction.metadata.stack_frame_id, select.instruction.metadata.op_name
    if "vmap(" not in name or not name.endswith("/select_n"):
        return 0
    predicate = origin_through(next(iter(sources(select, _ENTERED)), None), _REPEATED, _ENTERED)
    compared = predicate.instruction.metadata if predicate is not None and predicate.elements > 1 else None
    return frame if compared and compared.stack_frame_id == frame and compared.op_name.endswith("/select_n") else 0


def _alternatives(select: Value, chosen: Set[int]) -> Iterator[Value]:
    for operand in sources(select, _ENTERED)[1:]:
        if id(operand.instruction) in chosen:
            yield from _alternatives(operand, chosen)
        else:
            yield operand


@check(
    "a batch iterates until its slowest element has ended",
    "A while_loop under vmap runs as long as any element goes on. Elements that have ended are computed on, and their "
    "results are thrown away.",
    "Let elements end by themselves: jax.lax.map(f, xs) in place of jax.vmap(f)(xs), where one element keeps the "
    "device busy; else sort the batch by the iterations to expect and map over groups, "
    "jax.lax.map(f, xs, batch_size=n), so that an element waits for its own group alone.",
    saves="part",
)
def longest_lane(scene: Scene) -> Iterator[Finding]:
    for loop, _ in scene.loops():
        lanes = _lanes(loop)
        # Random numbers that JAX draws by rejection have no function that could be mapped.
        if lanes < 2 or loop.name in scene.explained or "jit(_gamma)" in loop.metadata.op_name:
            continue
        kernels = sorted(scene.kernels_in(loop), key=scene.work, reverse=True)
        if sum(map(scene.work, kernels)) < _SHARE_OF_ITERATION * sum(map(scene.work, scene.kernels)):
            continue
        flops, moved = sum(operations(kernel) * (kernel.count or 1) for kernel in kernels), sum(map(total, kernels))
        yield replace(
            module_finding(
                f"{loop.name} runs until the last of {integer(lanes)} elements of the batch has ended: each iteration "
                f"computes all of them ({scaled(flops, 'FLOP')}, {bytes_(moved)})",
                (*(kernel.name for kernel in kernels), loop.name),
                moved,
            ),
            places=lines_of([Value(loop)]),
        )


def _lanes(loop: Instruction) -> int:
    """Return how many elements go on by themselves in a loop that `vmap` made of theirs; 0 for any other loop. JAX
    gives the any-reduction in its condition and the selects in its body the name of the loop."""
    name, called = loop.metadata.op_name, loop.callees()
    roots = [computation.root for computation in called if computation.root is not None]
    if len(roots) != 2 or "vmap(" not in name:
        return 0
    body, condition = roots
    reduced = origin_through(resolve(Value(condition), _ENTERED), _IN_ORDER, _ENTERED)
    combined = reduced.instruction.called_root if reduced is not None and reduced.opcode == "reduce" else None
    if reduced is None or combined is None or combined.opcode != "or" or reduced.instruction.metadata.op_name != name:
        return 0
    lanes: list[int] = []
    members: list[tuple[int, ...]] = [(number,) for number, _ in enumerate(body.shape.tuple_shapes)]
    for member in members or [()]:
        value = resolve(Value(body, member), _ENTERED)
        if value is not None and value.opcode == "select" and value.instruction.metadata.op_name == name:
            predicate = origin_through(next(iter(sources(value, _ENTERED)), None), _REPEATED, _ENTERED)
            lanes += [predicate.elements] if predicate is not None else []
    return min(lanes, default=0)
