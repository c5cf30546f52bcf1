"""The fields of a client's request, which every server half takes out one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from asides.dialects.server_half import RequestFields, read_sampling
from asides.values.errors import ConfigError
from asides.values.messages import Message, Sampling, Text


def read_text(message: Mapping[str, Any]) -> Message:
    if "text" not in message:
        raise ConfigError("text is missing.")
    return Message("user", (Text(message["text"]),))


def test_a_field_is_taken_out_and_the_others_remain() -> None:
    fields = RequestFields.parse_body(b'{"model":"m","limit":5,"unset":null,"more":1}')
    assert (fields.take_model(), fields.take("limit", int)) == ("m", 5)
    assert fields.take("limit", int) is None
    assert fields.remaining == {"more": 1}


def test_an_inner_object_is_put_back_with_its_remaining_fields() -> None:
    fields = RequestFields({"options": {"seed": 1, "more": 2}, "others": {"seed": 1}})
    for name in ("options", "others", "absent"):
        inner = fields.take_object(name)
        inner.take("seed", int)
        fields.put_back(name, inner)
    assert fields.remaining == {"options": {"more": 2}}


def test_an_error_names_the_field_and_the_message() -> None:
    fields = RequestFields({"options": {"seed": "x"}, "messages": [{"text": "hi"}, {}]})
    with pytest.raises(ConfigError, match=r"options\.seed: Expected `int`"):
        fields.take_object("options").take("seed", int)
    with pytest.raises(ConfigError, match=r"messages\[1\]: text is missing"):
        fields.take_messages(read_text)
    with pytest.raises(ConfigError, match="messages is missing or empty"):
        fields.take_messages(read_text)
    with pytest.raises(ConfigError, match="model is missing"):
        fields.take_model()


def test_sampling_settings_are_checked_for_their_types() -> None:
    assert read_sampling({"temperature": 0.5}) == Sampling(temperature=0.5)
    with pytest.raises(ConfigError, match="a sampling setting is invalid"):
        read_sampling({"temperature": "warm"})
