"""The fields of a client's request, which every server half takes out one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.dialects.server_half import RequestFields
from asides.values.errors import ConfigError
from asides.values.events import Event, ReplyEnded, ReplyStarted, TextDelta, ToolCallDelta
from asides.values.messages import Message, Sampling
from asides.values.parts import Text


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
    names = {"temperature": "temperature", "top_p": "p"}
    fields = RequestFields({"temperature": 0.5, "p": 0.1, "k": 3})
    assert fields.take_sampling(names) == Sampling(temperature=0.5, top_p=0.1)
    assert fields.remaining == {"k": 3}
    assert RequestFields({"p": "0.5"}).take_sampling(names, strict=False) == Sampling(top_p=0.5)
    with pytest.raises(ConfigError, match="a sampling setting is invalid"):
        RequestFields({"temperature": "0.5"}).take_sampling(names)


# --- ids of replies ---------------------------------------------------------------------------------------------------

# The ids are where clients read them. Responses of bedrock and ollama have none.
WITH_IDS = ("anthropic", "openai_chat", "openai_responses")


def read_reply_id(body: bytes) -> str:
    """Return the first id in a response, which is that of the reply."""
    found = re.search(rb'"id":"([^"]*)"', body)
    assert found is not None
    return found[1].decode()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", WITH_IDS)
def test_two_replies_never_have_one_id(name: str, stream: bool) -> None:
    def write(*events: Event) -> str:
        return read_reply_id(find_dialect(name).writer(model="m", stream=stream).write(events))

    started, text, end = ReplyStarted("m"), TextDelta("42"), ReplyEnded()
    ids = [write(started, text, end), write(started, text, end), write(text, end), write(end)]
    assert len(set(ids)) == 4
    assert all(ids)
    assert write(ReplyStarted("m", "given"), text, end) == "given"


@pytest.mark.parametrize("name", WITH_IDS)
def test_one_reply_has_one_id_in_every_event(name: str) -> None:
    writer = find_dialect(name).writer(model="m", stream=True)
    body = b"".join(writer.write([event]) for event in (TextDelta("4"), TextDelta("2"), ReplyEnded()))
    prefix = {"anthropic": "msg_", "openai_chat": "chatcmpl-", "openai_responses": "resp_"}[name]
    assert len(set(re.findall(rf'"id":"({prefix}[0-9a-f]+)"'.encode(), body))) == 1


@pytest.mark.parametrize("name", WITH_IDS)
def test_a_call_without_an_id_has_another_one_in_every_reply(name: str) -> None:
    events = (ToolCallDelta(0, name="f", arguments="{}"), ReplyEnded())
    pattern = rb'"call_id":"([^"]+)"' if name == "openai_responses" else rb'"id":"(call_[^"]+)"'
    bodies = [find_dialect(name).writer(model="m", stream=False).write(events) for _ in range(2)]
    first, second = (re.findall(pattern, body) for body in bodies)
    assert (len(first), len(second)) == (1, 1)
    assert first != second
