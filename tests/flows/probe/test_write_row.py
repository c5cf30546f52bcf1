"""Rows as people paste them: TOML and Python give back the row."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.flows.probe.write_row import write_python, write_toml
from asides.providers.user_rows import read_rows

_TEXT = st.text(max_size=12).filter(lambda text: not any(0xD800 <= ord(letter) < 0xE000 for letter in text))
_PLAIN = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).map(lambda name: f"x-{name}")


def paste(row: asides.Provider) -> asides.Provider:
    (read,) = read_rows(tomllib.loads(write_toml(row))["providers"], "asides.toml", ())
    return read


def test_a_row_in_both_forms() -> None:
    row = asides.Provider(
        name="acme",
        base_url="https://llm.acme.example/v1",
        key_env=("ACME_API_KEY",),
        headers=(("X-Team", 'a "b"'),),
        quirks=asides.Quirks(thinking_in=("inner_voice",), tags=("think", ("<a>", "</a>")), fields=(("think", True),)),
        models=(asides.ModelRule(models="big*", thinking="optional", efforts=("low", "high"), starts_inside="auto"),),
        replay=(asides.ReplayRule(when="never", since="2026-11-16", source="asides probe"),),
        tier="yours",
    )
    assert (
        write_toml(row)
        == """[providers.acme]
base_url = "https://llm.acme.example/v1"
key_env = ["ACME_API_KEY"]
headers = { X-Team = "a \\"b\\"" }

[providers.acme.quirks]
thinking_in = ["inner_voice"]
tags = ["think", ["<a>", "</a>"]]
fields = { think = true }

[[providers.acme.models]]
models = "big*"
thinking = "optional"
efforts = ["low", "high"]
starts_inside = "auto"

[[providers.acme.replay]]
models = "*"
when = "never"
since = "2026-11-16"
source = "asides probe"
"""
    )
    assert paste(row) == row
    assert eval(write_python(row), {"asides": asides}) == row


@pytest.mark.parametrize("name", ["with space", "a.b", "ünï", "7"])
def test_names_that_need_quotes(name: str) -> None:
    row = asides.Provider(name=name, base_url="http://127.0.0.1:1", tier="yours")
    assert paste(row) == row


@settings(deadline=None)
@given(
    fields=st.lists(_TEXT.filter(str.strip), min_size=1, max_size=3),
    tag=st.tuples(_TEXT, _TEXT),
    name=_PLAIN,
    glob=_TEXT,
)
def test_any_row_comes_back(fields: list[str], tag: tuple[str, str], name: str, glob: str) -> None:
    quirks = asides.Quirks(thinking_in=tuple(fields), tags=("think", tag))
    rule = asides.ModelRule(models=glob, starts_inside=True, source=glob)
    row = asides.Provider(name=name, base_url="http://127.0.0.1:1", quirks=quirks, models=(rule,), tier="yours")
    text = write_toml(row)
    assert paste(row) == row
    assert eval(write_python(row), {"asides": asides}) == row
    assert all(letter.isprintable() or letter == "\n" for letter in text if ord(letter) < 0xA0)
