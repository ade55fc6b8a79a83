"""Modules for the tests of the analysis: JAX programs compiled here, and HLO text written by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import jax
import jax.numpy as jnp

from jaxprof.hlo.model import Module
from jaxprof.hlo.read.parse import module


def f32(*sizes: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


def bf16(*sizes: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, jnp.bfloat16)


def s32(*sizes: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, jnp.int32)


@functools.cache
def compiled(function: Callable[..., Any], *arguments: Any) -> Module:
    """The optimised module of `function`, as its text says; compiled once for all tests of a process."""
    return module(jax.jit(function).lower(*arguments).compile().as_text())


def lowered(function: Callable[..., Any], *arguments: Any) -> Module:
    """The module before optimisation: the shapes and operations of the program, whatever the backend makes of them."""
    return module(jax.jit(function).lower(*arguments).as_text("hlo"))


def written(text: str) -> Module:
    """A module from its lines; without a header it is an optimised one."""
    lines = dedent(text).strip()
    return module(lines if lines.startswith("HloModule") else f"HloModule by_hand, is_scheduled=true\n\n{lines}\n")
