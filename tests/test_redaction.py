"""What looks like a secret, in command lines and in texts, and what does not. What a session may say of an environment
and of a command line, and what it must not."""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jaxprof
from cli.calling import environment
from jaxprof import events as e
from jaxprof.engine.measure.environment import read_environment
from jaxprof.private import kept_value, safe_variables
from jaxprof.redaction import REDACTED, LineScrubber, redacted, scrubbed
from jaxprof.session import Session
from jaxprof.session.log import LogWriter, load, new_header
from source_tree import tree

SECRETS = ("kq7Zr93hWmXv21", "hunter2")
SHAPES = """
--token (S)
--api-key (S)
--api_key=(S)
--password (S)
--passphrase=(S)
--pass (S)
--pwd (S)
--db-pass (S)
--auth-token=(S)
--access-key (S)
--signing-key (S)
--ssh-key (S)
--secret (S)
--client-secret (S)
--credentials (S)
--bearer (S)
--jwt (S)
--cookie sid=(S)
--hf_token (S)
--set db.password=(S)
--opt=password=(S)
--user bob:(S)
-Dtoken=(S)
-p (S)
token=(S)
TOKEN:(S)
TOKEN: (S)
"password = (S)"
"password is (S)"
API_KEY_2=(S)
HF_TOKEN=(S)
AWS_SECRET_ACCESS_KEY=(S)
PGPASSWORD=(S)
dbpasswd=(S)
clientSecret=(S)
config.auth.password=(S)
AccountKey=(S);Suffix=x
SharedAccessSignature=(S)
"Server=x;Pwd=(S);Uid=y"
"X-Api-Key: (S)"
"Authorization: Bearer (S)"
"Authorization: (S)"
"-H 'Authorization: Token (S)' https://host"
"Cookie: a=1; sid=(S)"
"bearer (S)"
https://(S)@host/x
https://user:(S)@host/x
postgres://user:(S)@host/db
redis://:(S)@host
bob:(S)@db.example.com
https://host/x?token=(S)
https://host/x?a=1&access_token=(S)&b=2
https://host/x?X-Amz-Signature=(S)
https://host/x?sp=r&sig=(S)
'{"token": "(S)"}'
'{"a": {"api_key":"(S)"}}'
'{\\"password\\": \\"(S)\\"}'
"{'password': '(S)', 'user': 'x'}"
"Namespace(lr=0.1, token='(S)')"
"auth=('bob', '(S)')"
"SecretStr password=SecretStr('(S)')"
"Command '['x', '--token', '(S)']' failed"
'env["TOKEN"] = "(S)"'
"<password>(S)</password>"
"api_key: 'x1' → '(S)'"
"credentials: token='(S)'"
'password="a\\"b(S)"'
"token%3D(S)"
"line\\ntoken=(S)"
"-----BEGIN RSA PRIVATE KEY----- Proc-Type: 4 (S) -----END RSA PRIVATE KEY-----"
""".strip().splitlines()
"""As they are typed in a shell, each with the secret in the place of `(S)`."""
OF_70 = 5
OTHER_SHAPES = """
--github-pat (S)
--kms-key (S)
--pw (S)
--otp=(S)
--webhook https://discord.com/api/webhooks/123456/(S)
--seed-mnemonic (S)
"jdbc:oracle:thin:scott/(S)@host:1521/x"
"curl -ubob:(S) https://x"
"password: !vault (S)"
"passwort=(S)"
"password\\u003d(S)"
"password&#61;(S)"
"pass-word=(S)"
"password = f'(S)'"
"self._password: str = '(S)'"
"password: Optional[str] = '(S)'"
"os.putenv('HF_TOKEN', '(S)')"
'<add key="Password" value="(S)"/>'
'<property name="password">(S)</property>'
'{"name": "API_TOKEN", "value": "(S)"}'
"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ---- (S) ---- END SSH2 ENCRYPTED PRIVATE KEY ----"
""".strip().splitlines()
IN_PROSE = (
    "password\t(S)",
    "password -> (S)",
    "Password for bob: (S)",
    "Incorrect API key provided: (S). You can",
    "token (S)",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_of_seventy_shapes_hardly_any_is_kept(secret):
    commands = [shlex.split(shape.replace("(S)", secret)) for shape in SHAPES]
    in_words = [words for words in commands if secret in " ".join(redacted(words))]
    in_text = [words for words in commands if secret in scrubbed(" ".join(words))]
    assert all(words[0] == "-p" or words == ["password is hunter2"] for words in (*in_words, *in_text))
    assert max(len(in_words), len(in_text)) <= OF_70
    for words in commands:
        once = scrubbed(" ".join(words))
        assert scrubbed(once) == once


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("shape", OTHER_SHAPES)
def test_what_names_itself_is_not_kept(shape, secret):
    words = shlex.split(shape.replace("(S)", secret))
    assert secret not in " ".join(redacted(words))
    assert secret not in scrubbed(" ".join(words))
    once = scrubbed(shape.replace("(S)", secret))
    assert scrubbed(once) == once


@pytest.mark.parametrize("shape", IN_PROSE)
def test_in_a_sentence_it_has_to_look_random(shape):
    assert SECRETS[0] not in scrubbed(shape.replace("(S)", SECRETS[0]))
    assert scrubbed(shape.replace("(S)", "required")) == shape.replace("(S)", "required")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("--api-key sk-123 --epochs 3", "--api-key (R) --epochs 3"),
        ("--password=x=y", "--password=(R)"),
        ("token=abc seed=1", "token=(R) seed=1"),
        ("--env-b wandb_api_key=abc", "--env-b wandb_api_key=(R)"),
        ("--set=db.password=abc", "--set=db.password=(R)"),
        ("--dbPassword abc", "--dbPassword (R)"),
        ("--define db.password abc", "--define db.password (R)"),
        ("train.auth.py abc --lr 1e-3", "train.auth.py abc --lr 1e-3"),
        ("SSHPASS=abc", "SSHPASS=(R)"),
        ("--use-auth --verbose", "--use-auth --verbose"),
        ("sk-abcdefgh12345678", "(R)"),
        ("--note=hf_abcdefgh12345678", "--note=(R)"),
        ("https://me:abc@host/x", "https://(R)@host/x"),
        ("--tokenizer gpt2 --max-tokens 5", "--tokenizer gpt2 --max-tokens 5"),
        ("--eos-token </s> --key 0", "--eos-token </s> --key 0"),
        ("--author=me --pattern x task-1234567890", "--author=me --pattern x task-1234567890"),
    ],
)
def test_what_looks_like_a_secret_in_a_command_line_is_not_kept(words, kept):
    assert redacted(words.split()) == kept.replace("(R)", REDACTED).split()


