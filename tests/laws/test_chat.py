"""The laws, for chat completions and every row that speaks them: chunking, stream is whole, the server half inverts,
nothing leaks.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import find_dialect
from asides.providers.find import list_providers
from asides.providers.provider import Provider, Quirks, Target
from asides.values.events import Event
from asides.values.fold import fold
from asides.values.reply import Reply
from asides_stage.conformance.response_bodies import decode_pieces, list_visible_texts, remove_origins, split_body
from tests.decoding import reply_of
from tests.laws.replies import chat_events

ROWS = [row for row in list_providers() if row.dialect == "openai_chat"]
CANARY = "canary-7f3a-thought"
PLAIN = Target(
    Provider(name="example", base_url="http://127.0.0.1:9/v1", quirks=Quirks(tags=())),
    "made-up",
    "http://127.0.0.1:9/v1",
)


def target_of(row: Provider) -> Target:
    return Target(row, "made-up", row.base_url, row.rule("made-up"))


def written(events: list[Event], *, stream: bool) -> bytes:
    writer = find_dialect("openai_chat").writer(model="made-up", stream=stream, include_usage=True)
    return b"".join(writer.write([event]) for event in events)


@given(events=chat_events())
@settings(max_examples=120, deadline=None)
def test_law_the_server_half_inverts_the_client_half(events: list[Event]) -> None:
    for stream in (True, False):
        reply, failure = reply_of([written(events, stream=stream)], PLAIN)
        assert failure is None
        assert remove_origins(reply) == remove_origins(fold(events))


@given(events=chat_events(), cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6), row=st.sampled_from(ROWS))
@settings(max_examples=120, deadline=None)
def test_law_any_chunking_gives_the_same_reply(events: list[Event], cuts: list[int], row: Provider) -> None:
    body = written(events, stream=True)
    target = target_of(row)
    reply, failure = reply_of([body], target)
    pieces = split_body(body, cuts)
    assert reply_of(pieces, target) == (reply, failure)
    assert failure is None


@given(events=chat_events(), row=st.sampled_from(ROWS))
@settings(max_examples=120, deadline=None)
def test_law_streamed_and_whole_give_the_same_reply(events: list[Event], row: Provider) -> None:
    target = target_of(row)
    assert reply_of([written(events, stream=True)], target)[0] == reply_of([written(events, stream=False)], target)[0]


@given(events=chat_events(thought=st.just(CANARY)), row=st.sampled_from(ROWS), cut=st.integers(0, 100))
@settings(max_examples=120, deadline=None)
def test_law_a_thought_leaks_nowhere(events: list[Event], row: Provider, cut: int) -> None:
    """Whole or cut anywhere: the canary is in `.thinking` and in nothing that a person reads by accident."""
    target = target_of(row)
    body = written(events, stream=True)
    for bytes_there in (body, body[: len(body) * cut // 100]):
        seen = list_visible_texts(decode_pieces([bytes_there], target, find_dialect("openai_chat")))
        assert not any("canary" in text for text in [*seen.values(), *map(repr, events)])
    assert CANARY in (reply_of([body], target)[0].metadata["thinking"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_law_every_row_separates_its_own_fields(row: Provider) -> None:
    """What a row says it reads, it reads: each of its fields gives thinking and never text."""
    for field in row.quirks.thinking_in:
        body = msgspec.json.encode(
            {
                "model": "m",
                "choices": [{"index": 0, "message": {"content": "42", field: CANARY}, "finish_reason": "stop"}],
            }
        )
        reply, failure = reply_of([body], target_of(row))
        assert failure is None
        assert (reply.text, reply.metadata["thinking"]) == ("42", CANARY)


@pytest.mark.parametrize("row", [row for row in ROWS if row.quirks.tags], ids=lambda row: row.name)
def test_law_every_row_that_inlines_takes_its_tags_out(row: Provider) -> None:
    body = msgspec.json.encode(
        {
            "model": "m",
            "choices": [{"index": 0, "message": {"content": f"<think>{CANARY}</think>42"}, "finish_reason": "stop"}],
        }
    )
    names = [tag if isinstance(tag, str) else tag[0] for tag in (row.quirks.tags or ())]
    if "think" in names:
        assert reply_of([body], target_of(row))[0].text == "42"


@given(events=chat_events())
@settings(max_examples=60, deadline=None)
def test_law_every_value_survives_json(events: list[Event]) -> None:
    again = msgspec.json.decode(msgspec.json.encode(events), type=list[Event])
    assert again == events
    reply = fold(events)
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply
