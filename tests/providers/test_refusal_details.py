"""What a refusal names: places, ids, parameters, accepted values and limits."""

from __future__ import annotations

import pytest

from asides.providers.refusals import find_efforts, read_rejection
from asides.values.rejections import Rejection
from tests.providers.refusal_bodies import encode, openai, read_error


def _details(message: str, param: str | None = None) -> Rejection:
    rejection = read_rejection(read_error("openai_chat", 400, encode(openai(message, param))))
    assert rejection is not None
    return rejection


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ("messages.3.content.0: Invalid `signature` in `thinking` block", (("messages", 3, "content", 0),)),
        ("messages[3].reasoning: reasoning is not supported with this model", (("messages", 3, "reasoning"),)),
        ("Missing `reasoning_content` field in the assistant message at message index 7.", (("messages", 7),)),
        ("reasoning_content is missing in assistant tool call message at index 13", (("messages", 13),)),
        ("Invalid 'input[15].id': 'x'. Expected an ID that begins with 'rs'.", (("input", 15, "id"),)),
        (
            "messages.***.content.0.thinking.signature: Field required",
            (("messages", "***", "content", 0, "thinking", "signature"),),
        ),
    ],
)
def test_places(message: str, where: object) -> None:
    assert _details(message).where == where


def test_ids_and_parameters() -> None:
    pair = _details(
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_2'.", "input"
    )
    assert (pair.ids, pair.names[0]) == (("fc_1", "rs_2"), "input")
    assert _details("Unknown parameter: 'reasoning'.").names == ("reasoning",)
    assert _details("Model grok-4 does not support parameter presencePenalty.").names == ("presencePenalty",)
    assert _details("No tool call found for function call output with call_id call_9.").ids == ("call_9",)


@pytest.mark.parametrize(
    ("message", "values"),
    [
        (
            "Unsupported value: 'x' is not supported with 'm'. Supported values are: 'low', 'medium', 'high'.",
            ("low", "medium", "high"),
        ),
        ("This model does not support effort level 'xhigh'. Supported levels: high, low, max.", ("high", "low", "max")),
        ('output_config.effort "high" is not supported by model m; supported values: [medium]', ("medium",)),
        ("`reasoning_effort` must be one of `none` or `default`", ("none", "default")),
        (
            "Unexpected reasoning effort high. Supported types are xhigh (default), medium, and low",
            ("xhigh", "medium", "low"),
        ),
        (
            "This model always engages in thinking and cannot be disabled; please use low, high, or max",
            ("low", "high", "max"),
        ),
        (
            'invalid params, invalid thinking.type: "enabled" (allowed: adaptive, disabled) (2013)',
            ("adaptive", "disabled"),
        ),
        ("thinking.type: Input should be 'enabled' or 'disabled'", ("enabled", "disabled")),
        ("invalid temperature: only 0.6 is allowed for this model", ("0.6",)),
        (
            "'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
            ("1",),
        ),
        (
            "effort 'max' is not supported when thinking is disabled. Use effort 'high' or below, or enable thinking.",
            ("high",),
        ),
        ("Function tools with reasoning_effort are not supported for m. Please use /v1/responses instead.", ()),
        ("thinking_budget is out of range; supported values are integers from 128 to 32768.", ()),
    ],
)
def test_values_that_would_be_accepted(message: str, values: tuple[str, ...]) -> None:
    assert _details(message).values == values


@pytest.mark.parametrize(
    ("message", "limits"),
    [
        ("context_management.edits.0.compact: trigger.value must be at least 50000", (50000.0, None, None)),
        ("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024", (1024.0, None, None)),
        ("thinking_budget is out of range; supported values are integers from 128 to 32768.", (128.0, 32768.0, None)),
        ("The thinking_budget parameter must be a positive integer and not greater than 38912", (None, 38912.0, None)),
        ("prompt is too long: 214032 tokens > 200000 maximum", (None, 200000.0, 214032.0)),
        (
            "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length",
            (None, 200000.0, 199759.0),
        ),
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
            (None, 128000.0, 130000.0),
        ),
    ],
)
def test_limits(message: str, limits: object) -> None:
    found = _details(message)
    assert (found.at_least, found.at_most, found.counted) == limits


@pytest.mark.parametrize(
    ("text", "refused", "efforts"),
    [
        ("Supported values are: 'none', 'low', and 'high'.", "minimal", ("none", "low", "high")),
        ("effort xhigh is not supported here; use low or medium instead of xhigh", "xhigh", ("low", "medium")),
        ("`max_tokens` must be greater than the budget", "high", ()),
        ("effort 'high' is refused", "high", ()),
    ],
)
def test_efforts_that_are_offered(text: str, refused: str, efforts: tuple[str, ...]) -> None:
    assert find_efforts(text, refused) == efforts
