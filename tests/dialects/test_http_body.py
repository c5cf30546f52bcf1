"""Requests of every dialect: merged fields, JSON, addresses, headers, and notices for settings."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.dialects.http_body import (
    choose_credential_header,
    encode_json,
    join_url,
    merge_fields,
    report_output_not_sent,
    write_sampling,
)
from asides.providers.provider import Provider, Quirks, Target
from asides.values.messages import OutputSchema, Prompt, Sampling
from asides.values.notices import Notice


def target(base_url: str = "https://host.test/v1", **row: Any) -> Target:
    return Target(Provider(name="host", **row), "m", base_url)


def test_native_fields_win_and_their_siblings_stay() -> None:
    ours = {"a": 1, "inner": {"x": 1, "y": 2}}
    assert merge_fields(ours, {"inner": {"y": 3}, "b": 2}) == {"a": 1, "inner": {"x": 1, "y": 3}, "b": 2}
    assert ours == {"a": 1, "inner": {"x": 1, "y": 2}}, "ours is left as it was"


def test_an_object_of_another_type_replaces_ours() -> None:
    ours = {"thinking": {"type": "enabled", "budget_tokens": 5}}
    assert merge_fields(ours, {"thinking": {"type": "disabled"}}) == {"thinking": {"type": "disabled"}}
    assert merge_fields(ours, {"thinking": {"budget_tokens": 6}})["thinking"] == {"type": "enabled", "budget_tokens": 6}


def test_a_value_that_json_cannot_hold_is_named_by_its_field() -> None:
    with pytest.raises(asides.ConfigError, match="look at 'odd'"):
        encode_json({"model": "m", "odd": object()})
    with pytest.raises(asides.ConfigError, match="look at 'text'"):
        encode_json({"text": "\ud800"})


def test_the_query_has_an_order_and_the_first_of_a_name_wins() -> None:
    where = target("https://host.test/v1?b=2", query=(("b", "row"), ("c", "3"), ("d", "$UNSET")))
    assert join_url(where, "/v1/x", first=[("a", "1")], last=[("z", "9")]) == "https://host.test/v1/x?a=1&b=2&c=3&z=9"


@pytest.mark.parametrize(
    ("auth", "header"),
    [("bearer", ("Authorization", "Bearer ")), ("nothing", None), ("x-api-key", ("x-api-key", ""))],
)
def test_the_credential_goes_in_the_header_of_the_row(auth: Any, header: tuple[str, str] | None) -> None:
    assert choose_credential_header(target(quirks=Quirks(auth=auth))) == header


def test_sampling_that_a_dialect_lacks_is_dropped_with_a_notice() -> None:
    notices: list[Notice] = []
    prompt = Prompt((), sampling=Sampling(temperature=0.5, seed=3))
    assert write_sampling(prompt, {"temperature": "temperature"}, notices) == {"temperature": 0.5}
    assert [(notice.code, notice.setting) for notice in notices] == [("setting_dropped", "seed")]


def test_an_output_format_that_is_not_sent_gives_a_notice_with_its_name() -> None:
    assert report_output_not_sent("json").code == "json_not_sent"
    assert report_output_not_sent(OutputSchema("a", {})).code == "schema_not_sent"
