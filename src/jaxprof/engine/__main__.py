"""The start of the engine's process: in the user's interpreter, where jaxprof is not installed.

This file is started by path. It registers the package under its own name without putting the folder's neighbours (the
packages of jaxprof's environment) on the import path, because the user's numpy and jax are the ones that count. Any
Python since 3.6 must be able to read it, so that it can report which version is needed.
"""

import os
import sys

OLDEST_PYTHON = (3, 11)
HERE = os.path.dirname(os.path.abspath(__file__))


def make_importable() -> None:
    """Register `jaxprof`, found by this file's location, as a package. Nothing else becomes importable."""
    import importlib.util

    if sys.path and os.path.abspath(sys.path[0] or ".") == HERE:
        del sys.path[0]  # the script's folder: our module names must not shadow the user's
    if "jaxprof" in sys.modules:
        return
    package = os.path.dirname(HERE)
    spec = importlib.util.spec_from_file_location(
        "jaxprof", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["jaxprof"] = module
    spec.loader.exec_module(module)


def refuse_old_python(arguments: "list[str]") -> None:
    """Answer the first request with the required version, in the format of the event pipe."""
    import json

    events = int(arguments[arguments.index("--events-fd") + 1])
    control = int(arguments[arguments.index("--control-fd") + 1])
    with os.fdopen(control, "rb") as requests:
        request = json.loads(requests.readline().decode() or "{}")
    reply = {
        "type": "run_finished" if request.get("request") == "RunRequest" else "answer",
        "error": f"the engine needs Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer, "
        f"{sys.executable} is {sys.version.split()[0]}",
        "advice": "Name another interpreter with --python PATH.",
    }
    if reply["type"] == "run_finished":
        reply.update(run=request.get("run", ""), status="failed", traceback="")
    os.write(events, json.dumps(reply).encode() + b"\n")


if __name__ == "__main__":
    if sys.version_info < OLDEST_PYTHON:
        refuse_old_python(sys.argv)
    else:
        make_importable()
        from jaxprof.engine.main import main

        main(sys.argv[1:])
