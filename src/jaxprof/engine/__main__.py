"""The start of the engine's process: in the user's interpreter, where jaxprof is not installed.

This file is started by path. It registers the package under its own name without putting the folder's neighbours (the
packages of jaxprof's environment) on the import path, because the user's numpy and jax are the ones that count. The
client starts no Python that is too old for it (`runner.interpreter`).
"""

import os
import sys

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


if __name__ == "__main__":
    make_importable()
    from jaxprof.engine.main import main

    main(sys.argv[1:])
