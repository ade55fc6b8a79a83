"""What shells complete: names of workloads, variants and sessions. Imports no jax; a failure completes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def complete_workload(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Built-in names, and Python files for the user's own functions."""
    from click.shell_completion import CompletionItem

    from jaxprof.workloads import names

    found = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def complete_variant(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Variants of the workloads that stand on the line already, or of all."""
    from jaxprof.workloads import built_in, names

    known = names()
    chosen = [name for name in ctx.params.get("names", ()) if name in known] or known
    variants = {variant.name for name in chosen for variant in built_in(name).variants}
    return sorted(name for name in variants if name.startswith(incomplete))


def complete_session(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Kept sessions, and files."""
    from click.shell_completion import CompletionItem

    from jaxprof.store import Library
    from jaxprof.store.codec import EXTENSION

    stems = [path.name.removesuffix(EXTENSION) for path in Library().paths()]
    found = [CompletionItem(stem) for stem in ("last", *stems) if stem.startswith(incomplete)]
    return found if found and incomplete else [*found, CompletionItem(incomplete, type="file")]
