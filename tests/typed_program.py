"""A user's program, for type checkers in strict mode: each public name is used as its documentation says.

An error that is expected, and not found, is one of theirs, too.
"""

import jaxprof


@jaxprof.workload(inputs=["f32[4]"])
def double(x: float) -> float:
    return 2 * x


def main() -> None:
    try:
        session: jaxprof.Session = jaxprof.profile(double, 1.0)
        session.save("double.jaxprof")
    except jaxprof.UsageError as error:
        print(error.what, error.hint)
    except (jaxprof.FileRefusedError, jaxprof.StorageError) as error:
        print(error.what)
    with jaxprof.record("run.jaxprof") as recording:
        print(recording.note, double(2.0))
    kept: jaxprof.Session = jaxprof.load("run.jaxprof")
    print([module.text("hlo") for module in jaxprof.load_hlo("run.jaxprof")])
    print(kept, recording.session, jaxprof.__version__)
    wrong: int = jaxprof.load("run.jaxprof")  # type: ignore[assignment]
    print(wrong, jaxprof.proflie)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
