"""What a session may keep of an environment and of a command line: one list, for every place that writes it.

Session files are kept, mailed and put into bug reports. So variables are taken by name from a list that was reviewed
one by one, and each value has to look like the setting that it is (a number, a word, flags). `XLA_FLAGS` may hold paths
(dumps, tool chains, credentials of a mounted bucket), which become `...`. A `JAX_...` variable that is not on the list
may be a path, a URL or a token (`JAX_COMPILATION_CACHE_DIR`, `JAX_COORDINATOR_ADDRESS`), so only the fact that it is
set is kept. Of a command line, everything is kept but what looks like a secret: a guess by the names of options and by
the prefixes of common tokens, so it refuses no secret for certain. The same guess is made in the texts of a program:
log lines, errors, tracebacks. Standard library only: the recorder uses it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

SETTINGS: Final = (
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "JAX_DEBUG_NANS",
    "JAX_DEFAULT_DTYPE_BITS",
    "JAX_DEFAULT_MATMUL_PRECISION",
    "JAX_DEFAULT_PRNG_IMPL",
    "JAX_DISABLE_JIT",
    "JAX_ENABLE_COMPILATION_CACHE",
    "JAX_ENABLE_X64",
    "JAX_NUM_CPU_DEVICES",
    "JAX_NUMPY_DTYPE_PROMOTION",
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "JAX_THREEFRY_PARTITIONABLE",
    "MKL_NUM_THREADS",
    "NPROC",
    "NUMEXPR_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OPENBLAS_NUM_THREADS",
    "ROCR_VISIBLE_DEVICES",
    "TF_CPP_MIN_LOG_LEVEL",
    "TF_GPU_ALLOCATOR",
    "TPU_VISIBLE_CHIPS",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
)
FLAGS: Final = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")

HIDDEN: Final = "..."
"""Replaces a value of a variable that does not look like a setting."""
REDACTED: Final = "[redacted]"
"""Replaces what looks like a secret in a command line."""

_SETTING = re.compile(r"[\w.,:+-]{0,200}(?:/\d+/\d+)?")
"""Numbers, words, lists, UUIDs, and the old names of MIG instances; otherwise no slashes, no spaces, no `=`, no `@`."""
_TOKEN_LENGTH = 48
_FLAG = re.compile(r"--(\w+)(?:=(.*))?", re.DOTALL)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SECRET_NAMES = frozenset(
    ("password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "apikey", "authorization",
     "cookie", "bearer", "auth", "pat")
)  # fmt: skip
_KEYS_OF_SECRETS = frozenset(
    ("api", "access", "secret", "private", "auth", "account", "license", "encryption", "wandb")
)
_TOKENS_OF_TEXT = frozenset(
    ("eos", "bos", "pad", "mask", "unk", "cls", "sep", "special", "start", "end", "stop", "image", "max", "min", "num",
     "per", "next", "new", "prompt")
)  # fmt: skip
"""Before `token` in the name of an option of a language model, which is no secret."""
_SECRET_VALUE = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[\w-]{8,}|hf_\w{8,}|gh[opsur]_\w{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}|xox[a-z]-[\w-]{8,}|A[KS]IA[0-9A-Z]{12,}|ya29\.[\w-]{10,}|npm_\w{20,}|pypi-[\w-]{20,}|[sr]k_(?:live|test)_\w{8,}"
    r"|AIza[\w-]{20,}|eyJ[\w-]{8,2000}\.[\w.-]{8,}"
    r")"
)
_IN_URL = re.compile(r"(?<=://)[^/\s?#]+(?=@)")
_PASSWORD_IN_URL = re.compile(r"(?<=://)([^/\s@:]*):[^/\s]*(?=@)")
_USER_OF_WEB_URL = re.compile(r"(?i)(?<=http://|ttps://)[^/\s@:]+(?=@)")
_QUERY_IN_URL = re.compile(r"(://[^\s?#]*)\?[^\s#]*")
_SIGNATURES = frozenset(("sig", "signature", "sas"))
"""Of signed URLs: `sig=` of Azure, `X-Amz-Signature=`, `X-Goog-Signature=`."""
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+\S+")
_NAMED_VALUE = re.compile(r"""(?<![\w-])([\w-]{1,60})(["']?[ ]?[=:][ ]?["']?|[ ])([^\s"',;&]+)""")
"""In a text: `token=x`, `"api_key": "x"`, `--password x`."""
_SIGNED = re.compile(r"((?:X-Amz-|X-Goog-|[?&])sig(?:nature)?=)[^\s&]+", re.IGNORECASE)
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*")


def safe_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that change a measurement, with values if these may be kept. Pure."""
    kept = {name: kept_value(name, environment[name]) for name in (*SETTINGS, *FLAGS) if name in environment}
    others = (name for name in environment if re.fullmatch(r"JAX_[A-Z0-9_]{1,60}", name) and name not in kept)
    kept |= dict.fromkeys(others, HIDDEN)
    return dict(sorted(kept.items()))


def kept_value(name: str, value: str) -> str:
    """What may be kept of a variable that the user named: a setting, or flags; else `...`."""
    if name in FLAGS:
        return _flags(value)
    return HIDDEN if is_secret_name(name) else _setting(value)


