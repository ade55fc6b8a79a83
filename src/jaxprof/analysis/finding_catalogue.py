"""A table of every finding that jaxprof reports, from any source: what it means, how to fix it, and where to read more.

`jaxprof explain --code` prints an entry. A code may be written with hyphens or underscores. The figures of a case are
not here: they are in the finding itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from jaxprof.base.errors import unknown_name
from jaxprof.base.values import frozen
from jaxprof.finding import Finding

SOURCES: dict[str, str] = {
    "program": "recorded programs",
    "job": "jobs of several processes",
    "hlo": "compiled programs",
    "capture": "captures and profiles",
    "run": "measured runs",
    "comparison": "comparisons",
    "trust": "what makes a capture doubtful",
}
"""Sources of findings, each with its text."""


@frozen
class CatalogueEntry:
    """The description of a finding that holds for all of its cases; the figures of a case are in its own finding."""

    code: str
    """Code of the finding, as its source writes it."""
    title: str
    means: str
    fix: str
    source: str
    """One of `SOURCES`."""
    page: str
    """Page of the documentation with its heading, such as `programs.md#findings`."""


_program = partial(CatalogueEntry, source="program", page="programs.md#findings")
_job = partial(CatalogueEntry, source="job", page="jobs.md#who-is-late")
_capture = partial(CatalogueEntry, source="capture", page="traces.md#steps")
_run = partial(CatalogueEntry, source="run", page="measuring.md#what-warnings-the-engine-raises")
_comparison = partial(CatalogueEntry, source="comparison", page="comparing.md")
_OF_PROGRAMS = (
    _program(
        "program_failed",
        "the program failed",
        "An exception, a signal or an exit code other than 0 ended it. Its figures are those of the time until then. "
        "The line is the innermost one of the user's own code; after a signal, that of the last samples.",
        "Fix what the error names. Out of memory: smaller sizes, donated arguments, jax.checkpoint.",
    ),
    _program(
        "paused",
        "the program was paused",
        "A signal (SIGSTOP, ctrl+z, a read from the terminal in the background) paused the process until SIGCONT, or "
        "its container was frozen, or the machine slept. That time is no line's work, and is left out of every share.",
        "Look for what paused it. Processes of a job that exchange data with it wait all that time.",
    ),
    _program(
        "debug_settings",
        "a debugging option is on",
        "jax_debug_nans, jax_debug_infs, jax_disable_jit, jax_disable_most_optimizations and jax_check_tracer_leaks "
        "make calls or compilations slower on purpose. Figures taken with them are not those of the program.",
        "Turn it off, and measure again. jax.debug_nans() as a context manager looks at a part of the program.",
    ),
    _program(
        "caches_cleared",
        "JAX's caches were cleared",
        "jax.clear_caches() dropped programs that were needed again, so they were traced and compiled once more.",
        "Leave the caches alone while the program still needs them; where they take too much memory, compile for "
        "fewer shapes, or run the parts in separate processes.",
    ),
    _program(
        "closure_varies",
        "a factory makes a new function with new values each time",
        "A factory makes the compiled function anew, closing over values that change: each value is a new program.",
        "Call the factory once, before the loop, and pass what changes as an argument.",
    ),
    _program(
        "recompile_in_loop",
        "a new function object for each call",
        "JAX keeps programs by function object. A lambda, partial, nested def or jax.jit(...) made in the loop is a "
        "new object each time, so nothing is found in the cache and every iteration compiles.",
        "Make it once, at module level or before the loop; pass what changes as arguments.",
    ),
    _program(
        "varying_shapes",
        "compiled again for other shapes",
        "Each shape of an argument is a program of its own: trace, lower and compile are paid for each.",
        "Pad and mask to one shape or a few fixed ones (the next power of two), or drop the last short batch.",
    ),
    _program(
        "static_argument_varies",
        "compiled again for other static values",
        "Each value of an argument in static_argnums or static_argnames is a program of its own. Objects without "
        "__eq__ and __hash__ are a new value each time.",
        "Pass it as an array where it is only computed with; give objects __eq__ and __hash__; use lax.cond, "
        "lax.switch or fori_loop where it steers control flow.",
    ),
    _program(
        "weak_type_flips",
        "a Python number in one call, an array in the next",
        "A Python number is weakly typed; an array is not. A function that is given now one and now the other is "
        "compiled for both.",
        "Give the argument one dtype from the first call on: jnp.float32(x), jnp.asarray(x, dtype=...), "
        "jnp.zeros((), jnp.int32) for a counter that starts at 0, or jnp.full(shape, 0.1, jnp.float32): without a "
        "dtype, jnp.full and jnp.asarray keep a Python number's weak type.",
    ),
    _program(
        "arguments_vary",
        "compiled again for other dtypes, structures, shardings or settings",
        "Anything that distinguishes the arguments besides their values makes another program.",
        "Keep dtype, tree structure, sharding and jax.config the same from the first call on.",
    ),
    _program(
        "large_program",
        "so many operations that compiling the program takes long",
        "Tracing unrolls Python loops: each layer, step or example becomes operations of its own, and the time of "
        "tracing, lowering and compiling grows with them.",
        "Most operations of a program this large are the same ones over and over: layers, steps or stages that tracing "
        "wrote out one by one. jax.lax.scan, fori_loop or jax.vmap over them compiles their body once; otherwise keep "
        "the program in the persistent cache.",
    ),
    _program(
        "callback_in_loop",
        "a compiled function calls Python in each iteration",
        "jax.debug.print, jax.debug.callback, io_callback and pure_callback leave the compiled function: their "
        "arguments are copied to the host, Python runs, and what depends on it waits.",
        "Call back every N iterations (jax.lax.cond around jax.debug.print or the callback), or return the values and "
        "use them after the loop; what jax.numpy can compute need not leave the compiled function.",
    ),
    _program(
        "repeated_fetch",
        "large arrays are copied to the host in each iteration",
        "np.asarray, jax.device_get or saving inside the loop waits for the device and copies the arrays each time.",
        "Fetch large arrays every N iterations, or after the loop; for checkpoints have a thread fetch and write them "
        "(orbax's AsyncCheckpointer), so that the loop goes on.",
    ),
    _program(
        "host_sync",
        "the host waits for a value in each iteration",
        "float(), .item(), print or a comparison needs a number on the host. JAX dispatches ahead of the device; a "
        "fetched value ends that, and the device idles while the host prepares the next step.",
        "While the host waits, it cannot dispatch the next step: keep the values as arrays and fetch them every N "
        "steps or after the loop (jax.device_get of a list), and print with jax.debug.print.",
    ),
    _program(
        "numpy_argument",
        "NumPy arrays are copied to the device at each call",
        "A NumPy array passed to a compiled function is copied at every call, even if it never changes.",
        "Put what stays the same on the device once, before the loop (jax.device_put); keep a whole data set there "
        "and index it in the compiled function, so that only new data is copied, ahead of its step.",
    ),
    _program(
        "op_by_op_loop",
        "operations run one by one, outside any jit",
        "Each operation outside jit is a program of its own with a dispatch of its own; nothing is fused.",
        "Put the operations into one function with jax.jit.",
    ),
    _program(
        "implicit_transfers",
        "implicit copies between host and device",
        "Python numbers and NumPy arrays passed to compiled functions, and NumPy functions applied to jax arrays, "
        "copy between host and device implicitly.",
        "Place arrays on the device once (jax.device_put) and fetch values together and less often.",
    ),
    _program(
        "data_waits",
        "the loop waits for its data",
        "The device is idle until the host has made or fetched the next batch.",
        "Prepare the next batch while the device works: in a thread or in processes (a queue, grain, a DataLoader with "
        "workers), or prepare all batches once before the loop where they fit into memory.",
    ),
    _program(
        "host_work",
        "host work in the loop that the device does not need",
        "Logging, plots, files, statistics or sleeping inside the loop make every iteration longer.",
        "Do it every N iterations, after the loop, or in a separate thread or process; computations on arrays can go "
        "into the compiled function.",
    ),
    _program(
        "dispatch_bound",
        "much of the loop's time goes to calling compiled functions",
        "A call of a compiled function costs some 5 to 20 µs on the host, whatever it computes, and more for each "
        "leaf of its arguments, used or not. nnx.jit and eqx.filter_jit take modules apart in Python in each call, "
        "which can be milliseconds. Steps shorter than that leave the device idle.",
        "Give one call more to do: many iterations in lax.scan or fori_loop, many problems in vmap; pass fewer, larger "
        "arrays; nnx.cached_partial, or split or partition the model once and jax.jit a function of its arrays.",
    ),
    _program(
        "many_tiny_jits",
        "many compilations of tiny programs",
        "Each of many small functions or single operations is traced and compiled on its own, which takes longer than "
        "running it ever will.",
        "Call those in your own code (initialisation included) from one function under jax.jit: one program "
        "compiles once and is dispatched once. For those that a library calls, the persistent cache with "
        "jax_persistent_cache_min_compile_time_secs at 0 keeps them for the next start.",
    ),
    _program(
        "slow_tracing",
        "tracing the Python code takes long",
        "Tracing runs the Python function; loops over layers or examples and NumPy work inside it are paid at each "
        "compilation.",
        "Use lax.scan or vmap instead of Python loops over layers, steps or examples, "
        "and compute what does not depend on the arguments beforehand, with NumPy.",
    ),
    _program(
        "captured_constants",
        "large arrays closed over become constants",
        "An array that a function closes over is copied into its program: by every compilation, which may fold it for "
        "minutes, and in device memory once for each program.",
        "Pass the arrays as arguments instead of closing over them.",
    ),
    _program(
        "arrays_grow",
        "live arrays keep growing in number or size",
        "Something keeps what each step makes: a list of losses, states or gradients, a closure, a cache. Memory runs "
        "out in a longer run.",
        "Keep numbers (jax.device_get every N steps) instead of arrays, and drop references to old states.",
    ),
    _program(
        "unused_donation",
        "donated arrays that no output can take",
        "A donated argument is given up by the caller; where no output has its shape and dtype, no memory is saved.",
        "Donate (donate_argnums) only arrays that come back with the same shape and dtype, or return the new "
        "array with the dtype of the old one.",
    ),
    _program(
        "compile_dominates",
        "most of the run was compiling",
        "More than half of the wall time went into tracing, lowering and compiling. True of nearly every short run.",
        "Compile fewer programs (the ledger shows what is compiled again), and keep them in the persistent cache "
        "(JAX_COMPILATION_CACHE_DIR); in a longer run compiling is a smaller share.",
    ),
    _program(
        "cache_off",
        "the persistent compilation cache is off",
        "The same programs are compiled again at every start.",
        "Set JAX_COMPILATION_CACHE_DIR to a permanent folder.",
    ),
)


_OF_JOBS = (
    _job(
        "process_failed",
        "the process that failed first",
        "It raised an exception or was killed, and the other processes of the job ended because of that.",
        "The end of its output is in its session: jaxprof open FOLDER/process-00002.jaxprof.",
    ),
    _job(
        "failed_after",
        "processes that ended because another process failed",
        "Their errors are consequences: a collective or the coordinator lost its peer.",
        "Look at the process that failed first.",
    ),
    _job(
        "process_paused",
        "a process was paused",
        "A signal paused it (SIGSTOP, SIGTSTP), or its container was frozen, or its machine slept. Processes "
        "that exchange data with it wait in the next collective.",
        "Look for what pauses it: a batch system that suspends, ctrl+z, a machine that sleeps. No line of the "
        "program takes this time.",
    ),
    _job(
        "recompiles_alone",
        "one process compiles again what the others do not",
        "It compiled a function again at least twice as often as any other process, and two times more. The others "
        "wait for it meanwhile.",
        "The ledger of its session has the reason for each compilation: mostly shapes that occur only in its data. "
        "Pad its batches, or drop the remainder.",
    ),
    _job(
        "recompiles",
        "several processes compile the same function again",
        "Each compiled it again at least three times, or for a second, and for a hundredth of its wall time or more.",
        "The ledger of each session has the reason for each compilation, and jaxprof explain of one of them the fix.",
    ),
    _job(
        "straggler",
        "one process is late by its own work",
        "Its own work on the host (data, Python, dispatch, copies) takes at least 5 % of the loop more than on the "
        "others, by the CPU clocks of their main threads if known. The difference is significant in a t test at 1 % "
        "for the whole job. All processes have the same time per step, because the others wait for it in a "
        "collective.",
        "Its session has the lines. Data: the shard, the disk or the network of that host. Python: logging, "
        "checkpoints, metrics of one process, or a busy host.",
    ),
    _job(
        "throttled_device",
        "one device is held back by its temperature or power",
        "Its clock is more than 10 % below the median of the other devices, and in half or more of its readings, taken "
        "twice a second while it was busy, it gave a reason for throttling.",
        "Look at the cooling, the power limit and the neighbours of that device. The other devices wait for it in each "
        "collective.",
    ),
    _job(
        "exposed_exchange",
        "the devices of a job only exchange data for much of the time",
        "In captures of the same steps the exchange of its collectives, without waiting for a late process, takes a "
        "tenth of the time or more in which the devices run no other kernel.",
        "Exchange less (reduce-scatter instead of all-reduce, bf16 gradients, one exchange after several small "
        "steps), put many small ones together, or let them run beside work that does not need them (XLA's "
        "latency-hiding scheduler).",
    ),
    _job(
        "slow_device",
        "one process arrives last at the collectives, and its host does not explain it",
        "In captures of the same steps it mostly arrives at a collective later than the middle one of the others, by "
        "5 % of a step or more, significantly (in a test at 1 %) and in at least eight of ten sections of the captured "
        "time; and neither its own work on the host nor a function that it compiled alone explains it.",
        "Its device has more to compute, or computes more slowly: look at the sizes of its shards, and at its clock, "
        "temperature and neighbours.",
    ),
)


_OF_CAPTURES = (
    _capture(
        "device_idle",
        "the device waits between steps or kernels",
        "For part of each step nothing ran on the device and nothing was about to: the host prepared data, waited for "
        "a value, or did other work.",
        "Record the program (jaxprof script FILE.py) to see which line the host spends this time at; prepare data "
        "ahead, fetch values less often.",
    ),
    _capture(
        "launch_gaps",
        "gaps between kernels of one program",
        "The device was done with one kernel before the next one was launched: kernels shorter than their launch.",
        "Launch fewer, larger kernels: batch with vmap, unroll scans, leave CUDA graphs (command buffers) on.",
    ),
    _capture(
        "exposed_collectives",
        "the device waits for collectives",
        "Time in collectives during which the device computed nothing.",
        "Let them overlap with work that does not need them (XLA's latency-hiding scheduler), exchange less (another "
        "sharding), or exchange in a narrower dtype.",
    ),
    _capture(
        "copies_in_steps",
        "copies between host and device inside the steps",
        "For part of each step the device only copied to or from the host.",
        "Place what stays the same on the device once, copy the next batch ahead, and fetch results less often.",
    ),
)


PAGE_FAULT_FIXES = {
    "NumPy": "write into arrays that are kept (out=), or start Python with MALLOC_MMAP_MAX_=0 and "
    "MALLOC_TRIM_THRESHOLD_=4294967296 (glibc; one of them alone makes it worse).",
    "jit": "donate an argument of the result's shape that nothing needs afterwards (donate_argnums).",
    "Op by op": "compile it with jax.jit, which makes fewer arrays.",
}
"""What avoids page faults, by what allocates: `bench/README.md` has what each saved."""
_OF_RUNS = (
    _run(
        "run_failed",
        "a run failed",
        "It ended with an error, crashed or ran past its limit: there are no times, or not all of them.",
        "Fix what its error names, and run it again.",
    ),
    _run(
        "out_of_memory",
        "the device's memory was not enough",
        "An allocation was refused. The largest buffers of the program say what the memory is made of.",
        "Use a smaller size, donate what is replaced, checkpoint, or shard the largest arrays.",
    ),
    _run(
        "wrong_result",
        "the result is wrong",
        "It differs from the expected one by more than the tolerance: its time means nothing until it is right.",
        "Compare with the `highest` precision variant; look at the number that is furthest off.",
    ),
    _run("noise", "the median is not known well", "Half its 95 % interval is over 5 %.",
         "Close other programs on the machine, fix the clocks, or give a larger --budget."),
    _run("no_interval", "no interval can be given",
         "Fewer than five blocks of calls are independent: there are few, or each is like the one before it.",
         "More --launches give an interval over launches; a larger --budget gives more blocks."),
    _run("few_samples", "too few samples", "Under five calls were timed.",
         "A larger --budget gives more samples; a smaller size makes each call shorter."),
    _run("drift", "times drift", "The second half of the samples is faster or slower than the first.",
         "The machine changed during the run: heat, clocks, or other work. Run it again."),
    _run("two_modes", "two typical times", "The samples have two modes: the median is typical of neither.",
         "Look at the distribution: something alternates, such as threads, clocks, other work, or a cache."),
    _run("outliers", "many samples far from the median", "More than a tenth of the samples.",
         "Look at the distribution before you trust a single number: outliers are kept, and marked."),
    _run("busy_machine", "other processes used the cores", "They used more than 15 % of the cores during the run.",
         "Run it again on an idle machine: until then the times are an upper bound."),
    _run("disturbed", "a call takes a different time in turns with other runs",
         "The other runs affect it: its figures are those of the run alone, and so is its speed-up, unless both sides "
         "are affected alike.",
         "Find out what the others leave behind (memory, caches, clocks) that changes its time."),
    _run("not_of_medians", "the speed-up is not the ratio of the medians",
         "The ratio of the medians lies outside the interval of the speed-up.",
         "Decide by the speed-up: its sides were measured next to each other. More --launches bring both together."),
    _run("unsettled", "calls do not settle within a turn", "Later calls of a turn differ from earlier ones.",
         "The time of a call depends on what ran before it. Look at the samples in their order."),
    _run("page_faults", "the system takes a call's memory back, and gives it again",
         "The kernel maps and zeroes pages at each call, for at least 10 % of its CPU time. glibc does that with each "
         "block above 32 MB, however long a program has been running; JAX on a CPU does it with large results.",
         " ".join(f"{side}: {fix}" for side, fix in PAGE_FAULT_FIXES.items())),
    _run("throttled", "the device throttled its clocks", "Heat or its power limit made it slower during the run.",
         "Check the temperature and the power limit; a throttled device gives the times of a slower one."),
    _run("folded_constants", "XLA computed the result while compiling",
         "Most of the FLOPs that JAX handed over are not in the compiled program: it closes over its inputs, or does "
         "not return what it computes.",
         "Pass the arrays as arguments, and return what you want to measure."),
    _run("dead_code", "costly operations that nothing uses", "XLA removes what reaches no result.",
         "Return the result if you want to measure its time."),
    _run("dtype_narrowed", "JAX computes in a narrower dtype than NumPy", "Without x64, JAX makes float64 float32.",
         "Give float32 to both, or set JAX_ENABLE_X64=1."),
    _run("compiled_again", "compilations where none was expected", "The timed calls compiled: times include it.",
         "Look for a new shape or dtype, or a function made anew at each call."),
    _run("zero_copy", "a copy that moved nothing", "Host and device share the buffer.",
         "On an accelerator the copy costs time; measure it there."),
    _run("not_captured", "kernels were not captured", "The pass under the profiler did not succeed.",
         "Its message says why; times of the call are unaffected."),
    _run("unlike_results", "the sides return different things", "Arrays of other shapes, dtypes or number.",
         "Make both return the same arrays."),
    _run("results_differ", "the sides return different numbers", "They differ by more than rounding explains.",
         "Find out which one is right before choosing the faster one."),
    _run("compile_cached", "trace, lower or compile came from a cache", "Their times are not those of a compile.",
         "Run without --cache, in a fresh process."),
    _run("over_budget", "the first call took longer than the budget", "There are few samples.",
         "A larger --budget, or a smaller size."),
    _run("max_seconds_reached", "the hard cap was reached", "Later phases were not measured.",
         "A larger --max-seconds."),
    _run("worker_silent", "a process gave no sign of its run for a while",
         "It may hang in native code; one that stays silent is ended after --max-silence.",
         "If it only needs longer, give a longer --max-silence, or a smaller size."),
    _run("dispatch_bound_call", "a call takes as long to start as to run",
         "On an accelerator the call returns before its work is done. Where returning takes most of a call, the host "
         "is what limits it.",
         "Give one call more to do (lax.scan, vmap), pass fewer arrays, or call it ahead without waiting.",
         page="measuring.md#the-phases"),
    _run("copies_outweigh_work", "copies take longer than the call",
         "Copying the arguments to the device and the result back takes longer than the call itself.",
         "Keep arrays on the device between calls, and let it do more with each copy.", page="measuring.md#the-phases"),
    _run("slow_autotuning", "XLA tries out kernels while compiling",
         "The autotuner runs candidates of GEMMs, convolutions and fusions on the device, which can be most of a "
         "compile.",
         "Keep its results: the persistent compilation cache does. XLA_FLAGS=--xla_gpu_autotune_level=0 switches it "
         "off, and slower kernels may be chosen.", page="traces.md#compiles"),
    _run("slow_llvm", "LLVM takes most of a compile",
         "LLVM generates the machine code of each kernel, which takes long for large fusions and many kernels, "
         "especially on a CPU.",
         "For a program that compiles longer than it runs XLA_FLAGS=--xla_backend_optimization_level=0 lets LLVM do "
         "less: the compile is shorter, and the program may run slower. The persistent compilation cache keeps the "
         "result; a scan in place of a Python loop makes fewer kernels.", page="traces.md#compiles"),
    _run("slow_constant_folding", "XLA computes constants while compiling",
         "What follows from constants alone is computed by the compiler, slowly: large closed-over arrays, or large "
         "iotas and tables.",
         "Pass the arrays as arguments. XLA_FLAGS=--xla_disable_hlo_passes=constant_folding switches the pass off: "
         "then each call computes them.", page="traces.md#compiles"),
    _run("slow_ptx", "assembling the kernels takes long",
         "ptxas turns each kernel's PTX into machine code; large kernels, and many of them, take long.",
         "The persistent compilation cache keeps the result; unrolled loops and huge fusions make PTX large.",
         page="traces.md#compiles"),
    _comparison(
        "slower",
        "a side is slower",
        "Measured in turns with A, and slower.",
        "Keep A, or fix these kernels: jaxprof compare shows what changed in each.",
    ),
    _comparison(
        "inconclusive",
        "the comparison is undecided",
        "The interval of the ratio holds both faster and slower.",
        "More launches.",
    ),
)  # fmt: skip


_USUAL = {entry.code: entry for entry in (*_OF_PROGRAMS, *_OF_JOBS, *_OF_CAPTURES, *_OF_RUNS)}
"""Findings of programs, jobs, captures and runs: all that most commands look up."""


@cache
def entries() -> dict[str, CatalogueEntry]:
    """Return all entries by code, grouped by source."""
    from jaxprof.hlo.findings.codes import HLO_FINDINGS
    from jaxprof.trace.checks import TRUST

    doubt = "The capture does not show what it seems to show; figures that rest on it may be off."
    of_hlo = [
        CatalogueEntry(code, kind.title, kind.means, kind.fix, "hlo", "hlo.md#findings")
        for code, kind in HLO_FINDINGS.items()
    ]
    of_trust = [
        CatalogueEntry(code, title, doubt, fix, "trust", "traces.md#trust") for code, (title, fix) in TRUST.items()
    ]
    grouped = (*_OF_PROGRAMS, *_OF_JOBS, *of_hlo, *_OF_CAPTURES, *of_trust, *_OF_RUNS)
    return {entry.code: entry for entry in grouped}


def with_fix(finding: Finding) -> Finding:
    """Return a finding with the fix of its entry, unless it has one of its own."""
    return replace(finding, own_fix=find_entry(finding.code).fix) if finding.own_fix is None else finding


def find_entry(code: str) -> CatalogueEntry:
    """Return the entry of a code, written with hyphens or underscores. Raises UsageError with similar codes."""
    if code in _USUAL:
        return _USUAL[code]
    word = code.strip().lower()
    known = entries()
    entry = known.get(word.replace("-", "_"))
    if entry is None:
        raise unknown_name("finding", code, known)
    return entry
