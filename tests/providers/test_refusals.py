"""Why providers refuse: every known body gets its kind, however wrapped and spelled, and ordinary errors get none."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from asides.dialects import find_dialect
from asides.providers.error_bodies import list_error_messages
from asides.providers.provider_errors import from_status
from asides.providers.refusals import read_rejection
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
    UnsupportedInput,
)
from asides.values.rejections import (
    KINDS,
    SETTING_KINDS,
    STATE_KINDS,
    RejectionKind,
    SettingKind,
    StateKind,
)
from tests.decoding import target
from tests.providers.refusal_bodies import (
    ALL,
    DIALECTS,
    FOLDER,
    KNOWN,
    ORDINARY,
    REFUSALS,
    SPEAKING,
    WRAPPERS,
    classify,
    claude,
    encode,
    openai,
    read_error,
)


def _expect_type(kind: RejectionKind) -> type[ProviderError]:
    return ContextTooLong if kind == "context_length" else ReplayRejected if kind in STATE_KINDS else BadRequest


# --- the table ----------------------------------------------------------------------------------------------------


def test_there_are_58_kinds_and_each_is_about_state_or_about_a_setting() -> None:
    assert (len(KINDS), len(set(KINDS))) == (58, 58)
    assert set(KINDS) == {*get_args(StateKind), *get_args(SettingKind)}
    assert (len(STATE_KINDS), len(SETTING_KINDS), STATE_KINDS & SETTING_KINDS) == (33, 25, frozenset())


def test_the_page_about_errors_tells_every_kind_in_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    tables = [page.split(f"<!-- {name} kinds -->")[1].split("\n\n")[0] for name in ("state", "setting")]
    told = [re.findall(r"^\| `(\w+)` \| \S", table, re.MULTILINE) for table in tables]
    assert told == [[*get_args(StateKind)], [*get_args(SettingKind)]]


def test_every_kind_has_a_body_here() -> None:
    assert {kind for kind, _status, _body in REFUSALS} == set(KINDS)


@pytest.mark.skipif(not KNOWN, reason="the collection of bodies is not here")
def test_the_kinds_are_those_of_the_collection() -> None:
    page = (FOLDER / "rejections.md").read_text()
    state, setting = page.split("## A. ")[1].split("## Traps")[0].split("## B. ")
    assert set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", _first_cells(state))) == STATE_KINDS
    assert set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", _first_cells(setting))) == SETTING_KINDS


def _first_cells(table: str) -> str:
    return "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))


# --- bodies -------------------------------------------------------------------------------------------------------


def test_every_body_gets_its_kind_and_the_class_of_its_kind_from_the_error_reader_of_its_dialect() -> None:
    wrong: list[object] = []
    for kind, status, body, dialect in ALL:
        error = read_error(dialect, status, encode(body))
        if error.kind != kind:
            wrong.append((kind, error.kind, body))
        elif kind != "opaque_provider_error" and type(error) is not _expect_type(kind):
            wrong.append((kind, type(error), body))
    assert wrong == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_s_error_reader_finds_the_kind_of_any_body(dialect: str) -> None:
    # Gateways speak one dialect and pass the errors of another on.
    found = [(kind, read_error(dialect, status, encode(body)).kind) for kind, status, body, _own in ALL]
    assert [pair for pair in found if pair[0] != pair[1]] == []


def test_ordinary_errors_have_no_kind_in_any_dialect() -> None:
    found = [
        (dialect, error.kind, body)
        for dialect in DIALECTS
        for status, body in ORDINARY
        if (error := read_error(dialect, status, encode(body))).kind is not None
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
        (400, openai("This model does not support the image_url parameter."), UnsupportedInput),
    ],
)
def test_the_class_follows_the_kind_and_without_one_the_status(
    status: int, body: Any, kind: type[ProviderError]
) -> None:
    assert type(read_error("openai_chat", status, encode(body))) is kind


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
        ("Invalid signature", "thinking_signature_invalid"),
        ("messages.3.content.0: Invalid `signature`.", "thinking_signature_invalid"),
        ('tool_choice: type "any" is not supported for this model.', "tool_choice_unsupported"),
        ("tool_choice is not supported while thinking is enabled.", "tool_choice_with_thinking"),
    ],
)
def test_words_that_look_alike(first: str, second: str) -> None:
    assert classify(message=first) == second


def test_an_invalid_signature_of_the_request_itself_is_an_error_of_the_key() -> None:
    for status in (401, 403):
        error = from_status(status, provider="example", message="Invalid signature")
        assert (type(error), error.kind) == (AuthError, None)


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


# --- the value ----------------------------------------------------------------------------------------------------


def test_a_rejection_shows_no_text_and_an_error_without_a_kind_has_none() -> None:
    assert "CANARY" not in repr(
        read_rejection(from_status(400, provider="example", message="property 'reasoning' is unsupported, CANARY"))
    )
    assert "CANARY" not in repr(list_error_messages(b'{"error": {"message": "CANARY"}}'))
    assert read_rejection(from_status(401, provider="example", message="wrong key")) is None


def test_a_rejection_knows_the_source_of_its_wording() -> None:
    found = read_rejection(from_status(400, provider="example", message="Corrupted thought signature."))
    assert found is not None
    assert (found.since, found.source) == ("2025-11-20", "https://github.com/google-gemini/gemini-cli/issues/13467")


def test_a_copy_of_an_error_keeps_its_kind() -> None:
    error = from_status(400, provider="example", message="Corrupted thought signature.")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (other.kind, str(other)) == ("thought_signature_invalid", str(error))


def test_what_is_read_survives_the_cleaning_of_an_error() -> None:
    error = read_error("anthropic", 400, encode(claude(_BAD_SIGNATURE)))
    before = read_rejection(error)
    error.rephrase(lambda _message: "…")
    assert read_rejection(error) == before
