"""Install the compilers for devices that are not here, in a folder of jaxprof's own.

They must never enter the user's environment: a cuda12 and a cuda13 plugin together break jax, a plugin without a GPU
prints a traceback at each start, libtpu slows the listing of devices. So they are unpacked into a folder for one jax
version and one Python, which is visible only to the child that compiles.

`pins.txt` has the SHA-256 of every wheel that may be installed, as PyPI had it when this jaxprof was released; pip
refuses any other file, whatever index or proxy it comes from.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.base.files import PARTIAL, private_folder
from jaxprof.base.operating_system import python_words
from jaxprof.base.values import frozen
from jaxprof.devices.absent import Vendor
from jaxprof.session.files import state_folder

_PROBE = """
import json, sys, sysconfig
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
requires = metadata.requires("jax") or [] if version("jax") else []
print(json.dumps({
    "jax": version("jax"), "jaxlib": version("jaxlib"), "tag": "cp%d%d" % sys.version_info[:2],
    "requires": requires, "has": {name: version(name) for name in sys.argv[1:]},
}))
"""
FOLDER_VARIABLE = "JAXPROF_TARGETS"
"""Variable that names a folder for the wheels other than the user's state folder."""
_PINS = Path(__file__).with_name("pins.txt")
_INSTALL_TIMEOUT_SECONDS = 1800  # CUDA's packages have gigabytes


@frozen
class Kit:
    """Packages needed to compile for one vendor's devices."""

    megabytes: int
    """Approximate download size; unpacked, the packages take two to three times as much."""
    licences: tuple[tuple[str, str], ...]
    variables: dict[str, str]


