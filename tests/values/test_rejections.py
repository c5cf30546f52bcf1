"""Why providers refuse: every known body gets its kind, however wrapped and spelled, and ordinary errors get none."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import find_dialect
from asides.values.errors import (
    AuthError,
    BadRequest,
    ContentFiltered,
    ContextTooLong,
    NotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    ReplayRejected,
    from_status,
)
from asides.values.rejections import (
    KINDS,
    SETTING_KINDS,
    STATE_KINDS,
    WORDINGS,
    Rejection,
    RejectionKind,
    SettingKind,
    StateKind,
    classify,
    read_rejection,
)
from asides.values.unwrap_error import list_sayings
from tests.decoding import target
from tests.values.rejection_bodies import ORDINARY, REFUSALS, claude, encode, google, openai

DIALECTS = ("anthropic", "bedrock", "cohere", "gemini", "ollama", "openai_chat", "openai_responses")
_FOLDER = Path(os.environ.get("ASIDES_REFERENCE") or Path(__file__).parents[3] / "shared" / "reference")


def _load_known() -> list[dict[str, Any]]:
    path = _FOLDER / "rejections.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


KNOWN = _load_known()
# The kind, the status, the body and the dialect of each.
ALL: list[tuple[RejectionKind, int, Any, str]] = [
    *((kind, status, body, "openai_chat") for kind, status, body in REFUSALS),
    *((entry["kind"], entry["status"], entry["body"], entry["dialect"]) for entry in KNOWN),
]


def _read_error(dialect: str, status: int, body: bytes) -> ProviderError:
    return find_dialect(dialect).error(status, {}, body, target())


def _expect_type(kind: RejectionKind) -> type[ProviderError]:
    return ContextTooLong if kind == "context_length" else ReplayRejected if kind in STATE_KINDS else BadRequest


# --- the table ----------------------------------------------------------------------------------------------------


def test_there_are_58_kinds_and_each_is_about_state_or_about_a_setting() -> None:
    assert (len(KINDS), len(set(KINDS))) == (58, 58)
    assert set(KINDS) == {*get_args(StateKind), *get_args(SettingKind)}
    assert (len(STATE_KINDS), len(SETTING_KINDS), STATE_KINDS & SETTING_KINDS) == (33, 25, frozenset())


def test_every_kind_but_the_silent_one_has_wordings_and_each_wording_has_a_source_and_a_date() -> None:
    assert {wording.kind for wording in WORDINGS} == {*KINDS} - {"opaque_provider_error"}
    for wording in WORDINGS:
        assert re.fullmatch(r"202\d(-\d\d){0,2}", wording.since), wording
        assert wording.source, wording
        assert wording.needles, wording
        assert wording.pattern == wording.pattern.strip(), wording
        re.compile(wording.pattern)


def test_no_pattern_has_an_unbounded_gap() -> None:
    unbounded = [word.pattern for word in WORDINGS if re.search(r"(?<!\\)[*+](?!\?)|\{\d+,\}", word.pattern)]
    assert unbounded == []


def test_every_kind_has_a_body_here() -> None:
    assert {kind for kind, _status, _body in REFUSALS} == set(KINDS)


@pytest.mark.skipif(not KNOWN, reason="the collection of bodies is not here")
def test_the_kinds_are_those_of_the_collection() -> None:
    page = (_FOLDER / "rejections.md").read_text()
    state, setting = page.split("## A. ")[1].split("## Traps")[0].split("## B. ")
    assert set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", _first_cells(state))) == STATE_KINDS
    assert set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", _first_cells(setting))) == SETTING_KINDS


def _first_cells(table: str) -> str:
    return "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))


# --- bodies -------------------------------------------------------------------------------------------------------


def test_every_body_gets_its_kind_and_the_class_of_its_kind_from_the_error_reader_of_its_dialect() -> None:
    wrong: list[object] = []
    for kind, status, body, dialect in ALL:
        error = _read_error(dialect, status, encode(body))
        if error.kind != kind:
            wrong.append((kind, error.kind, body))
        elif kind != "opaque_provider_error" and type(error) is not _expect_type(kind):
            wrong.append((kind, type(error), body))
    assert wrong == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_s_error_reader_finds_the_kind_of_any_body(dialect: str) -> None:
    # Gateways speak one dialect and pass the errors of another on.
    found = [(kind, _read_error(dialect, status, encode(body)).kind) for kind, status, body, _own in ALL]
    assert [pair for pair in found if pair[0] != pair[1]] == []


def test_ordinary_errors_have_no_kind_in_any_dialect() -> None:
    found = [
        (dialect, error.kind, body)
        for dialect in DIALECTS
        for status, body in ORDINARY
        if (error := _read_error(dialect, status, encode(body))).kind is not None
    ]
    assert found == []


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, openai("Incorrect API key provided", code="invalid_api_key"), AuthError),
        (429, openai("Rate limit reached for gpt-5 on tokens per min (TPM)", code="rate_limit_exceeded"), RateLimited),
        (400, openai("the prompt triggers Azure OpenAI's content management policy"), ContentFiltered),
        (404, openai("The model `gpt-9` does not exist", code="model_not_found"), NotFound),
        (502, "<html><title>502 Bad Gateway</title></html>", Overloaded),
        (502, {"error": {"message": "Upstream request failed", "type": "upstream_error"}}, Overloaded),
        (429, claude("messages.1.content.0: Invalid `signature` in `thinking` block"), ReplayRejected),
        (502, claude("messages.1.content.0: Invalid `signature` in `thinking` block"), ReplayRejected),
        (404, openai("Item with id 'rs_1' not found. Items are not persisted when `store` is false."), ReplayRejected),
        (500, openai("Unexpected reasoning effort high. Supported types are xhigh and low"), BadRequest),
        (413, claude("prompt is too long: 210000 tokens > 200000 maximum"), ContextTooLong),
    ],
)
def test_the_class_follows_the_kind_and_without_one_the_status(
    status: int, body: Any, kind: type[ProviderError]
) -> None:
    assert type(_read_error("openai_chat", status, encode(body))) is kind


# --- wrappers -----------------------------------------------------------------------------------------------------


def _text_of(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda body: [body],
    "string": lambda body: json.dumps(_text_of(body)),
    "google": lambda body: {"error": {"code": 400, "message": _text_of(body), "status": "INVALID_ARGUMENT"}},
    "router": lambda body: {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": _text_of(body), "provider_name": "Example"},
        },
        "user_id": "user_1",
    },
    "upstream": lambda body: {"type": "error", "error": {"type": "request_fail", "upstream_error": body}},
    "upstream_response": lambda body: {"error": {"message": "Bad Request", "upstreamResponse": body}},
    "litellm": lambda body: {
        "error": {
            "message": f"litellm.BadRequestError: ExampleException - {_text_of(body)}. Received Model Group=main\n"
            "Available Model Group Fallbacks=None",
            "type": None,
            "param": None,
            "code": "400",
        }
    },
    "litellm_bytes": lambda body: f"litellm.BadRequestError: ExampleException - {_text_of(body).encode()!r}",
    "sdk": lambda body: f"Error code: 400 - {body!r}",
    "bedrock": lambda body: {"message": f"The model returned the following errors: {_text_of(body)}"},
    "boto": lambda body: (
        "An error occurred (ValidationException) when calling the ConverseStream operation: The model returned the "
        f"following errors: {_text_of(body)}"
    ),
    "event": lambda body: f"event: error\ndata: {_text_of(body)}\n\n",
    "data": lambda body: f"data:{_text_of(body)}",
    "failed_response": lambda body: {
        "type": "response.failed",
        "response": {
            "id": "resp_1",
            "status": "failed",
            "error": {"code": "x", "message": _text_of(body)},
            "output": [],
        },
    },
    "exception": lambda body: {"validationException": {"message": _text_of(body)}},
    "detail": lambda body: {"detail": _text_of(body)},
}
# Around a body that says nothing there is nothing to find.
SPEAKING = [(kind, status, body) for kind, status, body, _dialect in ALL if kind != "opaque_provider_error"]


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_hides_no_kind_and_its_text_shows_the_words_inside(name: str) -> None:
    wrong: list[object] = []
    for kind, _status, body in SPEAKING:
        wrapped = encode(WRAPPERS[name](body))
        error = from_status(400, provider="example", message="", body=wrapped)
        if error.kind != kind:
            wrong.append((kind, error.kind, wrapped))
    assert wrong == []


def test_wrappers_in_wrappers_hide_no_kind() -> None:
    rng = random.Random(7)
    wrong: list[object] = []
    for kind, _status, body in SPEAKING:
        for _ in range(4):
            names = rng.choices([*WRAPPERS], k=rng.randint(2, 3))
            wrapped = body
            for name in names:
                wrapped = WRAPPERS[name](wrapped)
            if (found := classify(encode(wrapped), status=rng.choice((400, 429, 502)))) != kind:
                wrong.append((kind, found, names, body))
    assert wrong == []


def test_wrappers_give_no_kind_to_ordinary_errors() -> None:
    wrong = [
        (name, found, body)
        for name, wrap in WRAPPERS.items()
        for status, body in ORDINARY
        if body and (found := classify(encode(wrap(body)), status=status)) is not None
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (
            WRAPPERS["router"](google("Corrupted thought signature.")),
            "Provider returned error: Corrupted thought signature",
        ),
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": "the key sk-abcdefgh12 is bad"},
                }
            },
            "Provider returned error: the key *** is bad",
        ),
        (WRAPPERS["google"](claude("prompt is too long")), "answered 400: prompt is too long"),
        ("Only one of the two, please.", "answered 400: Only one of the two, please"),
        (openai("Plain words."), "answered 400 (invalid_request_error): Plain words"),
        ({"detail": [{"loc": ["body", "thinking"], "msg": "is odd"}]}, ": thinking: is odd"),
    ],
)
def test_people_see_the_innermost_words(body: Any, shown: str) -> None:
    assert shown in str(_read_error("openai_chat", 400, encode(body)))


def test_what_a_server_echoes_of_the_request_is_no_message() -> None:
    body = {
        "error": {"message": "no", "input": "secret", "request": {"message": "secret"}, "failed_generation": "secret"}
    }
    assert [saying.text for saying in list_sayings(encode(body))] == ["no"]


# --- spellings ----------------------------------------------------------------------------------------------------


def _change_strings(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_change_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {name: _change_strings(item, change) for name, item in value.items()}
    return value


_NO_QUOTES = str.maketrans("", "", "`'\"")
SPELLINGS: dict[str, Callable[[str], str]] = {
    "upper": lambda text: text if "{" in text else text.upper(),
    "double": lambda text: text.replace("`", '"').replace("'", '"') if "n't" not in text and "{" not in text else text,
    "single": lambda text: text.replace("`", "'"),
    "no_quotes": lambda text: text.translate(_NO_QUOTES) if "n't" not in text and "{" not in text else text,
    "curly": lambda text: re.sub(r"`([^`]*)`", "“\\1”", text),
    "places": lambda text: re.sub(r"(messages|content|input|contents)\.\d+", r"\1.42", text),
    "masked": lambda text: re.sub(r"(messages|content)\.\d+", r"\1.***", text),
    "brackets": lambda text: re.sub(r"(messages|content)\.(\d+)", r"\1[\2]", text),
    "models": lambda text: re.sub(r"(?:gpt|claude|grok|gemini|deepseek)-[\w.-]*\w", "made-up-9.1", text),
    "pages": lambda text: re.sub(r"https://[^\s\"]+", "https://docs.example.com/elsewhere?a=1#b", text),
    "spaces": lambda text: text.replace(" ", "  ").replace(". ", ".\n") if "{" not in text else text,
    "request": lambda text: f"{text} (request id: 2026111608123456789)" if " " in text and "{" not in text else text,
    "prefix": lambda text: f"Error from provider (Example): {text}" if " " in text and "{" not in text else text,
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_another_spelling_is_the_same_kind(name: str) -> None:
    wrong: list[object] = []
    for kind, status, body in SPEAKING:
        changed = _change_strings(body, SPELLINGS[name])
        if (found := classify(encode(changed), status=status)) != kind:
            wrong.append((kind, found, changed))
    assert wrong == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", "reasoning_content_required"),
        ("property 'reasoning_content' is unsupported", "reasoning_field_rejected"),
        ("Invalid `signature` in `thinking` block", "thinking_signature_invalid"),
        (
            "Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
            "thinking_prefix_mismatch",
        ),
        ("User messages cannot contain reasoning content.", "reasoning_field_rejected"),
        ("property 'reasoning' is unsupported", "unknown_param"),
        ("messages.3 : property 'reasoning' is unsupported", "reasoning_field_rejected"),
        ("property 'reasoning_effort' is unsupported", "effort_unsupported_param"),
        ("`temperature` is deprecated for this model.", "sampling_unsupported"),
        ("`temperature` may only be set to 1 when thinking is enabled.", "sampling_with_thinking"),
        ('tool_choice: type "any" is not supported for this model.', "tool_choice_unsupported"),
        ("tool_choice is not supported while thinking is enabled.", "tool_choice_with_thinking"),
    ],
)
def test_words_that_look_alike(first: str, second: str) -> None:
    assert classify(message=first) == second


# --- inside a stream ----------------------------------------------------------------------------------------------

_BAD_SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"


def _line(document: Any) -> bytes:
    return json.dumps(document).encode() + b"\n"


def _event(document: Any) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


STREAMS: list[tuple[str, bytes]] = [
    ("anthropic", b"event: error\n" + _event(claude(_BAD_SIGNATURE))),
    ("openai_chat", _event({"error": {"message": _BAD_SIGNATURE, "code": 502}})),
    ("openai_chat", _event(WRAPPERS["router"](claude(_BAD_SIGNATURE)))),
    (
        "openai_chat",
        _event({"id": "1", "choices": [{"index": 0, "delta": {}, "error": {"message": _BAD_SIGNATURE, "code": 400}}]}),
    ),
    ("openai_responses", _event({"type": "error", "code": "invalid_request_error", "message": _BAD_SIGNATURE})),
    ("openai_responses", _event({"type": "error", "error": {"message": _BAD_SIGNATURE}})),
    ("openai_responses", _event(WRAPPERS["failed_response"](claude(_BAD_SIGNATURE)))),
    ("gemini", _event(WRAPPERS["google"](claude(_BAD_SIGNATURE)))),
    ("gemini", json.dumps([WRAPPERS["google"](claude(_BAD_SIGNATURE))]).encode()),
    ("ollama", _line({"error": _BAD_SIGNATURE})),
    ("cohere", _event({"message": _BAD_SIGNATURE})),
    (
        "bedrock",
        json.dumps(
            {"validationException": {"message": f"The model returned the following errors: {_BAD_SIGNATURE}"}}
        ).encode(),
    ),
    ("bedrock", json.dumps({"message": _BAD_SIGNATURE}).encode()),
]


@pytest.mark.parametrize(("dialect", "body"), STREAMS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_error_inside_a_stream_has_a_kind(dialect: str, body: bytes) -> None:
    decoder = find_dialect(dialect).decoder(target())
    decoder.feed(body)
    decoder.finish()
    error = decoder.failure
    assert isinstance(error, ReplayRejected), error
    assert error.kind == "thinking_signature_invalid"
    rejection = read_rejection(error)
    assert rejection is not None
    assert rejection.where == (("messages", 1, "content", 0),)
    assert "Invalid `signature` in `thinking` block" in str(error)


# --- what a refusal names -----------------------------------------------------------------------------------------


def _details(message: str, param: str | None = None) -> Rejection:
    rejection = read_rejection(_read_error("openai_chat", 400, encode(openai(message, param))))
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


def test_a_rejection_shows_no_text_and_an_error_without_a_kind_has_none() -> None:
    assert "CANARY" not in repr(_details("property 'reasoning' is unsupported, CANARY"))
    assert "CANARY" not in repr(list_sayings(b'{"error": {"message": "CANARY"}}'))
    assert read_rejection(from_status(401, provider="example", message="wrong key")) is None


def test_a_rejection_knows_the_source_of_its_wording() -> None:
    found = _details("Corrupted thought signature.")
    assert (found.since, found.source) == ("2025-11-20", "https://github.com/google-gemini/gemini-cli/issues/13467")


def test_a_copy_of_an_error_keeps_its_kind() -> None:
    error = from_status(400, provider="example", message="Corrupted thought signature.")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (other.kind, str(other)) == ("thought_signature_invalid", str(error))


def test_what_is_read_survives_the_cleaning_of_an_error() -> None:
    error = _read_error("anthropic", 400, encode(claude(_BAD_SIGNATURE)))
    before = read_rejection(error)
    error.rephrase(lambda _message: "…")
    assert read_rejection(error) == before


# --- hostile bodies -----------------------------------------------------------------------------------------------

_SIZE = 64 * 1024
_PIECES = (
    *(
        " ",
        "a",
        "[",
        "{",
        '"',
        "'",
        "`",
        "\\",
        '{"',
        "{'message':'",
        '{"error":',
        '{"message":"',
        "\\u0041",
        "“",
        "&#39;",
    ),
    *(
        "thinking ",
        "reasoning ",
        "signature in thinking block ",
        "encrypted content ",
        "the model returned the following errors: ",
    ),
    *(
        "messages.",
        "messages.1",
        "unsupported value: ",
        "context ",
        "effort ",
        "tool_choice ",
        "property ",
        "budget ",
        "a, ",
    ),
    *(
        "supported values are: ",
        "'a', ",
        "rs_",
        "[1, ",
        "only 1 ",
        "between 1 and ",
        "input[1].id: ",
        "invalid ",
        "not ",
        "be ",
    ),
)


@pytest.mark.parametrize("piece", _PIECES)
def test_a_hostile_body_costs_little_time(piece: str) -> None:
    body = (piece * (_SIZE // len(piece))).encode()[:_SIZE]
    for wrapped in (body, json.dumps({"error": {"message": body.decode("utf-8", "ignore")}}).encode()):
        began = time.process_time()
        error = from_status(400, provider="example", body=wrapped)
        read_rejection(error)
        assert time.process_time() - began < 1.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=40), st.integers(1, 400))
def test_nothing_makes_the_reader_raise_or_take_long(pieces: list[str], times: int) -> None:
    body = ("".join(pieces) * times).encode()[:_SIZE]
    began = time.process_time()
    read_rejection(from_status(400, provider="example", body=body))
    assert time.process_time() - began < 1.5


_LETTERS = st.characters(exclude_categories=("Cn", "Co", "Cs"))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(_LETTERS, max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "message", "metadata", "raw", "detail", "param", "code", "loc", "x"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(_JSON, st.sampled_from(DIALECTS), st.sampled_from([200, 400, 404, 422, 429, 500, 502]))
def test_any_document_gives_an_error(document: Any, dialect: str, status: int) -> None:
    error = _read_error(dialect, status, json.dumps(document).encode())
    assert error.kind is None or error.kind in KINDS
    assert str(error).isprintable()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_an_error(body: bytes) -> None:
    assert classify(body, status=400) in (None, *KINDS)
