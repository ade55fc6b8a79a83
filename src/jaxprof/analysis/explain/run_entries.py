"""The catalogue's entries for measured runs and comparisons: failures, wrong results, and what makes times doubtful."""

from __future__ import annotations

from typing import Final

from jaxprof.analysis.explain.entry import CatalogueEntry


def _run(
    code: str, title: str, means: str, fix: str, page: str = "measuring.md#what-warnings-the-engine-raises"
) -> CatalogueEntry:
    return CatalogueEntry(code, "run", title, means, fix, page)


def _comparison(code: str, title: str, means: str, fix: str) -> CatalogueEntry:
    return CatalogueEntry(code, "comparison", title, means, fix, "comparing.md")


ENTRIES: Final = (
    _run(
        "run-failed",
        "a run failed",
        "It ended with an error, crashed or ran past its limit: there are no times, or not all of them.",
        "Mend what its error names, and run it again.",
    ),
    _run(
        "out-of-memory",
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
         "Close other programs, fix the clocks, or give a larger --budget."),
    _run("no_interval", "no interval can be given", "Too few samples, or samples too much like their neighbours.",
         "More --launches, or a larger --budget."),
    _run("few_samples", "too few samples", "Under five calls were timed.",
         "A larger --budget, or a smaller size."),
    _run("drift", "times drift", "The second half of the samples is faster or slower than the first.",
         "The machine changed during the run: run it again."),
    _run("two_modes", "two typical times", "The samples have two modes: the median is typical of neither.",
         "Look at the distribution: threads, clocks, other work or a cache alternate."),
    _run("outliers", "many samples far from the median", "More than a tenth of the samples.",
         "Look at the distribution before you trust a single number."),
    _run("busy_machine", "other processes used the cores", "Times are an upper bound.",
         "Run again on an idle machine."),
    _run("disturbed", "the others change its time",
         "Alone it takes another time than in turns with the others: figures and speed-up are those of the runs alone.",
         "Find out what the others leave behind: memory, caches, clocks."),
    _run("unsettled", "calls do not settle within a turn", "Later calls of a turn differ from earlier ones.",
         "Look at the samples in their order: the time of a call depends on what ran before it."),
    _run("not_idle", "a process worked while others were measured", "It holds an accelerator, and cannot be frozen.",
         "Compare the runs measured alone."),
    _run("throttled", "the device throttled its clocks", "Its times are those of a slower device.",
         "Check temperature and power limit."),
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
    _run("over_budget", "one call is longer than the budget", "There are few samples.",
         "A larger --budget, or a smaller size."),
    _run("max_seconds_reached", "the hard cap came first", "Later phases were not measured.",
         "A larger --max-seconds."),
    _run("worker_silent", "a process gave no sign of life", "It was ended after --max-silence.",
         "Give a longer --max-silence, or a smaller size."),
    _run("dispatch-bound-call", "a call takes as long to start as to run",
         "On an accelerator the call returns before its work is done. Where returning takes most of a call, the host "
         "is what limits it.",
         "Give one call more to do (lax.scan, vmap), pass fewer arrays, or call it ahead without waiting.",
         "measuring.md#the-phases"),
    _run("copies-outweigh-work", "copies take longer than the call",
         "Copying the arguments to the device and the result back takes longer than the call itself.",
         "Keep arrays on the device between calls, and let it do more with each copy.", "measuring.md#the-phases"),
    _run("slow-autotuning", "XLA tries out kernels while compiling",
         "The autotuner runs candidates of GEMMs, convolutions and fusions on the device, which can be most of a "
         "compile.",
         "Keep its results: the persistent compilation cache does. XLA_FLAGS=--xla_gpu_autotune_level=0 switches it "
         "off, and slower kernels may be chosen.", "traces.md#compiles"),
    _run("slow-llvm", "LLVM takes most of a compile",
         "LLVM makes machine code of each kernel: large fusions and many kernels take it long, above all on a CPU.",
         "For a program that compiles longer than it runs XLA_FLAGS=--xla_backend_optimization_level=0 lets LLVM do "
         "less: the compile is shorter, and the program may run slower. The persistent compilation cache keeps the "
         "result; a scan in place of a Python loop makes fewer kernels.", "traces.md#compiles"),
    _run("slow-constant-folding", "XLA computes constants while compiling",
         "What follows from constants alone is computed by the compiler, slowly: large closed-over arrays, or large "
         "iotas and tables.",
         "Pass the arrays as arguments. XLA_FLAGS=--xla_disable_hlo_passes=constant_folding switches the pass off: "
         "then each call computes them.", "traces.md#compiles"),
    _run("slow-ptx", "assembling the kernels takes long",
         "ptxas turns each kernel's PTX into machine code; large kernels, and many of them, take long.",
         "The persistent compilation cache keeps the result; unrolled loops and huge fusions make PTX large.",
         "traces.md#compiles"),
    _comparison(
        "slower",
        "a side is slower",
        "Measured in turns with A, and slower by more than the margin, with the control within it.",
        "Look at the kernels that grew.",
    ),
    _comparison(
        "inconclusive",
        "the comparison is undecided",
        "The interval of the ratio holds both faster and slower.",
        "More launches.",
    ),
)  # fmt: skip
