"""The work of the pytest plugin: a function called in a test, its program, its compilations, and limits on them.

`pytest_jaxprof`, which pytest loads, imports this package for the first test that uses it. It runs in the process of
the tests, with their jax, and starts every test with empty caches of JAX: what a test finds must not depend on earlier
tests.
"""
