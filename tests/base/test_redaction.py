"""What looks like a secret, in command lines and in texts, and what does not. What a session may say of an environment
and of a command line, and what it must not."""

import ast
import json
import shlex
import time
from pathlib import Path

import jaxprof
from golden import cases, held_cases
from jaxprof import events as e
from jaxprof.base.private import SETTINGS, safe_variables, value_to_keep
from jaxprof.base.redaction import LineScrubber, is_secret_name, redact_words, scrub
from jaxprof.base.text import REDACTED
from jaxprof.engine.measure.environment import read_environment
from jaxprof.session import LogWriter, new_header
from source_tree import tree
from tables import rows

SECRETS = ("kq7Zr93hWmXv21", "hunter2")
KEPT = 8
"""Shapes of which something is kept: `-p` before a word, and sentences in which an ordinary word could be one."""


def test_what_is_kept_of_a_secret():
    """In a command line and in a text, of `tests/net/secrets.txt`, where the secret stands as `(S)`."""
    told = {}
    for shape in cases("secrets.txt"):
        kept = []
        for secret in SECRETS:
            words = shlex.split(shape.replace("(S)", secret))
            once = scrub(" ".join(words))
            assert scrub(once) == once
            kept += [text.replace(secret, "(S)") for text in (" ".join(redact_words(words)), once)]
        told[shape] = "".join(f"  {text}\n" for text in dict.fromkeys(kept))
    held_cases("secrets.txt", told)
    assert sum("(S)" in text for text in told.values()) == KEPT


TOKENS = """hf_abcdefghij12 ghp_abcdefghij12 github_pat_abcdefghij12 glpat-abcdefghij sk-abcdefghij12
sk-proj-abcdefghij12 sk-ant-abcdefghij12
xoxb-abcdefghij12 AKIAABCDEFGHIJKLMN ASIAABCDEFGHIJKLMN AIzaabcdefghijklmnopqrst
eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2lnbmF0 npm_abcdefghijklmnopqrstuv pypi-abcdefghijklmnopqrstuv ya29.abcdefghij12
SG.abcdefghij.abcdefghij sk_live_abcdefghij rk_test_abcdefghij gho_abcdefghij12 xapp-abcdefghij12
ABIAABCDEFGHIJKLMN whsec_abcdefghij dop_v1_abcdefghijklmnopqrstuv dckr_pat_abcdefghij12 hvs.abcdefghijklmnopqrstuv
r8_abcdefghijklmnopqrstuv nvapi-abcdefghijklmnopqrstuv gsk_abcdefghijklmnopqrstuv dapi0123456789abcdef0123456789abcdef
shpat_abcdefghijklmnopqrstuv AGE-SECRET-KEY-ABCDEFGHIJ tskey-abcdefghij12 key-0123456789abcdef0123456789abcdef
123456789:AAabcdefghijklmnopqrstuvwxyz0123"""


def test_tokens_are_known_by_their_prefixes():
    for token in TOKENS.split():
        assert token not in scrub(f"cannot use {token}, sorry")
        assert token not in " ".join(redact_words(["--note", token]))


ORDINARY = rows("""
    tokens=512  num_keys 4  num_keys=3  tokenizer=x  tokenizer: gpt2  --max-tokens 128  eos_token=2  PRNG key
    PRNG key: 12  key=jax.random.key  key = jax.random.key(0)  key=Array((2,), dtype=uint32)
    cache key: jit_f-9e107d9d372bb6826bd81d3542a419d6  cache with key 'jit_f-9e107d9d372bb6826bd81d3542a419d6'
    DictKey(key='layers_0/kernel')  attn.key=float32  --sort-key time  public_key=abc  --key 0  token: List[int]
    token=<eos>  token = tokens[i]  f(token=self.token)  token: 50256  time per output token: 3.1 ms  token: str
    %token.1 = token[] after-all()  unexpected token: ')'  tokens: 4096 per step  use_auth_token=False
    KeyError: 'token'  TypeError: f() got an unexpected keyword argument 'key'  ['token', 'position']
    HLO pass: fusion  pass=fusion  PWD=/home/me  basic usage of jit  Basic block: 3  a bearer of news
    invalid bearer token  signature: f32[8] -> f32[8]  https://host/path?x=1  gs://bucket/a@b
    repo:tag@sha256:0123456789abcdef  Author: Bob <bob@example.com>  train.py:88  sk-learn-contrib
    File "train.py", line 3, in step  (s32[], token[]) -> token[]  token -> logits  --pw 3
    name: layer_key, value: 3  password: str = ''  token: str = None  docker run -u1000:1000  /webhook/x.py
    -p 8080  -p 8080:80/tcp  -p8080:80  -p 0.5  -pthread  mkdir -p a/b2c3d4  docker run -p 127.0.0.1:80:80 image
    pin_memory=True  --pin 0-3,8  pinned=4096  mapping: 1234  mysql -p -u root  login: required  exit code: 1234
    3f786850e387550fdab836ed7e6dc881de23001b  --git 3F786850E387550FDAB836ED7E6DC881DE23001B
    home/user/Projects/abc123/def/ghi/jkl/mno  GradientAccumulationTransformerBlock1234
    x = otp  password required  password -> required  Password for bob: required
    Incorrect API key provided: required. You can  token required
""")


def test_ordinary_words_of_programs_stay():
    for text in (text for row in ORDINARY for text in row):
        assert scrub(text) == text
        assert redact_words([text]) == [text]


def test_a_secret_key_of_aws_is_known_by_its_form():
    key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    for text in (key, f"('AKIAIOSFODNN7EXAMPLE', '{key}')", f"x={key};", f"it is {key}."):
        assert key not in scrub(text)
        assert key not in " ".join(redact_words([text]))
    assert value_to_keep("JAX_PLATFORMS", key.replace("/", "x")) == "..."


