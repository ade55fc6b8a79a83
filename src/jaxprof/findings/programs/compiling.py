"""Findings about what compiling costs the program as a whole: small and large programs, tracing, constants."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from jaxprof.analysis.programs.functions import most_frequent, row_seconds
from jaxprof.analysis.programs.result import TINY_OPERATIONS, ProgramResult, is_single
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe
from jaxprof.base.units import and_more, bytes_, counted, integer, percent, seconds
from jaxprof.events import Compiled, LineOperations, SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.events.programs import IMPORTS, UNROLLED
from jaxprof.findings.programs.claims import PACKAGE, Claims, check, package_of_loop
from jaxprof.findings.trials import PASS_LOG, shortening, work_text, xla_work
from jaxprof.session.files import path_word

MANY = 20
"""Number of tiny programs from which they are reported; fewer are the set-up of any script."""
TINY_SHARE = 0.05
"""Share of the program's own time that compiling the tiny programs as one would save."""
TINY_SECONDS = 0.2
"""Seconds that tiny programs must cost together: enough for a person to notice."""
DOMINATES = 0.5
"""Share of the wall time from which the program mostly compiles."""
DOMINATES_SECONDS = 1.0
"""Seconds that compiling must take at least: a script of half a second compiles for half of it, whatever it does."""
TRACING = 0.15
"""Share of the program's own time from which tracing is slow."""
LARGE_SHARE = 0.1
"""Share of the program's own time from which compiling one large program is reported."""
TRACING_SECONDS = 1.0
"""Least seconds of tracing that are reported."""
MANY_SHAPES = 10
"""Compilations of one operation at one line for other shapes from which its arrays follow the data. Layers that are
initialised at one line have fewer."""
SPREAD_SHARE = 0.25
"""Share of a program's operations that its longest line makes, below which it writes out no loop that repeats them."""
CONSTANT_BYTES = 1 << 20
"""Bytes of constants in one program; smaller ones fold in milliseconds and hardly enlarge the executable."""
UNROLLED_OPERATIONS = 5_000
"""Number of operations above which a program is probably a Python loop that tracing unrolled."""
LARGE_OPERATIONS = 1_000
"""Operations of a large program if compiling it is most of the work: XLA needs 1 or 2 ms for each."""
MOST_SHARE = 0.25
"""`LARGE_SHARE` for a program of `LARGE_OPERATIONS`, which may need its size."""
LARGE_SECONDS = 1.0
"""Least seconds of compiling a large program that are reported."""
UNFINISHED_SECONDS = 20.0
"""Least seconds of a compile that goes on, or was cut off, that are reported."""
_STAGES = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}
_LINES_NAMED = 3
_MADE_SHARE = 0.1
"""Share of a program's operations from which the line that made them is named."""
_UNROLLED_SHARE = 0.5
"""Share of a function's tracing from which a loop is named."""
_OPERATION_SECONDS = 5e-3
"""Most that tracing one operation takes (30 to 150 µs were measured, with derivatives under vmap): a
loop whose tracing took longer for each of the program's computes in Python, and has not become them."""
_COMPUTED_WHILE_TRACED = (
    "The Python of these lines computes, and adds next to nothing to the program: compute what does not depend on the "
    "arguments once, before the function is traced, or with NumPy."
)
_LIBRARY_TRACED = (
    "Tracing was mostly in the Python of {}, which is not yours to change: call it from fewer places and with options "
    "that trace less (fewer stages or layers), otherwise keep {}."
)
_KEPT_TINY = "the persistent cache with jax_persistent_cache_min_compile_time_secs at 0 keeps them for the next start."
_VARYING_ARRAYS = (
    "The arrays there have another shape each time (as x[mask] has), so that jax.jit would compile as often: compute "
    "it with NumPy (np.asarray(x)), or on arrays of one shape (jnp.where, padding)."
)
_IMPORT_COMPILES = f"They run whenever {{}} is imported, which is not yours to change: {_KEPT_TINY}"
_LIBRARY_COMPILES = (
    "Put jax.jit around a call of {} that only computes arrays from arrays, such as the initialisation of a model: one "
    f"program compiles once; for its other calls, {_KEPT_TINY}"
)
_LOOPING_LIBRARY = f"{{}} has a loop in Python around them, so its call cannot go under jax.jit: {_KEPT_TINY}"


