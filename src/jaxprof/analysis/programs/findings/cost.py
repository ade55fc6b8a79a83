"""What compiling costs the program as a whole: its share, tracing, the cache, the constants of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.analysis.programs.functions import most_frequent, row_seconds
from jaxprof.analysis.programs.result import (
    TINY_OPERATIONS,
    ProgramFinding,
    Remark,
    finding,
    is_single,
    seconds_by_place,
)
from jaxprof.text import safe
from jaxprof.units import bytes_, counted, integer, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.analysis.programs.findings.claims import Claims
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events import Compiled, ProgramSampled

MANY: Final = 20
"""Number of tiny programs from which they are reported: fewer are the set-up of any script."""
TINY_SHARE: Final = 0.05
"""Share of the program's own time that compiling them as one program would save."""
TINY_SECONDS: Final = 0.2
"""What they must cost together: enough for a person to notice."""
DOMINATES: Final = 0.5
"""Share of the wall time from which the program mostly compiles."""
DOMINATES_SECONDS: Final = 1.0
"""The seconds that this must be at least: a script of half a second compiles for half of it, whatever it does."""
TRACING: Final = 0.15
"""Share of the program's own time from which tracing is slow."""
LARGE_SHARE: Final = 0.1
"""The same for making one large program."""
TRACING_SECONDS: Final = 1.0
CACHE_SECONDS: Final = 2.0
"""Backend seconds, repeated at every start, from which the persistent cache is worth switching on."""
CACHE_KEEPS_SECONDS: Final = 1.0
"""JAX caches what took longer than this to compile (jax_persistent_cache_min_compile_time_secs, its default)."""
THRASHES: Final = 3
"""Misses of one program with the same arguments in one run: the second should have been a hit."""
THRASHING_SECONDS: Final = 0.5
CONSTANT_BYTES: Final = 1 << 20
"""Size of the constants in one program; smaller ones fold in milliseconds and hardly enlarge the executable."""
UNROLLED_OPERATIONS: Final = 5_000
"""A program with more operations is, more often than not, a Python loop that tracing unrolled."""
LARGE_OPERATIONS: Final = 1_000
"""The same where making it is most of what the program does: XLA needs a millisecond or two for each operation."""
MOST_SHARE: Final = 0.25
LARGE_SECONDS: Final = 1.0
_LINES_NAMED: Final = 3
_UNROLLED: Final = (
    "Most operations of a program this large are the same ones over and over: layers, steps or stages that tracing "
    "wrote out one by one. jax.lax.scan, fori_loop or jax.vmap over them compiles their body once; otherwise keep the "
    "program in the persistent cache."
)
_TRACE_LESS: Final = (
    "Tracing runs the Python code: use lax.scan or vmap instead of Python loops over layers, steps or examples, and "
    "compute what does not depend on the arguments beforehand, with NumPy."
)
_OF_A_LIBRARY: Final = (
    "Tracing was mostly in the Python of {}, which is not yours to change: call it from fewer places and with options "
    "that trace less (fewer stages or layers), "
)


