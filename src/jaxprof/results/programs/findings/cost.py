"""What compiling costs the program as a whole: its share, its tracing, its cache, the constants that it carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.results.programs.findings.finding import TINY_OPERATIONS, Finding, finding, is_single, seconds_by_place
from jaxprof.results.programs.functions import most_frequent, row_seconds
from jaxprof.results.programs.places import place
from jaxprof.safe_text import safe
from jaxprof.units import bytes_, integer, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.events import Compiled
    from jaxprof.results.programs.derive import ProgramResult

MANY: Final = 20
"""Tiny programs before they are told: fewer are the set-up of any script."""
TINY_SECONDS: Final = 0.2
"""And what they must cost together: what a person notices."""
DOMINATES: Final = 0.5
"""Share of the wall time from which the program mostly compiles."""
DOMINATES_SECONDS: Final = 1.0
"""And the least that it is: a script of half a second compiles for half of it, whatever it does."""
TRACING: Final = 0.1
"""Share of the wall time from which tracing is slow."""
TRACING_SECONDS: Final = 1.0
CACHE_SECONDS: Final = 2.0
"""Backend seconds, paid again at every start, from which the persistent cache is worth being switched on."""
CACHE_KEEPS_SECONDS: Final = 1.0
"""JAX keeps what took longer than this to compile (jax_persistent_cache_min_compile_time_secs, its default)."""
THRASHES: Final = 3
"""Misses of one program with the same arguments in one run: the second should have been a hit."""
THRASHING_SECONDS: Final = 0.5
CONSTANT_BYTES: Final = 1 << 20
"""Of constants in one program; smaller ones fold in milliseconds and are no burden to the executable."""
UNROLLED_OPERATIONS: Final = 5_000
"""A program with more operations is, more often than not, a Python loop that was unrolled by tracing."""
_LINES_NAMED: Final = 3


def many_tiny_jits(result: ProgramResult) -> Iterator[Finding]:
    """Many programs of a few operations each, those that were called outside any jit among them."""
    tiny = [row for row in result.compiles if _is_tiny(row)]
    count, took = sum(row.count for row in tiny), sum(map(row_seconds, tiny))
    if count < MANY or took < TINY_SECONDS:
        return
    single = sum(row.count for row in tiny if is_single(row))
    where = most_frequent([place(row.called_from) for row in tiny])
    of_them = f", {integer(single)} of them single operations outside any jit" if single else ""
    most = f", most at {where.short(result.directory)}" if where is not None else ""
    yield finding(
        "many_tiny_jits",
        f"{integer(count)} compilations are of programs of at most {TINY_OPERATIONS} operations{of_them}: "
        f"{seconds(took)}, {percent(_share(took, result.compile_seconds))} of the time for compiling{most}",
        "Put jax.jit around the function that calls them (an initialisation too): one program compiles once and is "
        "dispatched once.",
        (where,),
        seconds=took,
    )


def _is_tiny(row: Compiled) -> bool:
    """What is compiled again for another reason than being another program is told of by that reason."""
    if is_single(row):
        return True
    return row.reason_code == "first" and row.operations is not None and row.operations <= TINY_OPERATIONS


def compile_dominates(result: ProgramResult) -> Iterator[Finding]:
    """More than half of the wall time went into making programs, and not into running them."""
    took = result.main_compile_seconds
    share = result.of_wall(took)
    if share is None or share < DOMINATES or took < DOMINATES_SECONDS or not result.functions:
        return
    most = result.functions[0]
    operations = max((row.operations for row in most.rows if row.operations is not None), default=None)
    size = f" ({integer(operations)} operation{'' if operations == 1 else 's'})" if operations is not None else ""
    unrolled = operations is not None and operations > UNROLLED_OPERATIONS
    yield finding(
        "compile_dominates",
        f"tracing, lowering and compiling took {seconds(took)}, {percent(share)} of the wall time; the most by "
        f"`{safe(most.function)}`{size}: {seconds(most.seconds)} in {_times(most.count)}",
        "Its program is large: let lax.scan or fori_loop take the place of Python loops over layers or steps."
        if unrolled
        else "Compile fewer programs (see the ledger for what is compiled again), keep them with the persistent cache "
        "(JAX_COMPILATION_CACHE_DIR), and let lax.scan take the place of Python loops over layers.",
        (most.called_from, most.defined_at),
        seconds=took,
    )


def slow_tracing(result: ProgramResult) -> Iterator[Finding]:
    """Python takes long to trace; the lines are from samples."""
    took = result.share("trace").seconds
    share = result.of_wall(took)
    if share is None or share < TRACING or took < TRACING_SECONDS:
        return
    lines = list(seconds_by_place(line for line in result.lines if line.state == "trace").items())[:_LINES_NAMED]
    named = ", ".join(f"{where.short(result.directory)} {seconds(spent, 2)}" for where, spent in lines)
    slowest = max(result.functions, key=lambda one: sum(row.trace_seconds or 0.0 for row in one.rows), default=None)
    most = f", the most for `{safe(slowest.function)}`" if slowest is not None else ""
    yield finding(
        "slow_tracing",
        f"tracing took {seconds(took)}, {percent(share)} of the wall time{most}"
        f"{f'; by samples: {named}' if named else ''}",
        "Tracing runs the Python code: use lax.scan or vmap instead of Python loops over layers, steps or examples, "
        "and compute what does not depend on the arguments before, with NumPy.",
        (*(where for where, _ in lines), slowest.defined_at if slowest is not None else None),
        seconds=took,
    )


def cache_off(result: ProgramResult) -> Iterator[Finding]:
    """The same programs are compiled again at every start."""
    rows = [row for row in result.compiles if row.cache == "off"]
    took = sum(row.compile_seconds or 0.0 for row in rows)
    if took < CACHE_SECONDS:
        return
    kept = sum(row.compile_seconds or 0.0 for row in rows if _each(row) >= CACHE_KEEPS_SECONDS)
    small = (
        " Most of them compile in under 1 s: to keep those too, set jax_persistent_cache_min_compile_time_secs to 0."
        if kept < took / 2
        else ""
    )
    yield finding(
        "cache_off",
        f"the persistent compilation cache is off: {seconds(took)} of backend compilation are paid again at each start",
        "Set JAX_COMPILATION_CACHE_DIR to a folder that stays, or jax.config.update('jax_compilation_cache_dir', ...) "
        f"before the first compilation.{small}",
        (),
        seconds=took,
    )


def cache_thrashing(result: ProgramResult) -> Iterator[Finding]:
    """The cache is on, and one program with the same arguments misses it again and again."""
    for one in result.functions:
        missed: dict[str, list[Compiled]] = {}
        for row in one.rows:
            if row.cache == "miss":
                missed.setdefault(repr((row.signature, row.operations)), []).append(row)
        for rows in missed.values():
            count, took = sum(row.count for row in rows), sum(row.compile_seconds or 0.0 for row in rows)
            if count < THRASHES or took < THRASHING_SECONDS:
                continue
            kept = any(_each(row) >= CACHE_KEEPS_SECONDS for row in rows)
            yield finding(
                "cache_thrashing",
                f"`{safe(one.function)}` missed the persistent cache {integer(count)} times with the same arguments "
                f"({seconds(took)})",
                "Its program differs each time: look for a constant captured by closure that changes, or a cache "
                "whose size limit (jax_compilation_cache_max_size) evicts it; pass what changes as an argument."
                if kept
                else "Each compilation is shorter than jax_persistent_cache_min_compile_time_secs (1 s), so it is not "
                "kept: set that to 0, or compile it once.",
                (one.called_from, one.defined_at),
                seconds=took,
            )


def captured_constants(result: ProgramResult) -> Iterator[Finding]:
    """Arrays that were closed over became constants of the program."""
    for one in result.functions:
        holding = [row for row in one.rows if row.constants and _constant_bytes(row) >= CONSTANT_BYTES]
        if not holding:
            continue
        row = max(holding, key=_constant_bytes)
        types = [str(constant.get("type", "")) for constant in row.constants]
        named = ", ".join(types[:_LINES_NAMED]) + (", …" if len(types) > _LINES_NAMED else "")
        copies = sum(each.count for each in holding)
        again = f", in each of its {integer(copies)} compilations" if copies > 1 else ""
        yield finding(
            "captured_constants",
            f"the program of `{safe(one.function)}` holds {bytes_(_constant_bytes(row))} of constants ({safe(named)})"
            f"{again}",
            "Pass the arrays as arguments instead of closing over them: constants are copied by every compilation, "
            "may be folded for minutes, and take device memory once for each program.",
            (one.defined_at, one.called_from),
        )


def _constant_bytes(row: Compiled) -> int:
    return sum(size for constant in row.constants if isinstance(size := constant.get("bytes"), int))


def _each(row: Compiled) -> float:
    return (row.compile_seconds or 0.0) / max(1, row.count)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _times(count: int) -> str:
    return "one compilation" if count == 1 else f"{integer(count)} compilations"
