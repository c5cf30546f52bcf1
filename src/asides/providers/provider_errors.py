"""The error for a response of a server: `from_status`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from asides.values.errors import (
    MESSAGE_LIMIT,
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
    quote_message,
)

if TYPE_CHECKING:
    from asides.values.rejections import RejectionKind

_ADVICE: dict[type[ProviderError], str] = {
    AuthError: "Check the API key and what it may use.",
    RateLimited: "Wait, or ask for less.",
    Overloaded: "Try again later.",
    NotFound: "Check the model name and the base URL.",
    ContentFiltered: "Change the request.",
    ContextTooLong: "Shorten the conversation or choose a model with more room.",
    ReplayRejected: "Send the conversation without earlier thinking (Thinking(replay='never')), or start a new one.",
    UnsupportedInput: "Leave that input out, or choose a model that takes it.",
    BadRequest: "Change the request; `asides explain` shows it.",
    ProviderError: "See .body for the response.",
}

_ADVICE_FOR_KIND: dict[str | None, str] = dict.fromkeys(
    (
        *("tool_result_missing", "tool_result_orphaned", "tool_turn_order", "tool_arguments_invalid", "empty_content"),
        *("role_alternation", "system_position"),
    ),
    "Repair the history; `asides doctor` finds what is wrong.",
)

# Patterns are text here: most programs never see an error, and `re` compiles and keeps a pattern when it is first used.
# As servers say that a kind of input is not taken: llama.cpp (500), Ollama, vLLM and hosted ones (400), routers (404).
_INPUT = r"(?:images?(?:_url)?|input_audio|pictures?|vision|audio|videos?|pdfs?|multi-?modal)\b"
_REFUSALS = (
    rf"{_INPUT}[^.;\n]{{0,60}}(?:not (?:\w+ ){{0,2}}(?:support|accept|allow|enabl|available)|unsupported|not_supp)",
    rf"(?:not|n't|cannot) (?:\w+ ){{0,3}}(?:support|accept|process|handle|take|read)\w*[^.;\n]{{0,40}}\b{_INPUT}",
    rf"no endpoints? found that supports?[^.;\n]{{0,20}}{_INPUT}",
    rf"unsupported[^.;\n]{{0,20}}{_INPUT} input",
    rf"missing data required for {_INPUT}",
    r"not an? (?:multi-?modal|vision) model",
    r"unknown variant .(?:image_url|input_audio|file)",
    rf"at most 0 {_INPUT}",
    rf"{_INPUT} (?:is|are) only supported by",
    rf"unsupported content[^.;\n]{{0,20}}type\W{{0,4}}{_INPUT}",
    r"unsupported content\[\]\.type|only .?text.? content types? (?:is|are) supported|vision add-?on is not loaded",
)
_UNSUPPORTED_INPUT = "(?i)" + "|".join(_REFUSALS)
_INPUT_STATUSES = frozenset({400, 404, 413, 415, 422, 500, 501, 503})
_FILTER = r"(?i)content.?(filter|management|policy)|responsibleai|safety system|moderation"
# Codes of safety systems: bio_policy, cyber_policy, misalignment_policy_violation, image_content_policy_violation.
# A gateway's own failure that quotes the refusal of a provider: asking again gets the same one (continuedev/continue
# 13259, 2026-09-12: z.ai).
_REFUSED_INSIDE = r"(?i)status code: 4(?:00|22)\b|\bcode\W{1,4}1214\b|messages (?:parameter is illegal|参数非法)"
_POLICY = r"\w+_policy(?:_violation)?"
_WRONG_KEY = r"(?i)api[_ ]key.{0,12}(invalid|not valid|expired)"
# Server text that may be quoted in an error unchanged: too short and narrow for a sentence.
_CODE = r"[\w.:/-]{1,64}"
_REQUEST_ID = r"[\w.:/=+-]{1,128}"


def from_status(
    status: int,
    *,
    provider: str,
    message: str = "",
    code: str | None = None,
    request_id: str | None = None,
    retry_after: float | None = None,
    body: bytes = b"",
) -> ProviderError:
    """Build the error for a response of a server. Status 200 means an error reported inside a successful response."""
    from asides.providers.refusals import explain  # Most programs never see an error.

    kind, message = explain(body, message=message, code=code, status=status)
    error_type = _choose_type(kind, status, message, code)
    detail = quote_message(message)
    event = f"{provider} answered {status}" if status >= 400 else f"{provider} reported an error"
    if code and code != str(status) and re.fullmatch(_CODE, code) and code.lower() not in detail.lower():
        event += f" ({code})"
    text = f"{event}: {detail}." if detail else f"{event}."
    text += f" {_ADVICE_FOR_KIND.get(kind, _ADVICE[error_type])}"
    if request_id and re.fullmatch(_REQUEST_ID, request_id):
        text += f" (request {request_id})"
    error = error_type(
        text, status=status, code=code, request_id=request_id, retry_after=retry_after, body=body[: 64 * 1024]
    )
    error.kind = kind
    error._said = (message[: 4 * MESSAGE_LIMIT], detail)
    return error


def split_provider_advice(text: str) -> tuple[str, str]:
    """The text of such an error in two: what the provider said, and the advice after it; "" without advice."""
    for advice in (*_ADVICE.values(), *_ADVICE_FOR_KIND.values()):
        said, mark, rest = text.rpartition(f" {advice}")
        if mark:
            return said, f"{advice}{rest}"
    return text, ""


def _choose_type(kind: RejectionKind | None, status: int, message: str, code: str | None) -> type[ProviderError]:
    """Choose the class of an error. A kind decides, whatever the status: relays answer bad requests with 429 or 502."""
    if kind is not None and kind != "opaque_provider_error":
        from asides.values.rejections import STATE_KINDS

        return ContextTooLong if kind == "context_length" else ReplayRejected if kind in STATE_KINDS else BadRequest
    if code and re.fullmatch(_POLICY, code):
        return ContentFiltered
    if re.search(_REFUSED_INSIDE, message):
        return BadRequest
    text = f"{code or ''} {message}"
    if status < 400:
        # Reported inside a successful response: only the code and the text show the kind.
        status = int(code) if code and code.isdecimal() and 400 <= int(code) < 600 else _guess_status(code, message)
    if status in _INPUT_STATUSES and re.search(_UNSUPPORTED_INPUT, text):
        return UnsupportedInput
    if status in (400, 413, 422):
        if re.search(_FILTER, text):
            return ContentFiltered
        return AuthError if re.search(_WRONG_KEY, text) else BadRequest  # some hosts report a wrong key so
    if status == 403 and re.search(_FILTER, text):
        return ContentFiltered  # moderation before the model (openrouter.ai docs errors, 2026-11)
    if status in (401, 403, 407):
        return AuthError
    if status in (404, 405, 410):
        return NotFound
    if status in (402, 429):
        return RateLimited
    if status in (408, 409) or status >= 500:
        return Overloaded
    return BadRequest if 400 <= status < 500 else ProviderError


_CODES = (
    (r"(?i)auth|api.?key|permission|forbidden", 401),
    (r"(?i)rate.?limit|quota|insufficient|too.?many.?requests|balance", 429),
    (r"(?i)overload|unavailable|server.?error|internal|timeout|capacity", 503),
    (r"(?i)not.?found|no such model", 404),
    (r"(?i)invalid|bad.?request|unsupported|too long|context|content.?filter|tool", 400),
)


def _guess_status(code: str | None, message: str) -> int:
    for text in (code or "", message):
        for pattern, status in _CODES:
            if re.search(pattern, text):
                return status
    return 0