TOKENS = """hf_abcdefghij12 ghp_abcdefghij12 github_pat_abcdefghij12 glpat-abcdefghij sk-abcdefghij12
sk-proj-abcdefghij12 sk-ant-abcdefghij12
xoxb-abcdefghij12 AKIAABCDEFGHIJKLMN ASIAABCDEFGHIJKLMN AIzaabcdefghijklmnopqrst
eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2lnbmF0 npm_abcdefghijklmnopqrstuv pypi-abcdefghijklmnopqrstuv ya29.abcdefghij12
SG.abcdefghij.abcdefghij sk_live_abcdefghij"""


@pytest.mark.parametrize("token", TOKENS.split())
def test_tokens_are_known_by_their_prefixes(token):
    assert token not in scrubbed(f"cannot use {token}, sorry")
    assert token not in " ".join(redacted(["--note", token]))


@pytest.mark.parametrize(
    "text",
    [
        "tokens=512", "num_keys 4", "num_keys=3", "tokenizer=x", "tokenizer: gpt2", "--max-tokens 128", "eos_token=2",
        "PRNG key", "PRNG key: 12", "key=jax.random.key", "key = jax.random.key(0)", "key=Array((2,), dtype=uint32)",
        "cache key: jit_f-9e107d9d372bb6826bd81d3542a419d6", "cache with key 'jit_f-9e107d9d372bb6826bd81d3542a419d6'",
        "DictKey(key='layers_0/kernel')", "attn.key=float32", "--sort-key time", "public_key=abc", "--key 0",
        "token: List[int]", "token=<eos>",
        "token = tokens[i]", "f(token=self.token)", "token: 50256", "time per output token: 3.1 ms", "token: str",
        "%token.1 = token[] after-all()", "unexpected token: ')'", "tokens: 4096 per step", "use_auth_token=False",
        "KeyError: 'token'", "TypeError: f() got an unexpected keyword argument 'key'", "['token', 'position']",
        "HLO pass: fusion", "pass=fusion", "PWD=/home/me", "basic usage of jit", "Basic block: 3", "a bearer of news",
        "invalid bearer token", "signature: f32[8] -> f32[8]", "https://host/path?x=1", "gs://bucket/a@b",
        "repo:tag@sha256:0123456789abcdef", "Author: Bob <bob@example.com>", "train.py:88", "sk-learn-contrib",
        "File \"train.py\", line 3, in step", "(s32[], token[]) -> token[]", "token -> logits", "--pw 3",
        "name: layer_key, value: 3", "password: str = ''", "token: str = None", "docker run -u1000:1000",
        "/webhook/x.py", "x = otp",
    ],
)  # fmt: skip
def test_ordinary_words_of_programs_stay(text):
    assert scrubbed(text) == text
    assert redacted([text]) == [text]


