"""The public Python API: profile a function, record the program that calls it, load a session, look at it.

    import jaxprof

    session = jaxprof.profile(step, params, batch)
    print(session)
    session.save("step.jaxprof")

    with jaxprof.record("run.jaxprof"):
        train()

It uses the same engine as the terminal app, without the child process: the caller's jax, devices and settings.
"""
