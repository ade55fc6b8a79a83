"""The catalogue's entries for recorded programs: what `jaxprof script` and `jaxprof.record` find."""

from __future__ import annotations

from typing import Final

from jaxprof.analysis.explain.entry import CatalogueEntry


def _entry(code: str, title: str, means: str, fix: str, page: str = "programs.md#findings") -> CatalogueEntry:
    return CatalogueEntry(code, "program", title, means, fix, page)


ENTRIES: Final = (
    _entry(
        "program_failed",
        "the program failed",
        "An exception, a signal or an exit code other than 0 ended it. Its figures are those of the time until then. "
        "The line is the innermost one of the user's own code; after a signal, that of the last samples.",
        "Mend what the error names. Out of memory: smaller sizes, donated arguments, jax.checkpoint.",
    ),
    _entry(
        "stopped",
        "the program did not run for a while",
        "A signal (SIGSTOP, ctrl+z, a read from the terminal in the background) stopped the process until SIGCONT, or "
        "its container was frozen, or the machine slept. That time is no line's work, and is left out of every share.",
        "Look for what stopped it. In a job the others wait for it all that time.",
    ),
    _entry(
        "debug_settings",
        "a setting that helps to find faults is on",
        "jax_debug_nans, jax_debug_infs, jax_disable_jit, jax_disable_most_optimizations and jax_check_tracer_leaks "
        "make calls or compilations slower on purpose. Figures taken with them are not those of the program.",
        "Turn it off, and measure again. jax.debug_nans() as a context manager looks at a part of the program.",
    ),
    _entry(
        "caches_cleared",
        "JAX's caches were cleared",
        "jax.clear_caches() dropped programs that were needed again, so they were traced and compiled once more.",
        "Call it only between parts that share no program, or run those parts in separate processes.",
    ),
    _entry(
        "closure_varies",
        "a new function over other values each time",
        "A factory makes the compiled function anew, closing over values that change: each value is a new program.",
        "Call the factory once, before the loop, and pass what changes as an argument.",
    ),
    _entry(
        "recompile_in_loop",
        "a new function object for each call",
        "JAX keeps programs by function object. A lambda, partial, nested def or jax.jit(...) made in the loop is a "
        "new object each time, so nothing is found in the cache and every pass compiles.",
        "Make it once, at module level or before the loop; pass what changes as arguments.",
    ),
    _entry(
        "varying_shapes",
        "compiled again for other shapes",
        "Each shape of an argument is a program of its own: trace, lower and compile are paid for each.",
        "Pad and mask to one shape or a few fixed ones (the next power of two), or drop the last short batch.",
    ),
    _entry(
        "static_argument_varies",
        "compiled again for other static values",
        "Each value of an argument in static_argnums or static_argnames is a program of its own. Objects without "
        "__eq__ and __hash__ are a new value each time.",
        "Pass it as an array where it is only computed with; give objects __eq__ and __hash__; use lax.cond, "
        "lax.switch or fori_loop where it steers control flow.",
    ),
    _entry(
        "weak_type_flips",
        "a Python number in one call, an array in the next",
        "A Python number is weakly typed; an array is not. A function that is given now one and now the other is "
        "compiled for both.",
        "Give the argument one dtype from the first call on: jnp.float32(x), jnp.asarray(x, dtype=...).",
    ),
    _entry(
        "arguments_vary",
        "compiled again for other dtypes, structures, shardings or settings",
        "Anything that distinguishes the arguments besides their values makes another program.",
        "Keep dtype, tree structure, sharding and jax.config the same from the first call on.",
    ),
    _entry(
        "cache_thrashing",
        "one program misses the persistent cache again and again",
        "The persistent compilation cache is on, and the same function with the same arguments is not found in it: "
        "its program differs each time, was evicted, or compiles too fast to be kept.",
        "Pass what changes as an argument, raise the size limit, or set "
        "jax_persistent_cache_min_compile_time_secs to 0.",
    ),
    _entry(
        "large_program",
        "so many operations that making the program takes long",
        "Tracing unrolls Python loops: each layer, step or example becomes operations of its own, and the time of "
        "tracing, lowering and compiling grows with them.",
        "Replace the Python loop with jax.lax.scan, fori_loop or jax.vmap, so that its body is compiled once.",
    ),
    _entry(
        "callback_in_loop",
        "a compiled function calls Python in each pass",
        "jax.debug.print, jax.debug.callback, io_callback and pure_callback leave the compiled function: their "
        "arguments are copied to the host, Python runs, and what depends on it waits.",
        "Call back every N passes (jax.lax.cond around it), return the values and use them after the loop, or compute "
        "with jax.numpy what the callback computes.",
    ),
    _entry(
        "repeated_fetch",
        "large arrays are copied to the host in each pass",
        "np.asarray, jax.device_get or saving inside the loop waits for the device and copies the arrays each time.",
        "Fetch every N passes or after the loop; let a thread fetch and write checkpoints.",
    ),
    _entry(
        "host_sync",
        "the host waits for a value in each pass",
        "float(), .item(), print or a comparison needs a number on the host. JAX dispatches ahead of the device; a "
        "fetched value ends that, and the device idles while the host prepares the next step.",
        "Keep the values as arrays and fetch them every N steps or after the loop (jax.device_get of a list); print "
        "with jax.debug.print.",
    ),
    _entry(
        "numpy_argument",
        "NumPy arrays are copied to the device at each call",
        "A NumPy array passed to a compiled function is copied at every call, even if it never changes.",
        "jax.device_put what stays the same once, before the loop; keep data on the device and index it there.",
    ),
    _entry(
        "op_by_op_loop",
        "operations run one by one, outside any jit",
        "Each operation outside jit is a program of its own with a dispatch of its own; nothing is fused.",
        "Put the operations into one function with jax.jit.",
    ),
    _entry(
        "implicit_transfers",
        "copies between host and device that nobody asked for",
        "Python numbers and NumPy arrays passed to compiled functions, and NumPy functions applied to jax arrays, "
        "copy between host and device implicitly.",
        "Place arrays on the device once (jax.device_put) and fetch values together and less often.",
    ),
    _entry(
        "data_waits",
        "the loop waits for its data",
        "The device is idle until the host has made or fetched the next batch.",
        "Prepare the next batch while the device works: a thread, worker processes, a queue, or all batches at once "
        "before the loop.",
    ),
    _entry(
        "host_work",
        "the loop works on the host for nothing that goes to the device",
        "Logging, plots, files, statistics or sleeping inside the loop take their time from every pass.",
        "Do it every N passes, after the loop, or in another thread or process.",
    ),
    _entry(
        "dispatch_bound",
        "calling the steps is the work",
        "A call of a compiled function costs some 5 to 20 µs on the host, whatever it computes, and more for each "
        "leaf of its arguments, used or not. nnx.jit and eqx.filter_jit take modules apart in Python in each call, "
        "which can be milliseconds. Steps shorter than that leave the device idle.",
        "Give one call more to do: many passes in lax.scan or fori_loop, many problems in vmap; pass fewer, larger "
        "arrays; nnx.cached_partial, or split or partition the model once and jax.jit a function of its arrays.",
    ),
    _entry(
        "many_tiny_jits",
        "many compilations of tiny programs",
        "Each of many small functions or single operations is traced and compiled on its own, which takes longer than "
        "running it ever will.",
        "Call them from one function under jax.jit, initialisation included.",
    ),
    _entry(
        "slow_tracing",
        "tracing the Python code takes long",
        "Tracing runs the Python function; loops over layers or examples and NumPy work inside it are paid at each "
        "compilation.",
        "Use lax.scan or vmap instead of Python loops, and compute beforehand what does not depend on the arguments.",
    ),
    _entry(
        "captured_constants",
        "large arrays closed over become constants",
        "An array that a function closes over is copied into its program: by every compilation, and in device memory "
        "once for each program.",
        "Pass the arrays as arguments.",
    ),
    _entry(
        "arrays_grow",
        "live arrays become more and more",
        "Something keeps what each step makes: a list of losses or states, a closure, a cache. Memory runs out in a "
        "longer run.",
        "Keep numbers instead of arrays (jax.device_get every N steps), and drop references to old states.",
    ),
    _entry(
        "unused_donation",
        "donated arrays that no output can take",
        "A donated argument is given up by the caller; where no output has its shape and dtype, no memory is saved.",
        "Donate only arrays that come back with the same shape and dtype.",
    ),
    _entry(
        "compile_dominates",
        "most of the run was compiling",
        "More than half of the wall time went into tracing, lowering and compiling. True of nearly every short run.",
        "Compile fewer programs, keep them in the persistent cache, or run longer.",
    ),
    _entry(
        "cache_off",
        "the persistent compilation cache is off",
        "The same programs are compiled again at every start.",
        "Set JAX_COMPILATION_CACHE_DIR to a permanent folder.",
    ),
)
