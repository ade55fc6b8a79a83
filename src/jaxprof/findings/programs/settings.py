"""Findings about what a program starts with: debugging options, the profiler, the compilation cache, its imports."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe
from jaxprof.base.units import counted, percent, seconds
from jaxprof.events import ProgramSampled
from jaxprof.events.finding import Finding
from jaxprof.events.programs import IMPORTS
from jaxprof.findings.programs.claims import Claims, check

CACHE_SECONDS = 2.0
"""Backend seconds, repeated at every start, from which switching on the persistent cache is recommended."""
CACHE_KEEPS_SECONDS = 1.0
"""Compile time above which JAX caches a program (jax_persistent_cache_min_compile_time_secs, its default)."""
NAMED_SHARE = 0.25
"""Share of those seconds from which the function that takes most of them is named."""
_CACHE_FOLDER = "jax_compilation_cache_dir"
NEW_CACHE_SHARE = 0.05
"""Share of the program's own time that a cache must have saved to be missed."""
_NEW_FOLDERS = {
    "temporary": "it is a temporary one",
    "process": "its name holds the id of the process",
    "job": "its name holds the id of the job",
    "random": "its name is random",
    "time": "its name holds the time",
}
_SETTINGS = {
    "jax_debug_nans": "each call waits for its results and looks for NaN in them",
    "jax_debug_infs": "each call waits for its results and looks for infinities in them",
    "jax_disable_jit": "functions under jax.jit run one operation at a time",
    "jax_disable_most_optimizations": "XLA leaves out most of its optimisations",
    "jax_check_tracer_leaks": "each trace is searched for leaked tracers, and none is kept",
}
_STILL = 0.95
"""Share of the last sample window with the profiler on from which it was on at its end."""
_MOSTLY = 0.5
"""Share of the program's own time under a setting from which the whole program counts as running with it."""