def is_secret_name(name: str) -> bool:
    """Whether an option or a variable of this name (`--api-key`, `HF_TOKEN`, `dbPassword`) holds a secret, by its
    words."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return False
    before = words[-2] if len(words) > 1 else ""
    return (
        not _SECRET_NAMES.isdisjoint(words)
        or (words[-1] == "key" and before in _KEYS_OF_SECRETS)
        or (words[-1] == "token" and before not in _TOKENS_OF_TEXT)
    )


def redacted(command: Sequence[str]) -> list[str]:
    """The words of a command line, those that look like secrets replaced: `--api-key X`, `token=X`, `sk-...`,
    `https://user:password@host`, `Authorization: Bearer X`."""
    kept: list[str] = []
    is_value = False
    for word in command:
        if is_value and not word.startswith("-"):
            kept.append(REDACTED)
            is_value = False
            continue
        word = _signed(word)
        name, equals, _ = word.rpartition("=") if word.count("=") == 1 else _named(word)
        if equals and is_secret_name(name.rpartition("=")[2]):
            kept.append(f"{name}={REDACTED}")
        else:
            text = _IN_URL.sub(REDACTED, _SECRET_VALUE.sub(REDACTED, word))
            kept.append(_BEARER.sub(rf"\1 {REDACTED}", text))
        is_value = word.startswith("-") and not equals and is_secret_name(word)
    return kept


def scrubbed(text: str) -> str:
    """A text of a program (a line of its log, an error, a traceback) without what looks like a secret: values after
    names of secrets, common tokens, users in URLs, private keys. Linear in the text."""
    text = _PEM.sub(REDACTED, _SECRET_VALUE.sub(REDACTED, text))
    text = _SIGNED.sub(rf"\1{REDACTED}", _IN_URL.sub(REDACTED, text))
    return _NAMED_VALUE.sub(_without_value, _BEARER.sub(rf"\1 {REDACTED}", text))


def _without_value(found: re.Match[str]) -> str:
    name, between, value = found.groups()
    named = between != " " or name.startswith("--")
    if not named or value.lower() in ("bearer", "basic") or REDACTED in value or not is_secret_name(name):
        return found[0]
    return f"{name}{between}{REDACTED}"


def without_url_secrets(text: str) -> str:
    """A text with the passwords in its URLs, the users of web addresses (which may be tokens) and all queries replaced.
    The user of `ssh://alice@host` and the container of `abfs://container@account` stay: they say which place it is."""
    text = _PASSWORD_IN_URL.sub(rf"\1:{REDACTED}", _SECRET_VALUE.sub(REDACTED, text))
    return _QUERY_IN_URL.sub(rf"\1?{REDACTED}", _USER_OF_WEB_URL.sub(REDACTED, text))


def url_secrets(url: str) -> list[str]:
    """The passwords, and the values of the query, in a URL; the longest first. Those of fewer than four characters are
    left out: they may be part of any word."""
    from urllib.parse import unquote  # not in recorded programs, which import this module, too

    rest = url.partition("://")[2]
    user, at, _ = rest.partition("/")[0].rpartition("@")
    found = [user.partition(":")[2]] if at else []
    if "?" in rest:
        found += [item.partition("=")[2] for item in rest.partition("?")[2].partition("#")[0].split("&")]
    found += [unquote(secret) for secret in found]
    return sorted({secret for secret in found if len(secret) > 3}, key=len, reverse=True)


def _signed(word: str) -> str:
    """A URL of which the signature is in the query, `https://host/x?sp=r&sig=...`: the whole query is replaced."""
    query = _QUERY_IN_URL.search(word)
    if query is None:
        return word
    names = [item.partition("=")[0] for item in word.partition("?")[2].split("&")]
    words = {piece.lower() for name in names for piece in _WORD.findall(name)}
    secret = not words.isdisjoint(_SIGNATURES) or any(map(is_secret_name, names))
    return _QUERY_IN_URL.sub(rf"\1?{REDACTED}", word) if secret else word


def _named(word: str) -> tuple[str, str, str]:
    """`--set=token=x=y` as the name up to the first secret one, and its value; else without a name."""
    pieces = word.split("=")
    for at, piece in enumerate(pieces[:-1]):
        if is_secret_name(piece):
            return "=".join(pieces[: at + 1]), "=", "=".join(pieces[at + 1 :])
    return word, "", ""


def _setting(value: str) -> str:
    """Whether a value is a setting. A long unbroken word may be a token that was put in the wrong place."""
    longest = max((len(word) for word in re.split(r"[,:.]", value)), default=0)
    is_setting = _SETTING.fullmatch(value) and longest <= _TOKEN_LENGTH and not _SECRET_VALUE.search(value)
    return value if is_setting else HIDDEN


def _flags(value: str) -> str:
    """`--name=value` words. Values that are not settings (above all paths) are hidden, as is everything that is not a
    flag."""
    kept = []
    for word in value.split():
        match = _FLAG.fullmatch(word)
        if match is None:
            kept.append(HIDDEN)
        elif match.group(2) is None:
            kept.append(word)
        else:
            kept.append(f"--{match.group(1)}={kept_value(match.group(1), match.group(2))}")
    return " ".join(kept)
