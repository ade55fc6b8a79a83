"""`jaxprof FILE`: which command a file alone stands for. Its name and its first bytes decide; nothing is run here."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from jaxprof.errors import FileRefusedError, is_path, missing_file, unknown_name


def command_for(words: Sequence[str], commands: Collection[str], *, in_terminal: bool) -> str:
    """The command that `words` stand for, a file and what follows it.

    `script` for a program, `run` for `FILE.py:function`; for a session, a job, a profile or HLO `open`, and without a
    terminal, or with options, the command that prints it: `show`, or `hlo`. Raises UsageError for a word that is
    neither a command nor a path, MissingFileError where there is nothing, FileRefusedError for a file of another kind.
    """
    word, *rest = words
    local = word
    if "://" in word:
        from jaxprof.cli.source import local_words

        local = local_words(word)
    path = Path(os.path.expanduser(local))
    if not path.exists():
        place, colon, function = word.rpartition(":")
        if colon and place.endswith(".py") and function.isidentifier():
            return "run"
        raise missing_file(word) if is_path(word) else unknown_name("command", word, commands)
    fetched = local != word  # nothing that was fetched is run
    if not fetched and (path.suffix == ".py" or (path / "__main__.py").is_file()):
        return "script"
    from jaxprof.cli.job_answers import job_at

    if job_at(word) is not None:
        return "open" if in_terminal and not rest else "show"
    from jaxprof.analysis.opener import Kind, kind_of

    kind = kind_of(path)
    if kind is None:
        raise FileRefusedError(
            f"{word} is neither a program in Python nor a session, a job, a profile or HLO",
            "jaxprof FILE.py profiles a program; jaxprof FILE.jaxprof opens a session.",
        )
    if in_terminal and not rest:
        return "open"
    return "hlo" if kind is Kind.HLO else "show"