def test_an_option_of_a_program_that_is_a_password_there_alone():
    for command in rows("""
        mysql -u root -phunter2 db  mysqldump -phunter2  sshpass -p hunter2 ssh host  docker login -u bob -p hunter2
        redis-cli -h host -a hunter2  ldapsearch -x -w hunter2  wandb login hunter2
    """):
        for text in command:
            assert scrub(text) == text.replace("hunter2", REDACTED)


UNITS = [
    "token=", "token: ", "key=key:", "key:a:", "token = a(", "token='\\", "'token', ", "token=self.token,", "=",
    "a=b", "://", "https://a:b", "https://a:b@", "a:bbb@", "-----BEGIN PRIVATE KEY-----", "-eyJaaaaaaaa", "sk-",
    "bearer ", "password is ", "authorization: ", "<token>", "-a ", "\x1b[3", "a.", " ",
    "name=key=value=", 'name="aaa">', '{"name": "', "-ua:", "password for a", "-> ", ":thin:a/",
    "key: token, value: ", "-p", "-p ", "mysql ", "mysql -p", "docker login ", "aA1", "aA1/" * 9,
]  # fmt: skip


def test_the_time_is_linear_in_the_text():
    """Four times the text takes some four times as long; a square would take sixteen."""

    def seconds(unit, length):
        text = unit * (length // len(unit))
        began = time.process_time()
        scrub(text)
        redact_words([text])
        return time.process_time() - began

    for unit in UNITS:
        short = min(seconds(unit, 1 << 11) for _ in range(3))
        assert min(seconds(unit, 1 << 13) for _ in range(2)) < 9 * short + 0.01, unit


def test_a_private_key_is_left_out_of_lines():
    lines = LineScrubber()
    key = ["-----BEGIN EC PRIVATE KEY-----", "MHcCAQEEIB", "AoGCCqGSM4", "-----END EC PRIVATE KEY-----", "step 1"]
    kept = [lines.scrub("stdout", line) for line in key]
    assert kept == [f"{key[0]}{REDACTED}", REDACTED, REDACTED, key[3], "step 1"]


def test_a_log_keeps_no_secret_of_errors_and_output(tmp_path):
    writer = LogWriter(new_header(), tmp_path / "s.jaxprof")
    line = writer.append(e.LogLine(run="r1", stream="stdout", text="token=kq7Zr93hWm"))
    change = e.ClosureChange(name="api_key", before="'kq7Zr93hWm'", now="'x'")
    option = e.CompileReason(kind="jit_option", name="api_key", before="'x'", now="'kq7Zr93hWm'")
    shape = e.CompileReason(kind="shape", name="token", before="f32[4]", now="f32[8]")
    compiled = writer.append(e.Compiled(run="r1", function="f", reasons=[option, shape], closure=[change]))
    writer.append(e.WarningRaised(run="r1", code="ledger_problem", values={"error": "KeyError: token=kq7Zr93hWm"}))
    writer.append(e.RunFinished(run="r1", status="failed", error="password: kq7Zr93hWm", traceback="token=kq7Zr93hWm"))
    writer.close()
    assert line.text == f"token={REDACTED}"
    assert compiled.reasons[1] == shape, "a type is no secret, whatever has it"
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


def test_nothing_that_could_be_a_secret_gets_in():
    for name, value in rows("""
        HOME                       /home/secret
        AWS_SECRET_ACCESS_KEY      secret
        SECRET_JAX_PLATFORMS       secret
        JAX_COMPILATION_CACHE_DIR  gs://bucket/secret
        JAX_COORDINATOR_ADDRESS    secret:1234
        JAX_PLATFORMS              /home/secret
        JAX_PLATFORMS              user:secret@host
        OMP_NUM_THREADS            secretsecretsecretsecretsecretsecretsecretsecretsecretsecretsecretsecret
        OMP_NUM_THREADS            secret\x1b[31m
        XLA_FLAGS                  --xla_gpu_cuda_data_dir=/secret secret
        LIBTPU_INIT_ARGS           --token=user:secret@host
    """):
        assert "secret" not in json.dumps(safe_variables({name: value})), (name, value)


def test_a_named_variable_is_kept_if_it_is_a_setting():
    assert value_to_keep("MODE", "fast") == "fast"
    assert value_to_keep("HF_TOKEN", "abc") == "..."
    assert value_to_keep("MODE", "hf_abcdefgh12345678") == value_to_keep("MODE", "sk-abcd1234") == "..."
    assert not any(map(is_secret_name, SETTINGS)), "the names on the list are not looked at"
    kept = value_to_keep("XLA_FLAGS", "--xla_dump_to=/home/me --xla_x=1 --xla_api_key=abc")
    assert kept == "--xla_dump_to=... --xla_x=1 --xla_api_key=..."


def test_the_run_and_the_header_mask_the_environment_alike(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/me/secret")
    monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", "secret:1234")
    settings = read_environment().settings
    assert "secret" not in json.dumps(settings)
    assert settings["XLA_FLAGS"] == "--xla_dump_to=..."
    assert settings["JAX_COORDINATOR_ADDRESS"] == "..."


def test_a_side_of_a_comparison_keeps_no_secret():
    from jaxprof.analysis.target import resolve
    from jaxprof.runner.sides import sides_of

    words = {"arguments": (), "environment_b": ("HF_TOKEN=sesame", "OMP_NUM_THREADS=1")}
    (_, side), _ = sides_of([resolve("selu", code=True)] * 2, words, None)
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
    assert all(value.startswith("redact_words(") or "value_to_keep(" in value for value in values), values
    assert "safe_variables(os.environ)" in (SOURCE / "engine/measure/environment.py").read_text()
