"""Errors: the kind and the words for every answer of a server, no key in a message, and copies that lose nothing."""

from __future__ import annotations

import copy
import pickle
import traceback

import pytest

from asides.providers.provider_errors import from_status
from asides.values import errors
from asides.values.errors import (
    AsidesError,
    AuthError,
    BadRequest,
    ConfigError,
    ContentFiltered,
    ContextTooLong,
    InvalidThinking,
    LimitReached,
    MissingKey,
    NoAnswer,
    NotFound,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
    ReplayRejected,
    ToolFailed,
    Unsupported,
    redact_keys,
)
from asides.values.parts import Text, ToolCall
from asides.values.reply import Reply


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "messages: field required", None, BadRequest),
        (400, "This model's maximum context length is 8192 tokens", None, ContextTooLong),
        (413, "prompt is too long: 210000 tokens > 200000 maximum", None, ContextTooLong),
        (400, "The input token count (99) exceeds the maximum", None, ContextTooLong),
        (400, "triggering Azure OpenAI's content management policy", None, ContentFiltered),
        (400, "no", "content_filter", ContentFiltered),
        (400, "API key not valid. Please pass a valid API key.", None, AuthError),
        (400, "The reasoning_content in the thinking mode must be passed back", None, ReplayRejected),
        (400, "Function call is missing a thought_signature", None, ReplayRejected),
        (422, "Expected `thinking` or `redacted_thinking`, but found `text`", None, ReplayRejected),
        (
            400,
            "messages.3: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
            None,
            ReplayRejected,
        ),
        (400, "thinking or redacted_thinking blocks must remain exactly as received", None, ReplayRejected),
        (400, "thinking blocks in the latest assistant message cannot be modified", None, ReplayRejected),
        (401, "", None, AuthError),
        (403, "", None, AuthError),
        (407, "", None, AuthError),
        (404, "", None, NotFound),
        (405, "", None, NotFound),
        (410, "", None, NotFound),
        (402, "", None, RateLimited),
        (429, "", None, RateLimited),
        (408, "", None, Overloaded),
        (409, "", None, Overloaded),
        (500, "", None, Overloaded),
        (529, "", None, Overloaded),
        (418, "", None, BadRequest),
        (307, "", None, ProviderError),
        # Inside a successful response, the code tells the kind, and else the text.
        (200, "", "429", RateLimited),
        (200, "prompt is too long", "400", ContextTooLong),
        (200, "", "authentication_error", AuthError),
        (200, "", "insufficient_quota", RateLimited),
        (200, "", "overloaded_error", Overloaded),
        (200, "no such model", None, NotFound),
        (200, "invalid request", None, BadRequest),
        (200, "", "700", ProviderError),
        (200, "something else", None, ProviderError),
    ],
)
def test_the_kind_of_an_answer(status: int, message: str, code: str | None, kind: type[ProviderError]) -> None:
    error = from_status(status, provider="example", message=message, code=code)
    assert type(error) is kind
    assert (error.status, error.code) == (status, code)
    assert " " in str(error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (from_status(500, provider="example"), "example answered 500. Try again later."),
        (
            from_status(429, provider="example", message=" Slow down. ", code="rate_limit", request_id="r1"),
            "example answered 429 (rate_limit): Slow down. Wait, or ask for less. (request r1)",
        ),
        (
            from_status(429, provider="example", message="rate_limit reached", code="Rate_Limit"),
            "example answered 429: rate_limit reached. Wait, or ask for less.",
        ),
        (
            from_status(404, provider="example", code="404"),
            "example answered 404. Check the model name and the base URL.",
        ),
        (
            from_status(200, provider="example", message="odd"),
            "example reported an error: odd. See .body for the response.",
        ),
        (
            MissingKey("example", ("EXAMPLE_KEY", "OTHER_KEY")),
            "example needs an API key: set EXAMPLE_KEY or OTHER_KEY, or pass api_key=.",
        ),
    ],
)
def test_a_message_says_who_answered_what_and_what_to_do(error: AsidesError, text: str) -> None:
    assert str(error) == text


def test_a_body_and_a_message_are_cut_and_a_payload_too() -> None:
    error = from_status(400, provider="example", message="x" * 1000, body=b"b" * 100_000, retry_after=1.5)
    assert (len(error.body), error.retry_after) == (64 * 1024, 1.5)
    assert f": {'x' * 500}. " in str(error)
    assert len(ProtocolError("broken", payload=b"p" * 10_000).payload) == 4096


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Incorrect API key provided: sk-proj-abc123*****xyz.", "Incorrect API key provided: ***."),
        ("gsk_abcdef123 and xai-abcdef123", "*** and ***"),
        ("AIzaSyAbcdef and ya29.a0Abcdef", "*** and ***"),
        ("Authorization: Bearer anything-at-all", "Authorization: ***"),
        ("a risk-adverse task, sk-1", "a risk-adverse task, sk-1"),
    ],
)
def test_what_looks_like_a_key_is_no_part_of_a_message(text: str, redacted: str) -> None:
    assert redact_keys(text) == redacted
    assert redacted.rstrip(".") in str(from_status(401, provider="example", message=text))


