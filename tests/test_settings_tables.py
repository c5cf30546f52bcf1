"""The tables of settings with names of the user's own: what is a placeholder, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asides.client import Client
from asides.settings import load_settings
from asides.settings_tables import Template, read_aliases, read_templates
from asides.values.errors import ConfigError, UnknownModel
from asides_stage.stage import OpenStage, Say


def test_an_alias_of_the_settings_serves_the_library(stage: OpenStage) -> None:
    server = stage(Say(text="A."))
    settings = load_settings({}, files=[], aliases={"fast": "openai-compatible:staged"})
    with Client(settings=settings, base_url=server.url) as client:
        assert client.ask("fast", "?").text == "A."
        assert client.ask(" fast ", "?").text == "A."
    assert [request.json["model"] for request in server.requests] == ["staged", "staged"]


def test_an_unknown_name_says_that_a_file_with_aliases_was_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asides.toml").write_text('[aliases]\nfast = "groq:m"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    with Client(settings=load_settings({})) as client, pytest.raises(UnknownModel, match=r"may not set aliases\.fast"):
        client.ask("fast", "?")


def test_the_first_file_wins_and_arguments_win_over_files(tmp_path: Path) -> None:
    for name, model in (("a", "groq:a"), ("b", "groq:b")):
        (tmp_path / name).write_text(f'[aliases]\nx = "{model}"\n{name} = "{model}"\n', "utf-8")
    files = [tmp_path / "a", tmp_path / "b"]
    assert load_settings({}, files=files).aliases == {"x": "groq:a", "a": "groq:a", "b": "groq:b"}
    assert load_settings({}, files=files, aliases={"x": "groq:c"}).aliases["x"] == "groq:c"
    assert load_settings({}, files=files).resolve_model("groq:x") == "groq:x"


@pytest.mark.parametrize("table", [[], {"a": ""}, {"a": 1}, {"a:b": "groq:m"}, {"a/b": "groq:m"}, {"a b": "groq:m"}])
def test_an_alias_that_cannot_be_one_is_refused(table: Any) -> None:
    with pytest.raises(ConfigError, match=r"asides\.toml: \[aliases\]"):
        read_aliases(table, "asides.toml: [aliases]")


@pytest.mark.parametrize(
    "table",
    [
        [],
        {"t": 1},
        {"t": {}},
        {"t": {"prompt": 1}},
        {"t": {"promt": "x"}},
        {"t": {"system": "{input}"}},
        {"t": {"prompt": "x", "params": ["a b"]}},
        {"t": {"prompt": "x", "params": ["input"]}},
    ],
)
def test_a_template_that_cannot_be_one_is_refused(table: Any) -> None:
    with pytest.raises(ConfigError, match=r"asides\.toml: \[templates\]"):
        read_templates(table, "asides.toml: [templates]")


@pytest.mark.parametrize(
    ("prompt", "params", "placeholders"),
    [
        ("{input} {a} {b_2} { c } {} {1} {a-b} {x.y} ${d}", None, {"input", "a", "b_2", "d"}),
        ("{input} {a} {b}", ("a",), {"input", "a"}),
        ("{a}", (), set()),
        ("{a} {b}", {"b": "default"}, {"b"}),
    ],
)
def test_placeholders_are_names_in_braces_or_those_declared(prompt: str, params: Any, placeholders: set[str]) -> None:
    assert Template(prompt=prompt, params=params).find_placeholders() == placeholders


def test_a_template_does_not_show_its_prompt() -> None:
    assert "secret" not in repr(Template(prompt="secret {input}", system="secret"))