@check(
    "a debugging option is on",
    "jax_debug_nans, jax_debug_infs, jax_disable_jit, jax_disable_most_optimizations and jax_check_tracer_leaks "
    "make calls or compilations slower on purpose. Figures taken with them are not those of the program.",
    "Turn it off, and measure again. jax.debug_nans() as a context manager looks at a part of the program.",
)
def debug_settings(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    whole = sum(map(_own_seconds, result.sample_windows))
    for name, words in _SETTINGS.items():
        took = sum(_own_seconds(window) for window in result.sample_windows if name in window.debug_settings)
        if took > _MOSTLY * whole:
            yield Finding(
                f"{name} was on: {words}",
                (next((window.debug_settings_at.get(name) for window in reversed(result.sample_windows)), None),),
                own_fix=f"Turn it off, and measure again: jax.config.update('{name}', False), or {name.upper()}=0 in "
                "the environment.",
            )


@check(
    "the program's own profiler is on for most of the run",
    "While jax.profiler.start_trace is on, each operation of the host and of the device is recorded in memory: "
    "short steps take longer, memory grows, and stop_trace takes as long as there is to write.",
    "Profile some steps after the first ones: jax.profiler.start_trace before them, stop_trace after them. Figures "
    "taken with it on are not those of the program.",
)
def profiler_on(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    """Yield a finding if the program had the profiler on for most of its own time, or never switched it off."""
    windows = result.sample_windows
    whole = sum(map(_own_seconds, windows))
    took = sum(window.profiled_seconds for window in windows)
    if not took or took <= _MOSTLY * whole:
        return
    last = windows[-1]
    on_at_end = last.profiled_seconds >= _STILL * (last.monotonic_seconds - last.began_seconds)
    never = ", and never stopped" if result.ended and on_at_end else ""
    yield Finding(
        f"jax.profiler was on for {seconds(took)}, {percent(min(1.0, took / whole))} of the program's own time{never}",
        (next((window.profiled_from for window in reversed(windows) if window.profiled_from), None),),
    )


def _own_seconds(window: ProgramSampled) -> float:
    """Return the seconds of a sample window in which nothing was imported."""
    return sum(took for state, took in window.states.items() if state != "import")


@check(
    "the persistent compilation cache is off",
    "The same programs are compiled again at every start.",
    "Set JAX_COMPILATION_CACHE_DIR to a permanent folder.",
)
def cache_off(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    rows = [row for row in result.compiles if row.cache == "off"]
    times = [(row.compile_seconds or 0.0, row.count) for row in rows]
    took = sum(spent for spent, _ in times)
    if took < CACHE_SECONDS:
        return
    kept_seconds = sum(spent for spent, count in times if spent >= CACHE_KEEPS_SECONDS * count)
    small = (
        " Most of them compile in under 1 s: to keep those too, set jax_persistent_cache_min_compile_time_secs to 0."
        if kept_seconds < took / 2
        else ""
    )
    of_function = totals((row.function, row.compile_seconds or 0.0) for row in rows)
    most = max(of_function, key=lambda function: of_function[function])
    share = of_function[most] / took
    mostly = f", {percent(share)} of them for `{safe(most)}`" if share >= NAMED_SHARE else ""
    yield Finding(
        f"the persistent compilation cache is off: {seconds(took)} of backend compilation are repeated at each start"
        f"{mostly}",
        own_fix="Set JAX_COMPILATION_CACHE_DIR to a permanent folder, or call "
        f"jax.config.update('jax_compilation_cache_dir', ...) before the first compilation.{small}",
        seconds=took,
    )


@check(
    "the persistent compilation cache has a new folder at each start",
    "A cache keeps what was compiled for the next start, which looks into another folder: nothing is ever found, and "
    "each start also writes its programs.",
    "Give it one permanent folder: jax.config.update('jax_compilation_cache_dir', ...) with a fixed path, or "
    "JAX_COMPILATION_CACHE_DIR in the environment.",
)
def cache_never_found(result: ProgramResult, claims: Claims) -> Iterator[Finding]:
    """Yield a finding if no program was found in the cache, and its folder is another one at each start. The first
    start with a permanent folder finds nothing either."""
    why = next((window.new_cache for window in reversed(result.sample_windows) if window.new_cache), "")
    missed = [row for row in result.compiles if row.cache == "miss"]
    took = sum(row.compile_seconds or 0.0 for row in missed)
    if not why or any(row.cache == "hit" for row in result.compiles) or took < NEW_CACHE_SHARE * claims.work:
        return
    locations = (window.debug_settings_at.get(_CACHE_FOLDER) for window in reversed(result.sample_windows))
    yield Finding(
        f"the persistent compilation cache had none of {counted(sum(row.count for row in missed), 'program')}, and its "
        f"folder is new at each start ({_NEW_FOLDERS.get(why, why)}): {seconds(took)} of backend compilation are "
        "repeated each time",
        (next(filter(None, locations), None),),
        seconds=sum(row.compile_seconds or 0.0 for row in claims.free_rows(missed)) or None,
    )


IMPORT_SHARE = 0.25
"""Share of the program's time since JAX was imported from which an import is reported: a long run has none."""
IMPORT_SECONDS = 0.5
"""Seconds below which an import is brief beside the start of Python and JAX, whatever its share of a program that ended
soon after."""
_JAX_SHARE = 0.05
"""Share of the time below an import in which JAX works from which the import is the program itself."""


@check(
    "an import takes much of the program's time",
    "The imported module computes, reads files or imports others when it is imported, at every start.",
    "Import it where it is needed, if a run may not need it, or import the part of it that is needed; what the module "
    "computes or reads at its top level belongs into a function, or into a file that is loaded.",
)
def slow_import(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    """Yield each import that takes a large share. Modules that were imported before JAX were not sampled."""
    sampled = [window for window in result.sample_windows if window.samples]
    whole = sum(took for window in sampled for took in window.states.values())
    imports = [each for each in result.statements if each.kind == IMPORTS]
    took = totals((each.where, each.seconds) for each in imports)
    jax_took = totals((each.where, each.jax_seconds) for each in imports)
    for where, spent in took.items():
        if spent < max(IMPORT_SECONDS, IMPORT_SHARE * whole) or jax_took[where] > _JAX_SHARE * spent:
            continue
        module = next((each.name for each in imports if each.where == where and each.name), "")
        yield Finding(
            f"{f'importing {safe(module)}' if module else 'an import'} took about {seconds(spent, 2)}, "
            f"{percent(spent / whole)} of the program's time since JAX was imported",
            (where,),
            seconds=spent,
            estimate=True,
            at_most=True,  # a run that needs the module needs most of that time
        )
