"""The wordings about settings: each has a source and a date, each kind a body, and none can take long."""

from __future__ import annotations

import re

import pytest

from asides.values.rejected_settings import SETTING_WORDINGS
from asides.values.rejections import SETTING_KINDS, classify, flatten, match_wording, read_wordings
from asides.values.unwrap_error import list_error_messages
from tests.values.rejection_bodies import SPEAKING, encode

WORDINGS = read_wordings(SETTING_WORDINGS)


def test_every_kind_has_wordings_and_each_of_them_a_source_and_a_date() -> None:
    assert {wording.kind for wording in WORDINGS} == SETTING_KINDS - {"opaque_provider_error"}
    for wording in WORDINGS:
        assert re.fullmatch(r"20\d\d(-\d\d){0,2}", wording.since), wording
        assert wording.source, wording
        assert wording.needles, wording
        assert wording.pattern == wording.pattern.strip(), wording


def test_no_pattern_has_an_unbounded_gap() -> None:
    unbounded = [word.pattern for word in WORDINGS if re.search(r"(?<!\\)[*+](?!\?)|\{\d+,\}", word.pattern)]
    assert unbounded == []


def test_the_words_of_a_kind_are_in_every_text_that_its_patterns_match() -> None:
    texts = [flatten(message) for _kind, _status, body in SPEAKING for message in list_error_messages(encode(body))]
    hidden = [
        (wording.pattern, text)
        for wording in WORDINGS
        for text in texts
        if re.search(wording.pattern, text) and not any(word in text for word in wording.needles)
    ]
    assert hidden == []


def test_every_kind_is_recognised_by_a_wording_of_its_own() -> None:
    found = {
        wording.kind
        for _kind, _status, body in SPEAKING
        for message in list_error_messages(encode(body))
        if (wording := match_wording(flatten(message))) is not None
    }
    assert SETTING_KINDS - {"opaque_provider_error"} <= found


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
