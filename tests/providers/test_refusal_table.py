"""`refusals.toml`: every wording has a date, a source and phrases that its texts contain, and none can take long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.providers.error_bodies import ErrorMessage, list_error_messages
from asides.providers.refusals import (
    OtherRefusal,
    Refusal,
    Wording,
    find_other_kind,
    flatten,
    load_refusals,
    match_refusal,
)
from asides.values.rejections import KINDS, SETTING_KINDS, STATE_KINDS
from tests.providers.refusal_bodies import ORDINARY, SPEAKING, classify, encode

TABLE = load_refusals()
ENTRIES: list[Refusal | OtherRefusal] = [*TABLE.refusal, *TABLE.other]
WORDINGS: list[Wording] = [wording for entry in ENTRIES for wording in entry.wordings]
TEXTS = [flatten(message) for _kind, _status, body in SPEAKING for message in list_error_messages(encode(body))]
UNRELATED = (
    "the quick brown fox jumps over the lazy dog.",
    "internal server error. please try again later or contact support with the request id.",
    "the model is currently overloaded with other requests; you can retry your request.",
    "rate limit reached for requests. limit: 3 per minute. please try again in 20 seconds.",
    "your credit balance is too low to access the api. please go to plans and billing to upgrade.",
    "incorrect api key provided. you can find your api key in your account settings.",
    "the model gpt-9 does not exist or you do not have access to it.",
    "you exceeded your current quota, please check your plan and billing details.",
    "the server had an error while processing your request. sorry about that!",
    "we are doing maintenance and the service will be back at one in the morning.",
    "this organization has been disabled. an administrator can turn it on again with the console.",
    "a file with this name and id was uploaded before; choose another one.",
    "the connection was closed before the first byte of the response came in.",
    "access to this region is not allowed for your country.",
    "both the host and the port have to be given, together with a user name.",
    "the image at the top of the last page could not be read; its start and end are cut off.",
    "batch 7 was not found, or is already complete.",
    "billing address missing: add one and wait a day.",
    "please sign in again. your session is over.",
    "the deployment for this resource does not exist. wait a moment and try again.",
    "the audio is longer than 25 mb and must be split into parts.",
    "there is no content at this address; it has moved.",
    "an unexpected problem occurred while we looked for a free machine.",
    "unknown host: the name cannot be resolved.",
    "the response was filtered due to the prompt triggering our content management policy.",
    "your input was flagged by our safety system.",
    "too many requests: you sent more tokens per minute than your tier allows.",
    "payment required: your trial has ended, and the next level costs money.",
    "function timed out after 60 seconds.",
    "permission denied: the role of this account does not include the use of models.",
    "the stream was reset by the peer.",
    "no endpoint is free in this window; its turn comes in 4 seconds.",
    "method not allowed.",
    "not found",
    "bad gateway",
    "service unavailable",
    "unauthorized",
    "you are not allowed to sample from this model",
    "input data may have been corrupted during upload",
    "this region is not supported.",
    "your browser is unsupported; less than one percent still use it.",
    "a phone number is required for this model.",
    "one of our servers is down.",
    "the two passwords do not match.",
    "the address is malformed.",
    "your messages were not delivered.",
    "the value must be sent in a header, and must be true.",
    "the amount should be at least 5 dollars.",
    "we do not support this currency.",
    "the signature of the webhook is wrong.",
    "the limit is lower than the minimum of your plan.",
    "the item was removed from the list.",
    "this feature is not enabled.",
    "the date should be between monday and friday.",
    "only the first of the two is kept.",
    "the key is invalid, or its project was deleted.",
    "the account must be returned to its owner at the same time.",
    "unable to decode the picture.",
    "the upload failed to finish.",
)


def test_every_kind_has_wordings_and_each_of_them_a_source_and_a_date() -> None:
    kinds = [refusal.kind for refusal in TABLE.refusal]
    assert set(kinds) == {*KINDS} - {"opaque_provider_error"}
    # What is sent back of earlier turns comes first: the wordings of settings are more general.
    assert [kind in STATE_KINDS for kind in kinds] == sorted((kind in STATE_KINDS for kind in kinds), reverse=True)
    for entry in ENTRIES:
        assert re.fullmatch(r"20\d\d(-\d\d){0,2}", entry.date), entry
        assert entry.source, entry
        assert entry.wordings, entry


def test_no_pattern_has_an_unbounded_gap() -> None:
    assert [word.pattern for word in WORDINGS if re.search(r"(?<!\\)[*+](?!\?)|\{\d+,\}", word.pattern)] == []


def test_every_wording_has_phrases_in_the_form_of_a_flattened_text() -> None:
    for wording in WORDINGS:
        assert wording.phrases, wording
        for phrase in wording.phrases:
            assert len(phrase) >= 6 or phrase in PARAMETERS, wording
            assert phrase == phrase.strip().lower(), wording


PARAMETERS = ("].id:", "field", "top_k", "top_p", "topk", "topp")


@given(st.data())
def test_every_text_that_a_pattern_matches_contains_a_phrase(data: st.DataObject) -> None:
    wording = data.draw(st.sampled_from(WORDINGS))
    text = data.draw(st.from_regex(re.compile(wording.pattern, re.ASCII)))
    assert any(phrase in text for phrase in wording.phrases)


def test_every_known_body_that_a_pattern_matches_contains_a_phrase() -> None:
    hidden = [
        (wording.pattern, text)
        for wording in WORDINGS
        for text in TEXTS
        if re.search(wording.pattern, text) and not any(phrase in text for phrase in wording.phrases)
    ]
    assert hidden == []


def test_no_pattern_is_tried_on_an_unrelated_sentence() -> None:
    texts = [flatten(ErrorMessage(sentence)) for sentence in UNRELATED]
    tried = [(text, phrase) for wording in WORDINGS for phrase in wording.phrases for text in texts if phrase in text]
    assert tried == []


def test_few_patterns_are_tried_on_an_ordinary_error() -> None:
    texts = [flatten(message) for _status, body in ORDINARY for message in list_error_messages(encode(body))]
    tried = sum(any(phrase in text for phrase in wording.phrases) for wording in WORDINGS for text in texts)
    assert tried / len(texts) < 4


def test_every_kind_is_recognised_by_a_wording_of_its_own() -> None:
    found = {refusal.kind for text in TEXTS if (refusal := match_refusal(text)) is not None}
    assert (STATE_KINDS | SETTING_KINDS) - {"opaque_provider_error"} <= found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("This model always thinks", "thinking_cannot_disable"),
        ("invalid thinking: only type=enabled is allowed for this model", "thinking_cannot_disable"),
        ("The model is unable to disable thinking", "thinking_cannot_disable"),
        ("at most one of `thinking`, `enable_thinking` is allowed", "reasoning_params_conflict"),
        ("`thinking` conflicts with `reasoning_effort`", "reasoning_params_conflict"),
        ("This endpoint only streams", "stream_required"),
        ("stream=false is not supported", "stream_required"),
        ("Please set stream to true", "stream_required"),
        ("Non-streaming requests are not allowed", "stream_required"),
    ],
)
def test_general_wordings(text: str, kind: str) -> None:
    assert classify(message=text, status=400) == kind


def test_streaming_alone_is_no_demand_for_it() -> None:
    said = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    assert classify(message=said, status=400) != "stream_required"


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        "messages.2.content.0.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got 70 instead.",
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
        "Tool call id was functions.look:0 but must be a-z, A-Z, 0-9, with a length of 9.",
    ],
)
def test_a_refusal_of_the_ids_of_calls_is_known(words: str) -> None:
    assert find_other_kind(words) == "call_ids_refused"


@pytest.mark.parametrize(
    "words", ["Invalid 'messages[1].content': string too long.", "tool_use.name: String should match"]
)
def test_other_words_about_strings_are_not(words: str) -> None:
    assert find_other_kind(words) is None
