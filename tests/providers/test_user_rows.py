"""Rows that users write as tables: new ones, changes of known ones, and errors that name the place."""

from __future__ import annotations

from typing import Any

import pytest

from asides.providers.provider import ModelRule, Provider, Quirks, ReplayRule
from asides.providers.table import plain_row
from asides.providers.user_rows import read_row
from asides.values.errors import ConfigError, UnknownProvider

KNOWN = Provider(
    name="known",
    base_url="https://known.example/v1",
    key_env=("KNOWN_KEY",),
    aliases=("wellknown",),
    quirks=Quirks(stream_usage=False, path="/talk"),
    models=(ModelRule(models="old*", thinking="never"),),
    replay=(ReplayRule(when="all"),),
    tier="verified",
)


def find(name: str) -> Provider:
    if name != "known":
        raise UnknownProvider(f"no provider is called {name}.")
    return KNOWN


def read(name: str, table: Any) -> Provider:
    return read_row(name, table, "asides.toml: providers", find)


@pytest.mark.parametrize(
    ("name", "table", "row"),
    [
        pytest.param(
            "mine",
            {"base-url": "https://mine.example/v1", "key_env": "MINE", "headers": {"X-Team": "a"}},
            Provider(
                name="mine",
                base_url="https://mine.example/v1",
                key_env=("MINE",),
                headers=(("X-Team", "a"),),
                tier="yours",
            ),
            id="a new row",
        ),
        pytest.param(
            "mine",
            {"quirks": {"ask-by": "template", "thinking_in": "musing", "fields": {"include-thoughts": True}}},
            Provider(
                name="mine",
                quirks=Quirks(ask_by="template", thinking_in=("musing",), fields=(("include-thoughts", True),)),
                tier="yours",
            ),
            id="nested tables are read in the same way",
        ),
        pytest.param(
            "known",
            {"base_url": "https://proxy.example", "quirks": {"path": "/v2"}, "replay": [{"when": "never"}]},
            Provider(
                name="known",
                base_url="https://proxy.example",
                key_env=("KNOWN_KEY",),
                aliases=("wellknown",),
                quirks=Quirks(stream_usage=False, path="/v2"),
                models=KNOWN.models,
                replay=(ReplayRule(when="never"), *plain_row("openai_chat").replay),
                tier="yours",
            ),
            id="a known row with changes",
        ),
        pytest.param(
            "mine",
            {"like": "known", "models": [{"models": "new*", "efforts": "low"}]},
            Provider(
                name="mine",
                base_url="https://known.example/v1",
                key_env=("KNOWN_KEY",),
                quirks=Quirks(stream_usage=False, path="/talk"),
                models=(ModelRule(models="new*", efforts=("low",)), ModelRule(models="old*", thinking="never")),
                replay=(ReplayRule(when="all"),),
                tier="yours",
            ),
            id="like another, without its other names",
        ),
    ],
)
def test_a_table_becomes_a_row(name: str, table: dict[str, Any], row: Provider) -> None:
    assert read(name, table) == row


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("https://mine.example", "is a table of fields"),
        ({"api_key": "sk-secret"}, "api_key does not belong in a file.*key_env"),
        ({"launcher": "os:system"}, "launcher does not belong in a file"),
        ({"name": "other"}, "the name of the row is the name of its table"),
        ({"like": "nobody"}, "like: no provider is called nobody"),
        ({"base_ulr": "x"}, "is not valid: .*base_ulr.*Its fields are those of asides.Provider"),
        ({"quirks": {"stores": False}}, "is not valid: .*stores.*quirks"),
        ({"quirks": {"ask_by": "shouting"}}, r"is not valid: .*quirks\.ask_by"),
        ({"models": [{"budget": "much"}]}, r"is not valid: .*models\[0\]\.budget"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place_and_no_key(table: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=f"^asides.toml: providers.*{says}") as caught:
        read("mine", table)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["known", "mine"])
def test_a_known_row_with_another_address_reads_what_an_unknown_server_may_send(name: str) -> None:
    table = {"base_url": "https://proxy.example/v1", **({} if name == "known" else {"like": "known"})}
    never = Provider(name="known", base_url="https://known.example/v1", quirks=Quirks(tags=(), path="/talk"))
    moved = read_row(name, table, "asides.toml: providers", lambda _: never)
    assert (moved.quirks.tags, moved.quirks.path) == (None, "/talk")
    stated = read_row(name, {**table, "quirks": {"tags": []}}, "asides.toml: providers", lambda _: never)
    assert stated.quirks.tags == ()
    same = read_row(name, {**table, "base_url": "https://known.example/v2"}, "asides.toml: providers", lambda _: never)
    assert same.quirks.tags == ()
