"""`jaxprof config`, and what settings are to `run` and the app."""

import pytest

from tables import rows


def test_a_value_is_set_and_taken_out(call, state_home):
    call("config", "set", "devices", "cuda:0,cpu:0")
    call("config", "set", "budget", "2.5")
    call("config", "set", "keys.results.compare", "ctrl+k")
    text = (state_home / "config.toml").read_text()
    assert text == 'devices = ["cuda:0", "cpu:0"]\nbudget = 2.5\n\n[keys]\n"results.compare" = "ctrl+k"\n'
    assert "keys.results.compare ctrl+k" in " ".join(call("config", "show").out.split())
    call("config", "unset", "budget")
    assert "budget" not in (state_home / "config.toml").read_text()


def test_settings_give_defaults_of_options(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.jaxprof]\npreset = "published"\ncomparison_budget = 90\nmargin = "4%"\n'
    )
    for words, option, usual in rows("""
        compare  --budget  90
        compare  --margin  4%
        hlo      --preset  published
    """):
        said = " ".join(call(words, "--help").out.split())
        assert f"default: {usual}" in said[said.index(f"{option} ") :][:200]


@pytest.mark.process
def test_setting_is_no_given_option(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("gate", "nowhere.py:step", "--base", "nothing")
    assert "--fail-on" in call(*words).err
    (tmp_path / "pyproject.toml").write_text('[tool.jaxprof]\nfail_on = ["kernels"]\n')
    monkeypatch.setenv("JAXPROF_COMPARISON_BUDGET", "90")
    said = call(*words).err
    assert "--fail-on" not in said
    assert "applies to limits" not in said
    assert "--budget applies to limits on times" in call(*words, "--budget", "90").err
