"""What a module's text shows about its kernels: what they are, what they cost, where they came from, why not fused.

    from jaxprof.hlo.kernels.kernels import kernels
    for kernel in kernels(module): ...

Pure functions over `jaxprof.hlo.text.model`; standard library only. Figures are counted from shapes (`docs/hlo.md` says
how), so they are the same on every machine; they give the least time of a kernel, not the time that it took.
"""
