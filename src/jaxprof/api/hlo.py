"""Open HLO from Python, whatever file or folder holds it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.analysis.opener import open_hlo
from jaxprof.remote.place import path_here

if TYPE_CHECKING:
    from jaxprof.hlo.open.stages import ModuleStages
    from jaxprof.session import Session


def load_hlo(path: str | Path) -> list[ModuleStages]:
    """Return the modules at `path`: HLO text or proto, also `.gz`; a folder that XLA dumped into; a session; a profile.

    Each has a `label`, its `stages` (`hlo`, `hlo_before`, and for a session `stablehlo`, `jaxpr`), `text(stage)` and
    `module()`, whose kernels `kernels` of `jaxprof.hlo.analysis.kernels` returns. If only the text from before XLA's
    passes was dumped, that is the module.

    Raises FileRefusedError if there is no HLO.
    """
    return open_hlo(path_here(path, "`jaxprof hlo URL` fetches it."), _session_of_profile).modules


def _session_of_profile(path: Path) -> Session:
    from jaxprof.reaper import TemporaryFolder
    from jaxprof.runner.profiles import session_name, session_of_profile

    with TemporaryFolder("profile") as folder:
        return session_of_profile(path, folder / session_name(path))
