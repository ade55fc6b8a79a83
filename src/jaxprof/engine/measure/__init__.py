"""Runs one variant and times it (stages, transfers, calls): everything in the engine that runs JAX.

It does not own the process: it restores what it changes (configuration, listeners, the garbage collector), prints
nothing, and reports everything as events. Importing it imports neither jax nor numpy, and no more than is needed: a
recorded program uses it only for the environment.
"""
