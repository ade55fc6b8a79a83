"""Settings: which of several sources counts, what is refused, and how one value is written into a file."""

import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import held_cases
from jaxprof.base.config import config_path, keep, project_path, read_config, with_setting
from jaxprof.base.errors import FileRefusedError, JaxprofError, UsageError


@pytest.fixture
def own(tmp_path, monkeypatch):
    path = tmp_path / "settings" / "config.toml"
    monkeypatch.setenv("JAXPROF_CONFIG", str(path))
    return path


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_config_precedence(own, tmp_path, monkeypatch):
    found = read_config(tmp_path)
    assert (found.values, found.keys, found.sources) == ({}, {}, {})
    project = written(tmp_path / "work" / "pyproject.toml", '[tool.jaxprof]\npreset = "published"\nbudget = 9\n')
    inside = tmp_path / "work" / "deep"
    inside.mkdir()
    assert project_path(inside) == project
    assert (read_config(inside).get("preset", str), read_config(inside).sources["preset"]) == (
        "published",
        str(project),
    )
    written(own, 'preset = "quick"\ndevices = ["cuda:0", "cpu:0"]\n')
    found = read_config(inside)
    assert found.values == {"preset": "quick", "budget": 9.0, "devices": ("cuda:0", "cpu:0")}
    monkeypatch.setenv("JAXPROF_PRESET", "published")
    monkeypatch.setenv("JAXPROF_DEVICES", "tpu:0, cpu:0")
    found = read_config(inside)
    assert (found.get("preset", str), found.get("devices", tuple)) == ("published", ("tpu:0", "cpu:0"))
    assert (found.sources["preset"], found.sources["budget"]) == ("JAXPROF_PRESET", str(project))
    for line in ('theme = "x"', 'keys."app.quit" = "z"'):
        written(project, f"[tool.jaxprof]\n{line}\n")
        with pytest.raises(UsageError, match="unknown setting"):
            read_config(inside)
    monkeypatch.delenv("JAXPROF_CONFIG")
    assert config_path().parts[-2:] == ("jaxprof", "config.toml")


WRONG = (
    'preset = "slow"', "preset = 3", "budget = 0", "budget = true", "budget = inf", "devices = []", "devices = [1]",
    'theme = " "', "keys = 3", '[keys]\n"app.quit" = ""', "themes = 1", "preset = ", "x = " + "[" * 10_000,
)  # fmt: skip


def test_a_wrong_value_is_refused_with_its_file(own, tmp_path):
    cases = {}
    for text in WRONG:
        written(own, text)
        with pytest.raises(JaxprofError) as raised:
            read_config(tmp_path)
        what = raised.value.what.partition(" is not TOML: ")[0]  # the rest is in the words of this Python
        cases[text[:40]] = f"  {what}\n  {raised.value.hint}\n".replace(str(own), "FILE")
    held_cases("settings.txt", cases)


def test_what_is_no_toml_of_a_project_is_left_alone(own, tmp_path):
    for text in ("tool = [", "tool = 3"):
        written(tmp_path / "pyproject.toml", text)
        assert read_config(tmp_path).sources == {}


def test_keys_are_by_the_id_of_an_action_quoted_or_not(own, tmp_path):
    written(own, '[keys]\n"results.compare" = "ctrl+k"\nhome.run = "f9"\n"app.mode.hlo" = "f12"\n')
    assert read_config(tmp_path).keys == {"results.compare": "ctrl+k", "home.run": "f9", "app.mode.hlo": "f12"}


def test_one_value_is_written_and_the_rest_stays(own, tmp_path):
    keep("preset", "published")
    assert own.read_text() == 'preset = "published"\n'
    written(own, '# mine\npreset = "quick"  # now\n\n[keys]\n# a comment\n"app.quit" = "ctrl+x"\n')
    keep("preset", "published")
    keep("devices", ("cuda:0",))
    keep("keys.app.quit", "f10")
    keep("keys.results.compare", "k,K")
    assert own.read_text() == (
        '# mine\npreset = "published"\ndevices = ["cuda:0"]\n\n[keys]\n# a comment\n"app.quit" = "f10"\n'
        '"results.compare" = "k,K"\n'
    )
    keep("preset", None)
    keep("budget", None)
    assert read_config(tmp_path).get("preset", str) is None
    assert "# mine" in own.read_text()


def test_config_edit_of_long_values_and_links(own, tmp_path):
    text = 'devices = [\n  "cuda:0",\n]\n'
    written(own, text)
    with pytest.raises(JaxprofError):
        keep("devices", ("cpu:0",))
    assert own.read_text() == text
    kept = written(tmp_path / "dotfiles" / "jaxprof.toml", "")
    own.unlink()
    own.symlink_to(kept)
    keep("budget", 2.5)
    assert own.is_symlink()
    assert kept.read_text() == "budget = 2.5\n"


@given(
    st.lists(st.sampled_from(["# note", "", 'preset = "quick"', "budget = 3", 'theme = "a b"']), unique=True),
    st.sampled_from(["preset", "theme", "budget"]),
    st.one_of(st.text(min_size=1, max_size=8), st.floats(1e-3, 1e6).map(lambda number: round(number, 3))),
)
def test_what_is_written_is_read_back(lines, name, value):
    before = tomllib.loads("\n".join(lines))
    after = tomllib.loads(with_setting("\n".join(lines), "", name, value))
    assert {**before, name: after[name]} == after
    assert after[name] == pytest.approx(value) if isinstance(value, float) else after[name] == value
    assert tomllib.loads(with_setting("\n".join(lines), "", name, None)) == {
        k: v for k, v in before.items() if k != name
    }


@pytest.mark.parametrize("name", ["# jaxprof", ""])
@pytest.mark.parametrize(
    "text",
    ["a" + ".a" * 30_000 + " = 1", "[" + "a." * 30_000 + "a]", '"a"' + " . 'a'" * 10_000 + " = 1", "x" * 60_000,
     "k = 1\n" * 500_000, "x = " + "{a = " * 10_000, "'" * 60_000],
)  # fmt: skip
def test_no_project_delays_a_command(name, text, tmp_path):
    """A key of 30 000 parts took 12 s."""
    (tmp_path / "pyproject.toml").write_text(f"{name}\n{text}\n")
    began = time.process_time()
    assert read_config(tmp_path).values == {}
    assert time.process_time() - began < 2


def test_a_file_of_settings_that_takes_long_to_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    monkeypatch.setenv("JAXPROF_CONFIG", str(path))
    for text, what in (
        ("a" + ".a" * 99 + " = 1", "a key of more than 16 parts in line 1"),
        ("#" * 200_000, "more than 128 KiB"),
    ):
        path.write_text(text)
        with pytest.raises(FileRefusedError, match=what):
            read_config(tmp_path)


def test_settings_are_for_their_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPROF_CONFIG", str(tmp_path / "new" / "config.toml"))
    keep("theme", "dark")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "config.toml").stat().st_mode & 0o777 == 0o600