@check(
    "many compilations of tiny programs",
    "Each of many small functions or single operations is traced and compiled on its own, which takes longer than "
    "running it ever will.",
    f"Call those in your own code (initialisation included) from one function under jax.jit: one program "
    f"compiles once and is dispatched once. For those that a library calls, {_KEPT_TINY}",
)
def many_tiny_jits(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if many tiny programs were compiled in the user's calls, and one if they were by imports."""
    tiny = [
        row
        for row in claims.free_rows(result.compiles)
        if (row.operations is None or row.operations <= TINY_OPERATIONS)
        # A recompilation with a reason of its own is reported under that reason.
        and (is_single(row) or (row.reason_code == "first" and row.operations is not None))
    ]
    imports = {each.where for each in result.statements if each.kind == IMPORTS}
    for imported in (False, True):
        rows = [row for row in tiny if (row.called_from in imports) is imported]
        count, took = sum(row.count for row in rows), sum(map(row_seconds, rows))
        saves = took * (1 - 1 / TINY_OPERATIONS)
        if count < MANY or took < TINY_SECONDS or saves < TINY_SHARE * claims.work:
            continue
        claims.take(rows=rows)
        single = sum(row.count for row in rows if is_single(row))
        all_or_many = "all" if single == count else integer(single)
        of_them = f", {all_or_many} of them single operations outside any jit" if single else ""
        where = most_frequent([row.called_from for row in rows])
        most = f", most at {where.short(result.directory)}" if where is not None else ""
        inside = totals((row.through, row_seconds(row)) for row in rows)
        library = safe(max(inside, key=lambda name: inside[name]))
        most += f", inside {library}" if library else ""
        fix = _LIBRARY_COMPILES if library else None
        if imported:
            fix = _IMPORT_COMPILES
        elif library and package_of_loop(result) == library.partition(".")[0]:
            fix = _LOOPING_LIBRARY
        shapes = totals(((row.function, row.called_from), row.count) for row in rows if row.reason_code == "shape")
        if not library and max(shapes.values(), default=0) >= MANY_SHAPES:
            fix = _VARYING_ARRAYS
        yield Finding(
            f"{integer(count)} compilations built programs of at most {TINY_OPERATIONS} operations{of_them}: "
            f"{seconds(took)}, {percent(took / result.compile_seconds)} of the compile time{most}",
            (where,),
            own_fix=fix.format(library) if fix else None,
            seconds=took,
            saves_seconds=saves,
        )


@check(
    "iterating over a jax array",
    "`for row in x`, `list(x)`, `zip(x, y)`, unpacking, and a plot of x split a jax array: XLA compiles a program of "
    "one output for each row, up to 100 at a time, again for each shape, and each row is an array of its own.",
    "Iterate over np.asarray(x), and give that to what iterates, as plots do: NumPy compiles nothing. Rows that go "
    "back into JAX: jax.vmap or jax.lax.scan over x; for keys, jax.random.fold_in(key, i) in each iteration.",
)
def iterated_array(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    rows = [
        row
        for row in claims.free_rows(result.compiles)
        if row.function.strip("_") == "unstack" and is_single(row) and (row.operations or 0) > TINY_OPERATIONS
    ]
    by_line = totals((row.called_from, row_seconds(row)) for row in rows)
    took = sum(by_line.values())
    if took < TINY_SECONDS or took < TINY_SHARE * claims.work:
        return
    claims.take(rows=rows)
    lines = sorted(by_line, key=lambda line: -by_line[line])
    named = list(dict.fromkeys(row.signature[0].type for row in rows if row.signature))
    yield Finding(
        f"jax arrays were split into their rows ({safe(and_more(named, _LINES_NAMED))}), by "
        f"{counted(sum(row.count for row in rows), 'compiled program')} of an output for each row: {seconds(took)}, "
        f"{percent(took / result.compile_seconds)} of the compile time",
        tuple(lines[:_LINES_NAMED]),
        seconds=took,
        saves_seconds=took,
    )


@check(
    "most of the run was compiling",
    "More than half of the wall time went into tracing, lowering and compiling. True of nearly every short run.",
    "Compile fewer programs (the ledger shows what is compiled again), and keep them in the persistent cache "
    "(JAX_COMPILATION_CACHE_DIR); in a longer run compiling is a smaller share.",
)
def compile_dominates(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    took = result.main_compile_seconds
    share = result.of_wall(took)
    if share is None or share < DOMINATES or took < DOMINATES_SECONDS or not result.functions:
        return
    most = result.functions[0]
    operations = max((row.operations for row in most.rows if row.operations is not None), default=None)
    size = f" ({counted(operations, 'operation')})" if operations is not None else ""
    count = "one compilation" if most.count == 1 else f"{integer(most.count)} compilations"
    yield Finding(
        f"tracing, lowering and compiling took {seconds(took)}, {percent(share)} of the wall time; the largest part "
        f"for `{safe(most.function)}`{size}: {seconds(most.seconds)} in {count}",
    )


@check(
    "a program with too many operations to compile quickly",
    "Tracing unrolls Python loops: each layer, step or example becomes operations of its own, and the time of "
    "tracing, lowering and compiling grows with them.",
    "Most operations of a program this large are the same ones over and over: layers, steps or stages that tracing "
    "wrote out one by one. jax.lax.scan, fori_loop or jax.vmap over them compiles their body once; otherwise keep "
    "the program in the persistent cache.",
)
def large_program(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    traced = _tracing_library(result)
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
        loops = _loops_of_rows(result, rows)
        largest = max(rows, key=lambda row: row.operations or 0)
        lines = _main_lines(largest.made_by)
        by_line = totals((made.location, made.share) for made in largest.made_by)
        is_spread = not (huge or loops) and 0 < max(by_line.values(), default=0.0) < SPREAD_SHARE
        fix = _NEEDED if is_spread else None
        # below the larger size, a model that needs this size is as likely as an unrolled loop that no sample shows
        saves = took * (1 - LARGE_OPERATIONS / (2 * operations)) * (1.0 if huge or loops else 0.5)
        yield Finding(
            f"the program of `{safe(function.function)}` has {integer(operations)} operations: tracing, lowering and "
            f"compiling it took {seconds(took)}, {percent(result.of_wall(took))} of the wall time"
            f"{_unroll_text(result, loops)}{_made_by_text(result, lines)}",
            _users_first(*loops, *lines, function.defined_at, function.called_from),
            own_fix=_LIBRARY_TRACED.format(traced, "the program in the persistent cache") if traced else fix,
            function=function.function,
            seconds=took,
            saves_seconds=saves,
        )


_NEEDED = (
    "It may need its size, because no line makes much of it: the persistent cache (jax_compilation_cache_dir) keeps it "
    "for the next start."
)


def _users_first(*locations: SourceLocation | None) -> tuple[SourceLocation | None, ...]:
    """Return the locations, those in a library's files last: they are not the reader's to change."""
    return tuple(sorted(locations, key=lambda at: at is not None and PACKAGE.search(at.file) is not None))


@check(
    "a compile does not end",
    "One program has been traced, lowered or compiled for 20 seconds and goes on, or it was ended in that. The lines "
    "are those that made its operations. The pass is stated where XLA's own log names it; else it is unknown.",
    "Large programs: jax.lax.scan, fori_loop or jax.vmap in place of Python loops. Otherwise see in which pass XLA is: "
    f"with {PASS_LOG} it names each on stderr.",
)
def unfinished_compile(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    goes_on = not result.ended and not result.run.deserted
    for stage in result.running:
        took = result.stage_seconds(stage)
        if took < UNFINISHED_SECONDS:
            continue
        now = result.began_seconds + result.wall_seconds
        compiles = stage.stage == "compile"
        work = xla_work(result.run, stage.function, stage.began_seconds, now) if compiles else None
        lines, fixes = _main_lines(stage.made_by), list[str]()
        loops = _unrolled_loops(result, {stage.function}, result.states.get("trace", 0.0), stage.operations)
        size = f": {counted(stage.operations, 'operation')}" if stage.operations is not None else ""
        if not size and stage.made_by:
            size = ": more operations than are counted"
        is_large = stage.operations is None or stage.operations > LARGE_OPERATIONS
        made = f"{size}{_unroll_text(result, loops)}{_made_by_text(result, lines)}" if is_large else size
        folded: list[SourceLocation] = []
        if is_large and (lines or loops):
            fixes.append("jax.lax.scan, fori_loop or jax.vmap over what repeats there compiles it once.")
        if work is not None and work.operation:
            folded = [made.location for made in stage.made_by if made.name == work.operation]
        if compiles:
            made += f"; {work_text(work, folded[0].short(result.directory) if folded else '')}"
            file = path_word(stage.defined_at.file)
            fixes += shortening(work, f"{file}:{stage.function}" if file else stage.function)
        began = f"since {seconds(stage.began_seconds - result.began_seconds)} after the start"
        has, then = ("has", "goes on") if goes_on else ("had", "was not over when the program was ended")
        yield Finding(
            f"{_STAGES[stage.stage]} `{safe(stage.function)}` {has} taken {seconds(took)}, {began}, and {then}{made}",
            _users_first(*folded, *((*loops, *lines) if is_large else ()), stage.defined_at, stage.called_from),
            own_fix=" ".join(fixes) if fixes or compiles else None,
            function=stage.function,
            seconds=took,
        )


@check(
    "tracing the Python code takes long",
    "Tracing runs the Python function; loops over layers or examples and NumPy work inside it are paid at each "
    "compilation.",
    "Use lax.scan or vmap instead of Python loops over layers, steps or examples, "
    "and compute what does not depend on the arguments beforehand, with NumPy.",
)
def slow_tracing(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    rows = free_traces(claims)
    if not is_tracing_slow(claims, rows):
        return
    took = sum(row.trace_seconds or 0.0 for row in rows)
    share, traced, loops = result.of_wall(took), _tracing_library(result), _loops_of_rows(result, rows)
    claims.take(rows=rows)
    by_line = totals((line.location, line.seconds) for line in result.lines if line.state == "trace")
    lines = sorted(by_line.items(), key=lambda item: -item[1])[:_LINES_NAMED]
    named = ", ".join(f"{where.short(result.directory)} {seconds(spent, 2)}" for where, spent in lines)
    slowest = max(
        result.functions, key=lambda function: sum(row.trace_seconds or 0.0 for row in function.rows), default=None
    )
    most = f", the most for `{safe(slowest.function)}`" if slowest is not None else ""
    sizes = [row.operations for row in slowest.rows] if slowest is not None else []
    known = [size for size in sizes if size is not None]
    own_fix = _LIBRARY_TRACED.format(traced, "what was traced with jax.export") if traced else None
    if any(known) and not loops and slowest is not None:
        most += f", a program of {counted(max(known), 'operation')}"
        of_slowest = sum(row.trace_seconds or 0.0 for row in slowest.rows)
        if len(known) == len(sizes) and of_slowest > _OPERATION_SECONDS * sum(known) and not traced:
            own_fix = _COMPUTED_WHILE_TRACED
    yield Finding(
        f"tracing took {seconds(took)}, {percent(share)} of the wall time{most}"
        f"{_unroll_text(result, loops)}{f'; by samples: {named}' if named else ''}",
        (*loops, *(where for where, _ in lines), slowest.defined_at if slowest is not None else None),
        own_fix=own_fix,
        seconds=took,
        saves_seconds=took / 2,
    )


def free_traces(claims: Claims) -> list[Compiled]:
    """Return the compilations of the main thread whose tracing no finding has claimed."""
    return [row for row in claims.free_rows(claims.result.compiles) if not row.thread and row.trace_seconds]


def is_tracing_slow(claims: Claims, rows: Sequence[Compiled]) -> bool:
    """Return whether the tracing of these compilations is worth a finding."""
    took = sum(row.trace_seconds or 0.0 for row in rows)
    return took >= TRACING_SECONDS and took >= TRACING * claims.work


def _loops_of_rows(result: ProgramResult, rows: Sequence[Compiled]) -> list[SourceLocation]:
    functions = {row.function for row in rows}
    compiled = [row for row in result.compiles if row.function in functions]
    traced = sum(row.trace_seconds or 0.0 for row in compiled)
    return _unrolled_loops(result, functions, traced, sum(row.operations or 0 for row in compiled))


def _unrolled_loops(
    result: ProgramResult, functions: Collection[str], traced: float, operations: int | None
) -> list[SourceLocation]:
    """Return the user's loops that took most of the `traced` seconds of these functions, outermost first. There are
    none where the programs have too few operations for a loop to have become them; None: more than are counted."""
    if operations is not None and traced > _OPERATION_SECONDS * operations:
        return []
    of_loop = totals(
        (each.where, each.seconds) for each in result.statements if each.kind == UNROLLED and each.name in functions
    )
    return [where for where, took in of_loop.items() if took > _UNROLLED_SHARE * traced]


def _unroll_text(result: ProgramResult, loops: Sequence[SourceLocation]) -> str:
    """Return text such as `; tracing unrolls the loop at train.py:7`; empty without a loop."""
    named = [loop.short(result.directory) for loop in loops[:_LINES_NAMED]]
    return f"; tracing unrolls the loop at {safe(', in it '.join(named))}" if named else ""


def _main_lines(made_by: Sequence[LineOperations]) -> dict[SourceLocation, float]:
    """Return the lines that made a clear part of a program's operations, and each part, largest first."""
    of_line = totals((made.location, made.share) for made in made_by)
    most = sorted(of_line.items(), key=lambda item: -item[1])[:_LINES_NAMED]
    return {line: share for line, share in most if share >= _MADE_SHARE}


def _made_by_text(result: ProgramResult, lines: Mapping[SourceLocation, float]) -> str:
    """Return text such as `; they are from helper.py:5 (51 %), helper.py:6 (49 %)`; empty without a line."""
    named = [f"{line.short(result.directory)} ({percent(share)})" for line, share in lines.items()]
    return f"; they are from {safe(', '.join(named))}" if named else ""


def _tracing_library(result: ProgramResult) -> str:
    """Return the library whose Python most samples of tracing were in; empty if most were in none."""
    by_library = totals((spot.through, spot.seconds) for spot in result.spots if spot.kind == "trace")
    most = max(by_library, key=lambda name: by_library[name], default="")
    return safe(most) if 2 * by_library.get(most, 0.0) > sum(by_library.values()) else ""


@check(
    "large arrays closed over become constants",
    "An array that a function closes over is copied into its program: by every compilation, which may fold it for "
    "minutes, and in device memory once for each program.",
    "Pass the arrays as arguments instead of closing over them.",
)
def captured_constants(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    for function in result.functions:
        rows = [row for row in function.rows if row.constants and _constant_bytes(row) >= CONSTANT_BYTES]
        if not rows:
            continue
        row = max(rows, key=_constant_bytes)
        types = [constant.type for constant in row.constants]
        named = ", ".join(types[:_LINES_NAMED]) + (", …" if len(types) > _LINES_NAMED else "")
        copies = sum(each.count for each in rows)
        again = f", in each of its {integer(copies)} compilations" if copies > 1 else ""
        yield Finding(
            f"the program of `{safe(function.function)}` holds {bytes_(_constant_bytes(row))} of constants "
            f"({safe(named)}){again}",
            (function.defined_at, function.called_from),
            function=function.function,
            bytes=_constant_bytes(row),
        )


def _constant_bytes(row: Compiled) -> int:
    return sum(constant.bytes or 0 for constant in row.constants)