@pytest.mark.parametrize(
    "unit",
    [
        "token=", "token: ", "key=key:", "key:a:", "token = a(", "token='\\", "'token', ", "token=self.token,", "=",
        "a=b", "://", "https://a:b", "https://a:b@", "a:bbb@", "-----BEGIN PRIVATE KEY-----", "-eyJaaaaaaaa", "sk-",
        "bearer ", "password is ", "authorization: ", "<token>", "-a ", "\x1b[3", "a.", " ",
        "name=key=value=", 'name="aaa">', '{"name": "', "-ua:", "password for a", "-> ", ":thin:a/",
        "key: token, value: ",
    ],
)  # fmt: skip
def test_the_time_is_linear_in_the_text(unit):
    """Four times the text takes some four times as long; a square would take sixteen."""

    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        began = time.process_time()
        scrubbed(text)
        redacted([text])
        return time.process_time() - began

    short = min(seconds(1 << 11) for _ in range(3))
    assert min(seconds(1 << 13) for _ in range(2)) < 9 * short + 0.01


def test_a_private_key_is_left_out_of_lines():
    lines = LineScrubber()
    key = ["-----BEGIN EC PRIVATE KEY-----", "MHcCAQEEIB", "AoGCCqGSM4", "-----END EC PRIVATE KEY-----", "step 1"]
    kept = [lines.scrubbed("stdout", line) for line in key]
    assert kept == [f"{key[0]}{REDACTED}", REDACTED, REDACTED, key[3], "step 1"]


def test_a_log_keeps_no_secret_of_errors_and_output(tmp_path):
    writer = LogWriter(new_header(), tmp_path / "s.jaxprof")
    line = writer.append(e.LogLine(run="r1", stream="stdout", text="token=kq7Zr93hWm"))
    change = e.ClosureChange(name="api_key", before="'kq7Zr93hWm'", now="'x'")
    writer.append(e.Compiled(run="r1", function="f", reason="api_key: 'x' → 'kq7Zr93hWm'", closure=[change]))
    writer.append(e.RunFinished(run="r1", status="failed", error="password: kq7Zr93hWm", traceback="token=kq7Zr93hWm"))
    writer.close()
    assert isinstance(line, e.LogLine)
    assert line.text == f"token={REDACTED}"
    assert "kq7Zr93hWm" not in (tmp_path / "s.jaxprof").read_text()


SOURCE = Path(jaxprof.__file__).parent