CONTROLS = "\x1b[2J\x07\x00\x7f\x85\x9b\u202e\u2066\u2028\u2029\ud83d\r\v\f"


@pytest.mark.parametrize(
    "error",
    [
        from_status(401, provider="example", message=f"wrong\nasides: trusted{CONTROLS}", code=f"x{CONTROLS}"),
        from_status(401, provider="example", message="wrong", code="a\nb", request_id=f"r\n{CONTROLS}"),
        ProviderError(f"points to {CONTROLS}\nelsewhere"),
        ProtocolError(f"not JSON ({CONTROLS})\nor so"),
        ConfigError(f"the file {CONTROLS}\n is odd"),
        AsidesError(CONTROLS),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_text_of_an_error_is_one_line_without_control_characters(error: AsidesError) -> None:
    for shown in (str(error), f"{error}", repr(error), "".join(traceback.format_exception_only(error)).rstrip("\n")):
        assert shown.isprintable(), ascii(shown)


def test_a_code_and_a_request_id_that_are_none_are_no_part_of_the_text() -> None:
    error = from_status(400, provider="example", code="tell me about the sea", request_id="x" * 500)
    assert str(error) == "example answered 400. Change the request; `asides explain` shows it."
    assert error.code == "tell me about the sea"


def test_the_provider_s_words_can_be_replaced_and_what_was_added_later_stays() -> None:
    error = from_status(400, provider="example", message=f"{'x' * 490} SECRET{'y' * 600} z")
    error.args = (f"{error} Given up after 3 attempts.",)
    error.rephrase(lambda message: message.replace(f"SECRET{'y' * 600}", "…"))
    assert str(error) == (
        f"example answered 400: {'x' * 490} … z. Change the request; `asides explain` shows it. "
        "Given up after 3 attempts."
    )
    assert "SECRET" not in repr(vars(error))


FULL = from_status(429, provider="example", message="m", code="c", request_id="r", retry_after=2.0, body=b"b")
FULL.partial = Reply((Text("half"),), complete=False)


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        MissingKey("example", ("EXAMPLE_KEY",)),
        InvalidThinking("no", setting="thinking"),
        ProtocolError("broken", dialect="made_up", payload=b"{"),
        NoAnswer("none", Reply((Text(""),))),
        LimitReached("enough", limit="tokens"),
        ToolFailed("broke", ToolCall("c1", "f", {"a": 1})),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_copy_has_everything(error: AsidesError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert (other.args, vars(other)) == (error.args, vars(error))


def test_the_tree_in_the_module_names_every_error() -> None:
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert errors.__doc__ is not None
    assert {name for name in kinds if name not in errors.__doc__} == set()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (500, "audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (400, "this model does not support images"),
        (500, "this model is missing data required for image input"),
        (400, "At most 0 image(s) may be provided: made-up is not a multimodal model"),
        (400, "At most 0 image(s) may be provided in one prompt."),
        (400, "Vision add-on is not loaded, but images were provided for processing"),
        (400, "Invalid content type. image_url is only supported by certain models."),
        (400, "Unsupported content type 'image_url'"),
        (500, "unsupported content[].type"),
        (500, "Only 'text' content type is supported."),
        (400, "made-up does not support image_url"),
        (400, "made-up is not a multimodal model None"),
        (404, "No endpoints found that support image input"),
        (400, "The model 'made-up' does not support image inputs"),
        (400, "Image input is not enabled for this model"),
        (422, "unknown variant `image_url`, expected `text`"),
        (400, "This model doesn't support the image content block that you provided"),
        (400, "Video is unsupported"),
        (415, "PDFs are not supported by this model"),
        (503, "vision is currently not supported"),
    ],
)
def test_input_of_a_kind_that_is_not_taken_is_unsupported(status: int, message: str) -> None:
    error = from_status(status, provider="example", message=message)
    assert isinstance(error, Unsupported)
    assert isinstance(error, BadRequest)
    assert error.status == status
    assert "Leave that input out" in str(error)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (500, "the server had an error while processing your image", Overloaded),
        (503, "the image service is overloaded", Overloaded),
        (400, "invalid image url", BadRequest),
        (429, "image input is not supported at this rate", RateLimited),
        (400, "the prompt is too long: images count", ContextTooLong),
    ],
)
def test_other_errors_about_pictures_are_what_they_were(status: int, message: str, kind: type[ProviderError]) -> None:
    error = from_status(status, provider="example", message=message)
    assert type(error) is kind


def test_a_missing_key_without_variables_says_one_way() -> None:
    assert str(MissingKey("Example", ())) == "Example needs an API key: pass api_key=."
    assert str(MissingKey("Example", ("A", "B"))) == "Example needs an API key: set A or B, or pass api_key=."
