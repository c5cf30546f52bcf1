"""The case: the model and the dialect of a row, and the samples that the checks use."""

from __future__ import annotations

import pytest

import asides
from asides.testing.conformance.case import CANARY, PLAIN, build_case, find_thinking_model
from asides.values.fold import fold


def row(*models: asides.ModelRule) -> asides.Provider:
    return asides.Provider(name="mine", base_url="https://llm.example/v1", models=models)


@pytest.mark.parametrize(
    ("rules", "model"),
    [
        ((), "made-up"),
        ((asides.ModelRule(models="big-*", thinking="optional"),), "big-1"),
        (
            (asides.ModelRule(models="never-*", thinking="never"), asides.ModelRule(models="r[12]", thinking="always")),
            "r1",
        ),
        ((asides.ModelRule(models="*", thinking="optional"),), "made-up"),
        # The first rule that matches counts, so no name reaches the second.
        ((asides.ModelRule(models="*", thinking="never"), asides.ModelRule(models="a", thinking="always")), "made-up"),
    ],
)
def test_a_model_that_thinks_is_found_by_the_rules(rules: tuple[asides.ModelRule, ...], model: str) -> None:
    assert find_thinking_model(row(*rules)) == model


def test_a_row_is_examined_only_in_a_dialect_that_it_speaks() -> None:
    with pytest.raises(asides.Unsupported, match="mine is not known to speak 'cohere'"):
        build_case(row(), dialect="cohere")


def test_samples_are_the_same_each_time_and_fewer_if_quick() -> None:
    case, quick = build_case(row()), build_case(row(), quick=True)
    assert case.samples == build_case(row()).samples
    assert case.samples[: len(quick.samples)] == quick.samples
    assert len(case.samples) > len(quick.samples)
    assert all(CANARY in sample.thought and CANARY not in sample.text for sample in case.samples)


def test_the_events_of_a_sample_fold_to_it() -> None:
    reply = fold(PLAIN.events(build_case(row()).target))
    assert reply.thinking
    assert (reply.thinking.text, reply.text, reply.usage) == (PLAIN.thought, PLAIN.text, PLAIN.usage)


def test_a_field_of_its_own_for_thinking_is_written_as_the_row_says() -> None:
    case = build_case(asides.Provider(name="mine", quirks=asides.Quirks(thinking_in=("inner_voice",))))
    body = case.write_sample(PLAIN, stream=False)
    assert b'"inner_voice"' in body
    assert b"reasoning_content" not in body