def test_settings_that_change_a_measurement_are_kept():
    flags = "--xla_gpu_enable_command_buffer= --xla_force_host_platform_device_count=4 --xla_x"
    settings = {
        "CUDA_VISIBLE_DEVICES": "GPU-aaaaaaaa-0000-0000-0000-000000000000,1",
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cuda,cpu",
        "OMP_NUM_THREADS": "8",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": ".5",
    }
    assert safe_variables({**settings, "XLA_FLAGS": flags}) == {**settings, "XLA_FLAGS": flags}
    kept = safe_variables({"XLA_FLAGS": f"--xla_dump_to=/tmp/x {flags}", "JAX_SOMETHING_NEW": "/path"})
    assert kept == {"XLA_FLAGS": f"--xla_dump_to=... {flags}", "JAX_SOMETHING_NEW": "..."}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "/home/secret"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("SECRET_JAX_PLATFORMS", "secret"),
        ("JAX_COMPILATION_CACHE_DIR", "gs://bucket/secret"),
        ("JAX_COORDINATOR_ADDRESS", "secret:1234"),
        ("JAX_PLATFORMS", "/home/secret"),
        ("JAX_PLATFORMS", "user:secret@host"),
        ("OMP_NUM_THREADS", "secret" * 12),
        ("OMP_NUM_THREADS", "secret\x1b[31m"),
        ("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/secret secret"),
        ("LIBTPU_INIT_ARGS", "--token=user:secret@host"),
    ],
)
def test_nothing_that_could_be_a_secret_gets_in(name, value):
    assert "secret" not in json.dumps(safe_variables({name: value}))


def test_a_named_variable_is_kept_if_it_is_a_setting():
    assert kept_value("MODE", "fast") == "fast"
    assert kept_value("HF_TOKEN", "abc") == "..."
    assert kept_value("MODE", "hf_abcdefgh12345678") == "..."
    assert (
        kept_value("XLA_FLAGS", "--xla_dump_to=/home/me --xla_x=1 --xla_api_key=abc")
        == "--xla_dump_to=... --xla_x=1 --xla_api_key=..."
    )


def test_the_run_and_the_header_mask_the_environment_alike(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/me/secret")
    monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", "secret:1234")
    settings = read_environment([], None).settings
    assert "secret" not in json.dumps(settings)
    assert settings["XLA_FLAGS"] == "--xla_dump_to=..."
    assert settings["JAX_COORDINATOR_ADDRESS"] == "..."


@pytest.mark.process
def test_a_recorded_command_line_has_no_secret_and_the_session_says_so(tmp_path):
    (tmp_path / "program.py").write_text("import sys\nassert sys.argv[1:] == ['--api-key', 'sesame']\n")
    (tmp_path / "itself.py").write_text("import jaxprof\njaxprof.record('record.jaxprof')\n")
    script = ["-m", "jaxprof", "script", "--plain", "--out", "script.jaxprof", "program.py", "--api-key", "sesame"]
    for words, name in ((script, "script.jaxprof"), (["itself.py", "token=sesame"], "record.jaxprof")):
        subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, env=environment())
        assert "sesame" not in (tmp_path / name).read_text()
        (notice,) = load(tmp_path / name, Session).notices
        assert "possible secret" in notice


def test_a_side_of_a_comparison_keeps_no_secret():
    from jaxprof.cli.sides import AllWords, SideWords, read_sides

    words = AllWords(targets=("selu", "selu"), b=SideWords(environment=("HF_TOKEN=sesame", "OMP_NUM_THREADS=1")))
    with read_sides(words) as read:
        side = read.sides[1]
    assert "sesame" not in side.title + repr(side.spec())
    assert "OMP_NUM_THREADS=1" in side.title
    assert side.environment["HF_TOKEN"] == "sesame", "the process itself gets it"


def test_only_what_passed_the_list_is_written():
    """Whoever makes the events and the header that hold a command line or variables asks `private` or `redaction`."""
    asked = {"ProgramStarted": "argv", "Header": "command", "SideSpec": "environment", "EnvironmentRead": "settings"}
    found = {
        (called.func.id, ast.unparse(keyword.value))
        for path in SOURCE.rglob("*.py")
        if any(f"{name}(" in path.read_text() for name in asked)
        for called in ast.walk(tree(path))
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id in asked
        for keyword in called.keywords
        if keyword.arg == asked[called.func.id]
    }
    assert {name for name, _ in found} == set(asked)
    values = [value for name, value in found if name != "EnvironmentRead"]
    assert all(value.startswith("redacted(") or "kept_value(" in value for value in values), values
    assert "safe_variables(os.environ)" in (SOURCE / "engine/measure/environment.py").read_text()
