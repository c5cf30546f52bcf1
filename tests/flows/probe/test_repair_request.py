"""Refusals of ordinary requests, and the smallest change."""

from __future__ import annotations

import pytest

from asides.flows.probe.observe import Observation
from asides.flows.probe.repair_request import repair_setup
from asides.flows.probe.trials import Setup
from tests.providers.refusal_bodies import classify

SETUP = Setup("openai_chat", "http://h/v1", "m")


def refuse(said: str) -> Observation:
    return Observation("refused", 400, f"400: {said}", said, classify(message=said, status=400))


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ("Use 'max_completion_tokens' instead.", "output_limit", "max_completion_tokens"),
        ("unknown field max_tokens", "output_limit", "max_completion_tokens"),
        ("Unrecognized request argument supplied: stream_options", "stream_usage", False),
        ("This model only supports streaming responses", "only_streams", True),
        ("parameter.enable_thinking must be set to false for non-streaming calls", "only_streams", True),
        ("Please set stream=true: streaming is required", "only_streams", True),
    ],
)
def test_a_refusal_changes_one_thing(said: str, field: str, value: object) -> None:
    repaired = repair_setup(SETUP, refuse(said), has_key=False)
    assert repaired is not None
    changed, note = repaired
    different = [name for name in Setup.__struct_fields__ if getattr(changed, name) != getattr(SETUP, name)]
    assert (different, getattr(changed, field)) == ([field], value)
    assert said[:20] in note


@pytest.mark.parametrize("said", ["no", "the model is overloaded", "upstream error"])
def test_other_refusals_change_nothing(said: str) -> None:
    assert repair_setup(SETUP, refuse(said), has_key=True) is None


def test_the_same_repair_is_not_tried_twice() -> None:
    said = "max_tokens is not known, nor is max_completion_tokens"
    first = repair_setup(SETUP, refuse(said), has_key=False)
    assert first is not None
    assert repair_setup(first[0], refuse(said), has_key=False) is None


def test_a_key_goes_into_another_header_and_not_for_ever() -> None:
    locked, setup, headers = Observation("locked", 401, "401: no"), SETUP, []
    while (repaired := repair_setup(setup, locked, has_key=True)) is not None:
        setup = repaired[0]
        headers.append(setup.auth)
    assert headers == ["api-key", "x-api-key"]
    assert repair_setup(SETUP, locked, has_key=False) is None