KITS: dict[Vendor, Kit] = {
    "nvidia": Kit(
        223,
        (
            ("jax-cuda12-plugin", "Apache-2.0"),
            ("jax-cuda12-pjrt", "Apache-2.0"),
            ("nvidia-cuda-nvcc-cu12", "NVIDIA proprietary (CUDA Toolkit EULA)"),
        ),
        {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"},
    ),
    "tpu": Kit(
        190,
        (("libtpu", "Google Cloud Platform Terms of Service"),),
        # libtpu locks the machine's TPUs even if it has none: two compiles at once would exclude each other.
        {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"},
    ),
}


def _facts(python: str, packages: tuple[str, ...]) -> dict[str, Any]:
    """Return what an interpreter reports of JAX and of these packages. Raises UsageError."""
    try:
        done = subprocess.run(
            python_words(python, "-c", _PROBE, *packages),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        facts: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise UsageError(f"{python} does not report its packages: {error}") from None
    if not facts["jax"] or not facts["jaxlib"]:
        raise UsageError(f"{python} has no jax", "--python PATH names an interpreter that has it.")
    return facts


def requirements(vendor: Vendor, facts: dict[str, Any]) -> list[str]:
    """Return the packages to request from pip: the versions that match the interpreter's jax and jaxlib."""
    if vendor == "nvidia":
        version = facts["jaxlib"]
        return [f"jax-cuda12-plugin=={version}", f"jax-cuda12-pjrt=={version}", "nvidia-cuda-nvcc-cu12"]
    for line in facts["requires"]:
        match = re.match(r"libtpu\s*(==[\w.*]+)", line)
        if match and "extra" in line:
            return [f"libtpu{match[1]}"]
    return ["libtpu"]


def pin_lines(wanted: Sequence[str]) -> list[str]:
    """Return, as lines for pip, the newest version of each requirement whose wheels are known, with hashes. Raises
    UsageError if one is not known."""
    known = [line.split() for line in _PINS.read_text(encoding="utf-8").splitlines()]
    lines = []
    for requirement in wanted:
        name, _, version = requirement.partition("==")
        fitting = []
        for pin in known:
            its_name, _, its_version = pin[0].partition("==")
            fits = version in ("", its_version)
            if version.endswith(".*"):
                fits = f"{its_version}.".startswith(version[:-1])
            if its_name == name and fits:
                fitting.append(pin)
        if not fitting:
            raise UsageError(
                f"this jaxprof does not know what {requirement} must contain",
                "A newer jaxprof may. --allow-unpinned installs what the package index gives, without its hashes.",
            )
        lines.append(" ".join(fitting[-1]))
    return lines


def folder(vendor: Vendor, facts: dict[str, Any]) -> Path:
    """Return the folder into which the wheels of this vendor, jaxlib and Python are unpacked."""
    return _root() / f"{vendor}-jaxlib{facts['jaxlib']}-{facts['tag']}"


def _root() -> Path:
    kept = os.environ.get(FOLDER_VARIABLE)
    return Path(kept) if kept else state_folder() / "targets"


def remove(vendor: Vendor) -> list[Path]:
    """Delete the vendor's wheels, of every jaxlib; return the deleted folders."""
    folders = sorted(_root().glob(f"{vendor}-jaxlib*"))
    for destination in folders:
        shutil.rmtree(destination, ignore_errors=True)
    return folders


def environment(vendor: Vendor, python: str) -> dict[str, str]:
    """Return variables for a child of `python`. Raises JaxprofError with the command that installs packages."""
    kit = KITS[vendor]
    facts = _facts(python, tuple(name for name, _ in kit.licences))
    common = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", **kit.variables}
    destination = folder(vendor, facts)
    if (destination / "complete").exists():
        return {
            **common,
            "PYTHONPATH": os.pathsep.join([str(destination), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
    if all(facts["has"].values()):  # the user's own environment is already one for that vendor
        return common
    raise JaxprofError(
        f"compiling for {vendor} devices needs packages that are not here",
        f"jaxprof devices target install {vendor} puts them into {destination} (about {kit.megabytes} MB to download); "
        "your own environment stays as it is.",
    )


def folder_if_installed(vendor: Vendor, python: str) -> Path | None:
    """Return the folder of the wheels for this interpreter's jax; None if they are not installed."""
    destination = folder(vendor, _facts(python, ()))
    return destination if (destination / "complete").exists() else None


def install(vendor: Vendor, python: str, tell: Callable[[str], None], *, allow_unpinned: bool = False) -> Path:
    """Download and unpack the wheels with pip (or uv), which checks their hashes, and return their folder. `tell` is
    called with lines of progress. `allow_unpinned`: install without hashes if they are not known. Raises UsageError if
    they are not known, and JaxprofError with pip's own words if it fails; an incomplete folder is removed."""
    facts = _facts(python, ())
    destination = folder(vendor, facts)
    if (destination / "complete").exists():
        return destination
    wanted = requirements(vendor, facts)
    try:
        lines, checks = pin_lines(wanted), ["--require-hashes"]
    except UsageError:
        if not allow_unpinned:
            raise
        lines, checks = wanted, []
    private_folder(destination.parent)
    names = ", ".join(line.split()[0] for line in lines)
    tell(f"installing {names} into {destination}" + ("" if checks else " (not checked against known hashes)"))
    # beside its place, and moved there at the end: whatever ends this process, half a folder is never used
    with tempfile.TemporaryDirectory(prefix=f"{destination.name}-", suffix=PARTIAL, dir=destination.parent) as scratch:
        file, fresh = Path(scratch) / "requirements.txt", Path(scratch) / "installed"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        options = ["--only-binary", ":all:", "--no-deps", "--target", str(fresh), "-r", str(file)]
        try:
            done = subprocess.run(
                [*_installer(python), *checks, *options],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_INSTALL_TIMEOUT_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise JaxprofError(
                f"the packages for {vendor} were not installed within {_INSTALL_TIMEOUT_SECONDS:g} s",
                "Check the network, and run it again.",
            ) from error
        if not done.returncode:
            (fresh / "complete").write_text("\n".join(lines) + "\n")
            shutil.rmtree(destination, ignore_errors=True)
            fresh.rename(destination)
            return destination
    if "hash" in done.stderr.lower():
        raise JaxprofError(
            f"the packages for {vendor} were not installed: a downloaded file has another hash than the known one",
            "The file was changed in transit, or the index has a different one. Find out why before you try again.",
        )
    words = done.stderr.strip().splitlines()
    raise JaxprofError(
        f"the packages for {vendor} could not be installed: {words[-1] if words else 'pip gave no reason'}",
        "Check the network and the disk, and run it again.",
    )


def _installer(python: str) -> list[str]:
    """Return the command of the interpreter's pip, or of uv if it has none. Raises JaxprofError if both are missing."""
    has_pip = subprocess.run(
        python_words(python, "-m", "pip", "--version"), capture_output=True, stdin=subprocess.DEVNULL, timeout=60
    )
    if has_pip.returncode == 0:
        return python_words(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", python]
    raise JaxprofError(f"{python} has no pip, and there is no uv", "Install one of them.")
