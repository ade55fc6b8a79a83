"""Redact what looks like a secret in command lines and texts before they enter a session.

This is a guess: by names (`token=`, `"api_key":`, `--password X`), by the prefixes of common tokens and by shapes (URLs
with a user, private keys). A secret that looks like any other word is kept. Every pattern reads its text once, so the
time is linear in its length. Patterns are texts, which `re` compiles when they are first used, and keeps: all
of them together take 7 ms, and most command lines need few. Standard library only: the recorder uses this module, too.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Sequence

from jaxprof.base.text import REDACTED

_WORD = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+"
_SECRET_HINT = (
    r"(?i)auth|basic|bearer|cookie|cred|csrf|jwt|key|mnemonic|otp|pass|pat|pw|sas|secret|sig|tok|webhook|services/|:thin:"
    r"|-[apuw]|pin(?:code)?(?![a-z])|login"
)
"""Every name of a secret contains one of these. Texts without one need no further search."""
_SECRET_WORDS = frozenset(
    ("password", "passwd", "passphrase", "passcode", "secret", "secrets", "credential", "credentials", "creds",
     "apikey", "authorization", "auth", "oauth", "cookie", "cookies", "bearer", "jwt", "otp", "totp", "csrf",
     "csrftoken", "mnemonic", "passwort", "passkey", "pincode")
)  # fmt: skip
_JOINED_ENDINGS = (
    r"(?:passw(?:or)?d|passphrase|sshpass|secret|(?:access|account|api|auth|private|secret)key"
    r"|(?:access|api|auth|bearer|csrf|gh|github|gitlab|hf|id|refresh|session|slack)token)$"
)
"""Ends of names whose words are not separated: `PGPASSWORD`, `dbpasswd`, `authtoken`."""
_BEFORE_SECRET_KEY = frozenset(
    ("access", "account", "admin", "anthropic", "api", "app", "auth", "aws", "azure", "client", "cohere", "consumer",
     "datadog", "decryption", "deploy", "encryption", "gcp", "gemini", "github", "gitlab", "google", "gpg", "hmac",
     "host", "huggingface", "kms", "license", "master", "mistral", "openai", "pgp", "private", "secret", "sendgrid",
     "service", "session", "shared", "signing", "slack", "ssh", "ssl", "storage", "stripe", "telegram", "tls", "vault",
     "wandb", "webhook")
)  # fmt: skip
_BEFORE_ORDINARY_KEY = frozenset(
    ("cache", "dict", "foreign", "group", "hash", "map", "partition", "primary", "prng", "public", "random", "rng",
     "sort", "unexpected", "unknown")
)  # fmt: skip
_BEFORE_ORDINARY_TOKEN = frozenset(
    ("bos", "cls", "current", "each", "end", "eos", "expected", "first", "illegal", "image", "input", "last", "mask",
     "max", "min", "new", "next", "num", "output", "pad", "per", "previous", "prompt", "sep", "special", "start",
     "stop", "unexpected", "unk", "unknown")
)  # fmt: skip
"""Words before `token` in options and texts of a language model or a parser, which are not secrets."""
_LOGINS = frozenset(
    ("admin", "basic", "db", "ftp", "http", "https", "keystore", "ldap", "login", "mail", "mongo", "my", "mysql", "pg",
     "postgres", "proxy", "redis", "root", "smtp", "ssh", "user")
)  # fmt: skip
"""Words before `pass` that make it a password; otherwise it is a pass of the compiler."""
_BEFORE_AMBIGUOUS = {
    "sig": frozenset(("access", "amz", "goog")),
    "signature": frozenset(("access", "amz", "goog")),
    "pat": frozenset(("azure", "github", "gitlab")),
    "pass": _LOGINS,
    "pw": _LOGINS,
    "word": frozenset(("pass",)),
    "code": frozenset(("pin",)),
}
"""Last word of a name → the words before it that make it the name of a secret."""
_AMBIGUOUS_WORDS = frozenset(("key", "pass", "pat", "pw", "sas", "sig", "signature", "tok"))
"""Last words of names that may be secrets: redacted if the value looks random; in options and URLs always."""
_MAYBE_PASSWORD = "-p"
"""An option that is a password, a port, a path or a probability: redacted if its value looks random."""
_USER_OPTIONS = frozenset(("-u", "--user", "--userpwd", "--proxy-user"))
_SCHEMES = frozenset(("bearer", "basic"))
_NOT_A_NAME = r"[\s?&({\"']"
_HEADERS = frozenset(("authorization", "cookie"))
"""Headers whose values contain spaces."""
_ORDINARY_VALUES = frozenset(
    ("", "none", "null", "nil", "true", "false", "str", "bytes", "int", "bool", "any", "optional", "required")
)
_ORDINARY_FORM = r"(?is)(?:list|tuple|dict|optional|union|sequence|literal|callable)\[.*|</?\w{1,12}>?"
"""Types in a signature, and tags such as `<eos>`."""
_NUMBER = r"[-+]?\d[\d.,_]{0,9}(?:e[-+]?\d+)?(?:%|[munµ]?s|[kKMBGx]|[KMG]i?B)?(?:/\w+)?"
_PROCESSORS = r"\d{1,3}(?:[-,:]\d{1,3})*"
"""Processors to which a thread is pinned: no PIN is that short."""
_PATH = r"(?s)(?:[/~.]|[A-Za-z]:).*"
_ORDINARY_PIECE = r"[A-Za-z]*\d*[a-z]?|0x[0-9a-f]+"

_PREFIXED = (
    r"(?:(?<![\w-])|(?<=\\[nrt])|(?<=\dm))(?:"  # also after an escaped line break, and after a colour of the terminal
    r"sk-(?=[a-z-]{0,20}[A-Z\d])[\w-]{8,}|hf_\w{8,}|gh[opsur]_\w{8,}|github_pat_\w{8,}|gl[a-z]{2,5}-[\w-]{8,}"
    r"|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|A[BCKS]IA[0-9A-Z]{12,}|ya29\.[\w-]{10,}|npm_\w{20,}|pypi-[\w-]{20,}"
    r"|[sr]k_(?:live|test)_\w{8,}|whsec_\w{8,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w.-]{8,}|SG\.[\w-]{8,}\.[\w-]{8,}"
    r"|do[opr]_v1_\w{20,}|dckr_pat_[\w-]{8,}|hv[sb]\.[\w-]{20,}|nvapi-[\w-]{20,}|gsk_\w{20,}|r8_\w{20,}"
    r"|dapi[0-9a-f]{32}|shp[a-z]{2}_\w{20,}|AGE-SECRET-KEY-\w{8,}|tskey-[\w-]{8,}|key-[0-9a-f]{32}"
    r"|\d{8,10}:AA[\w-]{30,}"
    r")"
)
"""Tokens with a prefix that their makers chose."""
_PEM = r"(?s)(----[- ]BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[- ]----)(?:.*?(?=----[- ]END )|.*)"
_PEM_END = r"----[- ]END "
_WEBHOOK = r"(?i)(hooks\.slack\.com/services/|/api/webhooks/\d{1,20}/|office\.com/webhook\w{0,2}/)[\w/.@-]+"
_IN_URL = r"""(?<=://)[^/\s?#"'<>]+(?=@)"""
_IN_ODD_URL = r"""(?<=://)([^/\s@:"'<>]{0,100}):(?!\d{1,5}/)[^\s@"'<>]{1,200}(?=@)"""
"""A password in a URL, with a slash in it."""
_LOGIN = (
    r"""(?<![\w.+/@-])(?!(?i:author|by|cc|contact|email|from|mailto|sip|to):|\d+:)[\w.+-]{1,64}:"""
    r"""(?!\d+@)[^\s@/:"']{3,}@(?=(?!sha\d)(?:localhost|[\w-]+[.:/]))"""
)
"""`user:password@host` without a scheme; neither a position in a file nor the digest of a container image."""
_SHORT_LOGIN = r"(?:(?<!\S)-u|(?<=:thin:))(?!\d+:)([\w.+@-]{1,64}[:/])[^\s@]{3,}"
"""`curl -ubob:X` and `jdbc:oracle:thin:scott/X@host`."""
_JOINED_OPTION = r"(?<!\S)-p(?!-)([^\s/]{6,512})(?!\S)"
"""`-pX`, for X that looks random."""
_OF_PROGRAM = (
    r"(?<![\w-])((?:(?:mysql(?:dump|admin|import)?|mariadb(?:-\w{1,9})?|sshpass|mongo(?:sh|dump|restore)?"
    r"|(?:docker|podman|oc|az) login)[ ](?:[^\n|;&]{0,200}?[ ])?-p|redis-cli[ ](?:[^\n|;&]{0,200}?[ ])?-a"
    r"|ldap[a-z]{1,9}[ ](?:[^\n|;&]{0,200}?[ ])?-w)[ ]?|wandb login[ ](?:--\w+[ ])?)(?![\s-])([^\s|;&]+)"
)
"""Programs whose option for the password has one letter: `mysql -pX`, `sshpass -p X`, `redis-cli -a X`."""
_AWS_SECRET = r"(?<![\w/+-])[A-Za-z\d/+]{40}(?![\w/+=-])"
_CHANGES = r"[A-Z](?=[a-z\d])|[a-z](?=[A-Z\d])|\d(?=[A-Za-z])"
_BEARER = r"""(?i)(?<![\w-])(bearer)([ ]{1,4}["']?)([^\s"',;]{3,})"""
_BASIC = r"(?i)(?<![\w-])(basic[ ]{1,4})([a-z0-9+/]{4,}={0,2})"
_AFTER_BEARER = frozenset(
    ("and", "auth", "authentication", "authorization", "error", "for", "header", "is", "not", "of", "or", "realm",
     "scheme", "token", "tokens", "was")
)  # fmt: skip
_IN_SENTENCE = (
    r"""(?i)(?<![\w-])(?:password|passphrase|secret|token|api[ _-]?key)(?: (?:is|was|provided|for [^\s:]{1,64}))?"""
    r"""(?::?[ \t]{1,4}|[ ]?->[ ]?)["'`]?([^\s"'`=]{6,})"""
)
"""`the password is X`, `password for bob: X` and `token X has expired`, where X looks random."""
_PAIRED = (
    r"""(?i)(?<![\w-])(?:name|key)\\{0,3}["']?[ ]?[:=][ ]?\\{0,3}["']?([\w.-]{3,64})\\{0,3}["']?[,\s]{0,40}"""
    r"""\\{0,3}["']?value\\{0,3}["']?[ ]?[:=][ ]?\\{0,3}["']?([^\s"'\\,}<]+)"""
    r"""|name=["']([\w.-]{3,64})["']>([^<\s]+)(?=</)"""
)
"""`{"name": "API_TOKEN", "value": "X"}`, in JSON, YAML and XML."""
_COLOUR = r"(?:\x1b\[[\d;]{0,12}m)?"
_NAMED = (
    rf"""(?:\\[nrt]|\x1b\[[\d;]{{0,12}}m|(?<![\w.-]))(?:(?P<name>[\w.-]+)(?P<between>"""
    rf"""\\{{0,3}}["']?[\])]?{_COLOUR}[ \t]{{0,40}}(?:=>|={{1,3}}|:=|:(?!:)|%3[aAdD]"""
    rf"""|\\{{1,2}}(?:u00|x)3[aAdD]|&#(?:61|x3[dD]);)[ \t]{{0,40}}{_COLOUR}"""
    r"""|>|["'],[ ]?)|(?P<option>--?[A-Za-z][\w.-]*)[ \t]{1,4}(?!-))"""
)
"""A name and what stands before its value: `token=`, `"token": "`, `env["TOKEN"] = `, `<token>`, `--token `, and
`'--token', ` in a command line that an error quotes."""
_VALUE = (
    r"""(?:[bBfFrRuU]{1,2}|[A-Za-z_][\w.]*\()?(?:"""
    r"""(?P<escaped>\\{1,3}["'])(?P<between>(?:(?!(?P=escaped))[^\n])*)"""
    r'''|(?P<quote>"""|\'\'\'|["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\n\\])*))'''
    r"""|(?P<call>[\w.]*[(\[{][^\n)\]}]*[)\]}]?)|(?:![\w-]{1,20}[ ])?(?P<plain>[^\s"'&;]+)"""
)
_ANNOTATION = r"[A-Za-z_][\w.]{0,40}(?:\[[\w., |]{0,60}\])?(?: \| None)?[ ]?=[ ]?(?=[\"'bfru])"
"""The annotation in `password: str = 'X'`."""
_LITERAL = r"""(?s)[bB]?(["'])(.*)\1"""
_LONG = 512
"""Longest value that is examined, in characters. A longer one is redacted whatever it is, so that it is read once."""
_TAGGED = r"[^<\n]+(?=</)"
_ARROW = r"""["']? → """
_BEFORE = r"([A-Za-z]{1,15}) \Z"
_SCHEME = r"""(?i)(?:b(?=\\{0,3}["']))?\\{0,3}["']?(?:(?:bearer|basic|token|digest|negotiate)[ ]+)?"""
_CODE = r"""[A-Za-z_][\w.]*[(\[][^"']*"""
_PASSWORD_IN_URL = r"(?<=://)([^/\s@:]*):[^/\s]*(?=@)"
_USER_OF_WEB_URL = r"(?i)(?<=http://|ttps://)[^/\s@:]+(?=@)"


def is_secret_name(name: str) -> bool:
    """Return whether an option or variable of this name (`--api-key`, `HF_TOKEN`) holds a secret, by its words."""
    return _strength(_words(name)) == 2


def holds_token(text: str) -> bool:
    """Return whether `text` contains a token with a known prefix, or a secret key of AWS."""
    return re.sub(_AWS_SECRET, _without_random, re.sub(_PREFIXED, REDACTED, text)) != text


def redact_words(command: Sequence[str]) -> list[str]:
    """Return the words of a command line, with those that look like secrets replaced: `--api-key X`, `token=X`,
    `sk-...`, `https://user:password@host`, `Authorization: Bearer X`."""
    kept: list[str] = []
    before = ""
    for word in command:
        if before and word.lower() in _SCHEMES:
            kept.append(word)
        elif before and not word.startswith("-"):
            kept.append(_next_word(before, word))
            before = word if "." in word and is_secret_name(word.rpartition(".")[2]) else ""  # --set db.password X
        else:
            name = _secret_before_equals(word)
            kept.append(f"{name}={REDACTED}" if name else scrub(word))
            announces = (word.startswith("-") and "=" not in word) or word.endswith(":") or word.lower() in _SCHEMES
            before = word if announces else ""
    return kept


def without_secret(name: str, value: str) -> str:
    """Return the value of a variable or an argument of this name, as Python writes it, as a session may keep it."""
    match = re.fullmatch(_LITERAL, value)
    return REDACTED if _hides(_words(name), match[2] if match else value, always=False) else scrub(value)


def scrub(text: str) -> str:
    """Return a program's text (a line of its log, an error, a traceback) without what looks like a secret."""
    # First what is a secret by its own shape, whatever its name is.
    text = re.sub(_PREFIXED, REDACTED, re.sub(_PEM, rf"\1{REDACTED}", text))
    text = re.sub(_AWS_SECRET, _without_random, text)
    if "@" in text:
        text = re.sub(_IN_ODD_URL, rf"\1:{REDACTED}", re.sub(_IN_URL, REDACTED, text))
        text = re.sub(_LOGIN, lambda match: f"{match[0].partition(':')[0]}:{REDACTED}@", text)
    if re.search(_SECRET_HINT, text) is None:
        return text
    text = re.sub(_BASIC, _without_basic, re.sub(_BEARER, _without_bearer, re.sub(_WEBHOOK, rf"\1{REDACTED}", text)))
    text = re.sub(_PAIRED, _without_paired, text)
    text = re.sub(_SHORT_LOGIN, lambda match: f"{match[0][: match.end(1) - match.start()]}{REDACTED}", text)
    text = re.sub(_OF_PROGRAM, rf"\1{REDACTED}", text)
    text = re.sub(_JOINED_OPTION, lambda match: f"-p{REDACTED}" if _looks_random(match[1]) else match[0], text)
    # A value may be a name with its own value: `--set db.password=X`.
    kept: list[str] = []
    copied = at = 0
    while match := re.compile(_NAMED).search(text, at):
        at = match.end()
        start, end = _secret_after(text, match) if re.search(_SECRET_HINT, match[0]) else (at, at)
        if end > start:
            # `api_key: 'X' → 'Y'` has a second value.
            arrow = re.compile(_ARROW).match(text, end)
            value = re.compile(_VALUE).match(text, arrow.end()) if arrow is not None else None
            end = end if value is None else value.end()
            kept += (text[copied:start], REDACTED)
            copied = at = end
    text = "".join((*kept, text[copied:])) if kept else text
    return re.sub(_IN_SENTENCE, _without_sentence_value, text)


class LineScrubber:
    """Scrubs output line by line, and remembers a private key that spans several lines."""

    def __init__(self) -> None:
        self._in_key: dict[str, int] = {}
        """Stream name → how many more lines may belong to a private key."""

    def scrub(self, stream: str, line: str) -> str:
        left = self._in_key.get(stream, 0)
        if left:
            ends = re.search(_PEM_END, line) is not None
            self._in_key[stream] = 0 if ends else left - 1
            return line if ends else REDACTED
        if (begin := re.search(_PEM, line)) is not None and not re.compile(_PEM_END).search(line, begin.start()):
            self._in_key[stream] = 200  # lines: a key that never ends hides no more of a log
        return scrub(line)


def without_url_secrets(text: str) -> str:
    """Return a text with the passwords in its URLs, the users of web addresses (which may be tokens) and all queries
    replaced. The user of `ssh://alice@host` and the container of `abfs://container@account` stay: they are part of the
    address."""
    text = re.sub(_PASSWORD_IN_URL, rf"\1:{REDACTED}", re.sub(_PREFIXED, REDACTED, text))
    return re.sub(r"\S+", _without_query, re.sub(_USER_OF_WEB_URL, REDACTED, text))


def url_secrets(url: str) -> list[str]:
    """Return the passwords and the query values in a URL, the longest first. Those of fewer than four characters are
    left out, because they may be part of any word."""
    from urllib.parse import unquote  # not in recorded programs, which import this module, too

    rest = url.partition("://")[2]
    user, at, _ = rest.partition("/")[0].rpartition("@")
    secrets = [user.partition(":")[2]] if at else []
    if "?" in rest:
        secrets += [item.partition("=")[2] for item in rest.partition("?")[2].partition("#")[0].split("&")]
    secrets += [unquote(secret) for secret in secrets]
    return sorted({secret for secret in secrets if len(secret) > 3}, key=len, reverse=True)


def _words(name: str) -> list[str]:
    words = [word.lower() for word in re.findall(_WORD, name.removeprefix("-D"))]
    while words and words[-1].isdigit():
        words.pop()
    return words


def _strength(words: Sequence[str]) -> int:
    """Return 2 if the words name a secret, 1 if they may name one, else 0."""
    if not words:
        return 0
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if not _SECRET_WORDS.isdisjoint(words) or any(re.search(_JOINED_ENDINGS, word) for word in words):
        return 2
    if last in ("key", "keys") and before in _BEFORE_SECRET_KEY:
        return 2
    if last == "token":
        return 0 if before in _BEFORE_ORDINARY_TOKEN else 2
    if last in ("pwd", "pin") or before in _BEFORE_AMBIGUOUS.get(last, ()):
        return 2
    return int(last in _AMBIGUOUS_WORDS and before not in _BEFORE_ORDINARY_KEY)


def _looks_random(value: str) -> bool:
    """Return whether letters and digits are mixed as in no name: `kq7Zr93h`, not `layer_12`, `conv2d` or a path."""
    if len(value) < 6 or value[0] in "/~.":
        return False
    pieces = re.split(r"[\W_]", value)
    return not all(re.fullmatch(_ORDINARY_PIECE, piece) for piece in pieces)


def _hides(words: Sequence[str], value: str, *, always: bool) -> bool:
    """Return whether to redact the value of a name with these words. `always`: also if the name is ambiguous."""
    strength = _strength(words)
    if not strength or value.lower() in _ORDINARY_VALUES or value in REDACTED or not value.strip("*. "):
        return False
    if re.fullmatch(_ORDINARY_FORM, value) is not None:
        return False
    if strength == 1:
        return _looks_random(value) or (always and words[-1] != "key" and not value.isdigit())
    exempt = {"token": _NUMBER, "pwd": _PATH, "pin": _PROCESSORS}.get(words[-1])
    return exempt is None or re.fullmatch(exempt, value) is None


def _next_word(before: str, value: str) -> str:
    """Return the word after an option or `NAME:` as it may be kept."""
    if before == _MAYBE_PASSWORD and _looks_random(value) and "/" not in value:
        return REDACTED
    if before in _USER_OPTIONS and ":" in value:
        return f"{value.partition(':')[0]}:{REDACTED}"
    if before.lower() in _SCHEMES:
        before, value = "", scrub(f"{before} {value}").partition(" ")[2]
    words = _words(before)
    return REDACTED if _hides(words, value, always=before.startswith("-") and len(words) == 1) else scrub(value)


def _secret_before_equals(word: str) -> str:
    """Return the part before the value in `--set=token=x y`, whose value may have spaces; empty if it is no secret."""
    start = 0
    while (end := word.find("=", start)) >= 0:
        name = word[start:end]
        if re.search(_NOT_A_NAME, name):
            return ""
        words = _words(name.rpartition(":")[2])
        if _strength(words) == 2 or (name.startswith("--") and len(words) == 1 and _strength(words)):
            return word[:end] if _hides(words, word[end + 1 :], always=True) else ""
        start = end + 1
    return ""


def _secret_after(text: str, match: re.Match[str]) -> tuple[int, int]:
    """Return the span of the secret that a name announces; an empty span if there is none."""
    begin, at = match.start("option" if match["option"] else "name"), match.end()
    name, between = match["option"] or match["name"], match["between"] or ""
    words = _words(name)
    if len(words) == 1 and (before := re.search(_BEFORE, text[max(0, begin - 17) : begin])):
        words = [before[1].lower(), *words]
    if name in _USER_OPTIONS:
        login = re.compile(_VALUE).match(text, at)
        start, end = login.span(login.lastgroup or 0) if login is not None else (at, at)
        colon = text.find(":", start, end)
        return (colon + 1, end) if colon > 0 else (at, at)
    if name == _MAYBE_PASSWORD:
        start, end = _value_span(text, begin, at, between)
        value = text[start : min(end, start + _LONG)]
        return (start, end) if _looks_random(value) and "/" not in value else (at, at)
    if not _strength(words):
        return at, at
    if words[-1] in _HEADERS and between != ">":
        # A header's value after its scheme: to the closing quote if one is open, else to the end of the line.
        scheme = re.compile(_SCHEME).match(text, at)
        assert scheme is not None
        quote = scheme[0].lstrip("b\\")[:1]
        if quote not in ('"', "'"):
            quote = text[begin - 1] if begin and text[begin - 1] in "\"'" else ""
        line_end = text.find("\n", scheme.end())
        line_end = len(text) if line_end < 0 else line_end
        end = text.find(quote, scheme.end(), line_end) if quote else -1
        return scheme.end(), line_end if end < 0 else end
    if between.startswith(":") and (annotation := re.compile(_ANNOTATION).match(text, at)):
        at = annotation.end()
    start, end = _value_span(text, begin, at, between)
    if end - start > _LONG:
        return start, end
    value, last_part = text[start:end], name.rpartition(".")[2].lower()
    if value.strip("{}<>$()[],").rpartition(".")[2].lower() == last_part:  # `token=self.token`
        return at, at
    if between[:1] == " " and re.fullmatch(_CODE, value):  # `token = tokens[i]` in a traceback
        return at, at
    is_variable = "_" in name and name.isupper()
    if "," in between and not (name.startswith("-") or is_variable or _looks_random(value)):  # a list of words
        return at, at
    is_option = bool(match["option"]) or name.startswith("--")
    always = text[max(0, begin - 1) : begin] in ("?", "&") or (is_option and len(words) == 1)
    return (start, end) if _hides(words, value, always=always) else (at, at)


def _value_span(text: str, begin: int, at: int, between: str) -> tuple[int, int]:
    """Return the span of the value at `at`, without quotes, and without the punctuation that follows it."""
    if between == ">":
        tagged = re.compile(_TAGGED).match(text, at) if begin and text[begin - 1] == "<" else None
        return tagged.span() if tagged is not None else (at, at)
    match = re.compile(_VALUE).match(text, at)
    if match is None:
        return at, at
    start, end = match.span(match.lastgroup or 0)
    return start, start + len(match[0].rstrip(",)]}>.:")) if match["plain"] else end


def _without_bearer(match: re.Match[str]) -> str:
    return match[0] if match[3].lower().rstrip(".") in _AFTER_BEARER else f"{match[1]}{match[2]}{REDACTED}"


def _without_basic(match: re.Match[str]) -> str:
    """Redact base64 of `user:password`, but not the next word of a sentence."""
    try:
        decoded = a2b_base64(match[2])
    except Error:
        return match[0]
    return f"{match[1]}{REDACTED}" if b":" in decoded and decoded.isascii() else match[0]


def _without_random(match: re.Match[str]) -> str:
    """Redact what has the form of a secret key of AWS, but no revision, which lacks capitals or small letters."""
    word = match[0]
    # 25 changes between capitals, small letters and digits are usual in random characters; words and paths have fewer.
    is_random = len(re.findall(_CHANGES, word)) >= 12
    return REDACTED if is_random and word.lower() != word != word.upper() else word


def _without_paired(match: re.Match[str]) -> str:
    number = 2 if match[1] else 4
    words, value = _words(match[number - 1]), match[number]
    if not _hides(words, value, always=False):
        return match[0]
    return f"{match[0][: match.start(number) - match.start()]}{REDACTED}{match[0][match.end(number) - match.start() :]}"


def _without_sentence_value(match: re.Match[str]) -> str:
    if not _looks_random(match[1]) or REDACTED in match[1]:
        return match[0]
    return match[0].replace(match[1], REDACTED)


def _without_query(match: re.Match[str]) -> str:
    head, scheme, rest = match[0].partition("://")
    path, mark, query = rest.partition("?")
    if not scheme or not mark or "#" in path:
        return match[0]
    return f"{head}{scheme}{path}?{REDACTED}{''.join(query.partition('#')[1:])}"