def many_tiny_jits(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """Many programs of a few operations each, including operations that were called outside any jit."""
    tiny = [row for row in claims.free_rows(result.compiles) if _is_tiny(row)]
    count, took = sum(row.count for row in tiny), sum(map(row_seconds, tiny))
    saves = took * (1 - 1 / TINY_OPERATIONS)
    if count < MANY or took < TINY_SECONDS or saves < TINY_SHARE * claims.work:
        return
    claims.take(rows=tiny)
    single = sum(row.count for row in tiny if is_single(row))
    where = most_frequent([row.called_from for row in tiny])
    of_them = f", {integer(single)} of them single operations outside any jit" if single else ""
    most = f", most at {where.short(result.directory)}" if where is not None else ""
    yield finding(
        "many_tiny_jits",
        f"{integer(count)} compilations were of programs with at most {TINY_OPERATIONS} operations{of_them}: "
        f"{seconds(took)}, {percent(_share(took, result.compile_seconds))} of the compile time{most}",
        "Where they are in your code (initialisation included), call them from one function under jax.jit: one "
        "program compiles once and is dispatched once. Where a library calls them, the persistent cache with "
        "jax_persistent_cache_min_compile_time_secs at 0 keeps them for the next start.",
        (where,),
        seconds=took,
        saves=saves,
    )


def _is_tiny(row: Compiled) -> bool:
    """A recompilation that has a reason of its own is reported under that reason."""
    if row.operations is not None and row.operations > TINY_OPERATIONS:
        return False
    return is_single(row) or (row.reason_code == "first" and row.operations is not None)


def compile_dominates(result: ProgramResult) -> Iterator[Remark]:
    """More than half of the wall time went into making programs rather than running them."""
    took = result.main_compile_seconds
    share = result.of_wall(took)
    if share is None or share < DOMINATES or took < DOMINATES_SECONDS or not result.functions:
        return
    most = result.functions[0]
    operations = max((row.operations for row in most.rows if row.operations is not None), default=None)
    size = f" ({counted(operations, 'operation')})" if operations is not None else ""
    yield Remark(
        "compile_dominates",
        f"tracing, lowering and compiling took {seconds(took)}, {percent(share)} of the wall time; the largest part "
        f"for `{safe(most.function)}`{size}: {seconds(most.seconds)} in {_times(most.count)}",
        "Compile fewer programs (the ledger shows what is compiled again), and keep them in the persistent cache "
        "(JAX_COMPILATION_CACHE_DIR); in a longer run compiling is a smaller share.",
    )


def large_program(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """A program of so many operations that making it takes most of the time: a Python loop that tracing unrolled."""
    traced = _traced_library(result)
    for function in result.functions:
        if function.library:
            continue  # its loops are not the reader's to change
        rows = [row for row in claims.free_rows(function.rows) if (row.operations or 0) > LARGE_OPERATIONS]
        took = sum(map(row_seconds, rows))
        huge = any((row.operations or 0) > UNROLLED_OPERATIONS for row in rows)
        if took < (LARGE_SHARE if huge else MOST_SHARE) * claims.work or took < LARGE_SECONDS:
            continue
        claims.take(rows=rows)
        operations = max(row.operations or 0 for row in rows)
        # below the larger size, a model that is as large as it has to be is as likely as an unrolled loop
        saves = took * (1 - LARGE_OPERATIONS / (2 * operations)) * (1.0 if huge else 0.5)
        yield finding(
            "large_program",
            f"the program of `{safe(function.function)}` has {integer(operations)} operations: tracing, lowering and "
            f"compiling it took {seconds(took)}, {percent(result.of_wall(took))} of the wall time",
            _OF_A_LIBRARY.format(traced) + "otherwise keep the program in the persistent cache."
            if traced
            else _UNROLLED,
            (function.defined_at, function.called_from),
            function=function.function,
            seconds=took,
            saves=saves,
        )


def slow_tracing(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """Tracing the Python code takes long; the lines are from samples."""
    rows = [row for row in claims.free_rows(result.compiles) if not row.thread and row.trace_seconds]
    took = sum(row.trace_seconds or 0.0 for row in rows)
    if took < TRACING_SECONDS or took < TRACING * claims.work:
        return
    share, traced = result.of_wall(took), _traced_library(result)
    claims.take(rows=rows)
    lines = list(seconds_by_place(line for line in result.lines if line.state == "trace").items())[:_LINES_NAMED]
    named = ", ".join(f"{where.short(result.directory)} {seconds(spent, 2)}" for where, spent in lines)
    slowest = max(
        result.functions, key=lambda function: sum(row.trace_seconds or 0.0 for row in function.rows), default=None
    )
    most = f", the most for `{safe(slowest.function)}`" if slowest is not None else ""
    yield finding(
        "slow_tracing",
        f"tracing took {seconds(took)}, {percent(share)} of the wall time{most}"
        f"{f'; by samples: {named}' if named else ''}",
        _OF_A_LIBRARY.format(traced) + "otherwise keep what was traced with jax.export." if traced else _TRACE_LESS,
        (*(where for where, _ in lines), slowest.defined_at if slowest is not None else None),
        seconds=took,
        saves=took / 2,
    )


def _traced_library(result: ProgramResult) -> str:
    """The library whose Python most samples of tracing were in; empty if most were in none."""
    by_library: dict[str, float] = {}
    for spot in result.spots:
        if spot.kind == "trace":
            by_library[spot.through] = by_library.get(spot.through, 0.0) + spot.seconds
    most = max(by_library, key=lambda name: by_library[name], default="")
    return safe(most) if 2 * by_library.get(most, 0.0) > sum(by_library.values()) else ""


def cache_off(result: ProgramResult) -> Iterator[Remark]:
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
    yield Remark(
        "cache_off",
        f"the persistent compilation cache is off: {seconds(took)} of backend compilation are repeated at each start",
        "Set JAX_COMPILATION_CACHE_DIR to a permanent folder, or call jax.config.update('jax_compilation_cache_dir', "
        f"...) before the first compilation.{small}",
        took,
    )


def cache_thrashing(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """The cache is on, and one program with the same arguments misses it again and again."""
    for function in result.functions:
        missed: dict[str, list[Compiled]] = {}
        for row in function.rows:
            if row.cache == "miss":
                missed.setdefault(repr((row.signature, row.operations)), []).append(row)
        for rows in missed.values():
            count, took = sum(row.count for row in rows), sum(row.compile_seconds or 0.0 for row in rows)
            if count < THRASHES or took < THRASHING_SECONDS or len(claims.free_rows(rows)) < len(rows):
                continue
            claims.take(rows=rows)
            kept = any(_each(row) >= CACHE_KEEPS_SECONDS for row in rows)
            yield finding(
                "cache_thrashing",
                f"`{safe(function.function)}` missed the persistent cache {integer(count)} times with the same "
                f"arguments ({seconds(took)})",
                "Its program differs each time: look for a constant captured by closure that changes, or a cache "
                "whose size limit (jax_compilation_cache_max_size) evicts it; pass what changes as an argument."
                if kept
                else "Each compilation is shorter than jax_persistent_cache_min_compile_time_secs (1 s), so the "
                "program is not kept: set that to 0, or compile the program once.",
                (function.called_from, function.defined_at),
                function=function.function,
                seconds=took,
                saves=took * (1 - 1 / count),
            )


_SETTINGS: Final = {
    "jax_debug_nans": "each call waits for its results and looks for NaN in them",
    "jax_debug_infs": "each call waits for its results and looks for infinities in them",
    "jax_disable_jit": "functions under jax.jit run one operation at a time",
    "jax_disable_most_optimizations": "XLA leaves out most of its optimisations",
    "jax_check_tracer_leaks": "each trace is searched for leaked tracers, and none is kept",
}
_MOSTLY: Final = 0.5
"""Share of the program's own time under a setting from which the program runs with it, and not a part of it."""


def debug_settings(result: ProgramResult, _claims: Claims) -> Iterator[ProgramFinding]:
    """Options that help to find faults were on for most of the program: its times are not those without them."""
    worked = [(window, _worked(window)) for window in result.sample_windows]
    whole = sum(took for _, took in worked)
    for name, words in _SETTINGS.items():
        took = sum(took for window, took in worked if name in window.debug_settings)
        if took > _MOSTLY * whole:
            yield finding(
                "debug_settings",
                f"{name} was on: {words}",
                f"Turn it off, and measure again: jax.config.update('{name}', False), or {name.upper()}=0 in the "
                "environment.",
                (next((window.debug_settings_at.get(name) for window in reversed(result.sample_windows)), None),),
            )


def _worked(window: ProgramSampled) -> float:
    return sum(took for state, took in window.states.items() if state != "import")


def captured_constants(result: ProgramResult, claims: Claims) -> Iterator[ProgramFinding]:
    """Arrays that a function closed over became constants of its program."""
    for function in result.functions:
        holding = [row for row in function.rows if row.constants and _constant_bytes(row) >= CONSTANT_BYTES]
        if not holding:
            continue
        row = max(holding, key=_constant_bytes)
        types = [constant.type for constant in row.constants]
        named = ", ".join(types[:_LINES_NAMED]) + (", …" if len(types) > _LINES_NAMED else "")
        copies = sum(each.count for each in holding)
        again = f", in each of its {integer(copies)} compilations" if copies > 1 else ""
        yield finding(
            "captured_constants",
            f"the program of `{safe(function.function)}` holds {bytes_(_constant_bytes(row))} of constants "
            f"({safe(named)}){again}",
            "Pass the arrays as arguments instead of closing over them: constants are copied by every compilation, "
            "can take minutes to fold, and take up device memory once for each program.",
            (function.defined_at, function.called_from),
            function=function.function,
            held=_constant_bytes(row),
        )


def _constant_bytes(row: Compiled) -> int:
    return sum(constant.bytes or 0 for constant in row.constants)


def _each(row: Compiled) -> float:
    return (row.compile_seconds or 0.0) / max(1, row.count)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _times(count: int) -> str:
    return "one compilation" if count == 1 else f"{integer(count)} compilations"
