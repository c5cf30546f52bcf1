"""Everything that can go wrong, as a tree; `from_status` is the only mapping from what a server said.

    AsidesError                    .partial: Reply | None
    ├─ ConfigError                 your side, before a byte is sent
    │  ├─ UnknownProvider · UnknownModel · MissingKey · InvalidThinking · TooManyTools · Unsupported
    ├─ TransportError              nobody answered in full
    │  ├─ ConnectTimeout · IdleTimeout · ConnectionLost
    ├─ ProviderError               they said no   .status .code .request_id .retry_after .body
    │  ├─ AuthError · RateLimited · Overloaded · NotFound · ContentFiltered
    │  └─ BadRequest → ContextTooLong · ReplayRejected
    ├─ ProtocolError               their bytes break their dialect   .dialect .payload
    ├─ NoAnswer                    only when you required one → AnswerInThinking
    └─ AgentError                  an agent's run could not go on   .result
       ├─ LimitReached .limit → TooManyTurns
       └─ InvalidOutput · ToolFailed .call

Every message says what happened, to whom and what to do. Messages carry no content, no thinking, no seal and no key;
attributes may, and say so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asides.values.messages import ToolCall
    from asides.values.reply import Reply
    from asides.values.result import Result


class AsidesError(Exception):
    """The root. `partial` is what had arrived when it happened; its repr shows no content."""

    partial: Reply | None = None
    result: Result[Any] | None = None
    """What an agent's run had come to when it happened inside one; its messages can be sent on."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default rebuilds from args alone and would call subclasses without their keyword arguments.
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[AsidesError], args: tuple[Any, ...], state: dict[str, Any]) -> AsidesError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigError(AsidesError):
    """Something on your side, found before a byte was sent."""


class UnknownProvider(ConfigError):
    """No row has this name."""


class UnknownModel(ConfigError):
    """The model string names no provider, or no model."""


class MissingKey(ConfigError):
    """No API key was given and none is in the environment."""

    def __init__(self, provider: str, variables: tuple[str, ...]) -> None:
        where = " or ".join(variables) if variables else "api_key="
        super().__init__(f"{provider} needs an API key: set {where}, or pass api_key=.")
        self.provider = provider
        self.variables = variables


class InvalidThinking(ConfigError):
    """What was asked about thinking contradicts itself, or what the model allows."""

    def __init__(self, message: str, *, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class TooManyTools(ConfigError):
    """More tools, or larger ones, than the limit."""


class Unsupported(ConfigError):
    """The dialect has no way to say this."""


class TransportError(AsidesError):
    """Nobody answered in full."""


class ConnectTimeout(TransportError):
    """No connection in time."""


class IdleTimeout(TransportError):
    """Connected, and then silence: before the first byte, or between two."""


class ConnectionLost(TransportError):
    """The connection was refused, reset or cut, or the stream ended before the reply did."""


class ProviderError(AsidesError):
    """The provider said no. `body` is its answer, cut to 64 KiB, and may hold what you sent."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        body: bytes = b"",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.body = body


class AuthError(ProviderError):
    """The key is wrong, or may not do this."""


class RateLimited(ProviderError):
    """Too much, too fast, or no credit left."""


class Overloaded(ProviderError):
    """Their side is down or busy."""


class NotFound(ProviderError):
    """No such model or address."""


class ContentFiltered(ProviderError):
    """Their filter refused the request."""


class BadRequest(ProviderError):
    """They do not accept the request as it is."""


class ContextTooLong(BadRequest):
    """The conversation does not fit."""


class ReplayRejected(BadRequest):
    """They do not accept the thinking that was sent back, or miss some that was not."""


class ProtocolError(AsidesError):
    """Their bytes break their dialect. `payload` holds the offending bytes, cut to 4 KiB."""

    def __init__(self, message: str, *, dialect: str | None = None, payload: bytes = b"") -> None:
        super().__init__(message)
        self.dialect = dialect
        self.payload = payload[:4096]


class NoAnswer(AsidesError):
    """`require_answer()` found none. `partial` is the reply."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.partial = reply


class AnswerInThinking(NoAnswer):
    """The answer is blank, and what was asked for stands in the thinking: taking it from there is not done."""


class AgentError(AsidesError):
    """An agent's run could not go on. `result` has what it had come to, and its messages can be sent on."""


class LimitReached(AgentError):
    """A limit of the run was reached; `limit` is which: "turns", "tool_calls", "tokens" or "seconds"."""

    def __init__(self, message: str, *, limit: str = "turns") -> None:
        super().__init__(message)
        self.limit = limit


class TooManyTurns(LimitReached):
    """The limit of turns was reached."""


class InvalidOutput(AgentError):
    """The model did not bring its answer into the form that was asked for, in all its attempts."""


class ToolFailed(AgentError):
    """A tool failed in a way the model cannot mend."""

    def __init__(self, message: str, call: ToolCall) -> None:
        super().__init__(message)
        self.call = call


_ADVICE: dict[type[ProviderError], str] = {
    AuthError: "check the API key and what it may use.",
    RateLimited: "wait, or ask for less.",
    Overloaded: "try again later.",
    NotFound: "check the model name and the base URL.",
    ContentFiltered: "change the request.",
    ContextTooLong: "shorten the conversation or choose a model with more room.",
    ReplayRejected: "send the conversation without earlier thinking (Thinking(replay='never')), or start a new one.",
    BadRequest: "change the request; `asides explain` shows it.",
    ProviderError: "see .body for what they sent.",
}

_CONTEXT = re.compile(
    r"context.{0,12}(length|window|size)|too many tokens|prompt is too long"
    r"|maximum.{0,20}tokens.{0,40}(exceed|request)|exceed.{0,30}context|token count.{0,40}exceeds",
    re.IGNORECASE,
)
_REPLAY = re.compile(
    r"reasoning_content|thought[_ ]?signature|encrypted_content|signature. in .thinking"
    r"|`thinking` or `redacted_thinking`|reasoning.{0,40}required",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content.?(filter|management|policy)|responsibleai|safety system|moderation", re.IGNORECASE)
_WRONG_KEY = re.compile(r"api[_ ]key.{0,12}(invalid|not valid|expired)", re.IGNORECASE)
_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|gsk|xai|nvapi|hf|r8)[-_][\w*-]{6,}|\bAIza[\w*-]{6,}|\bya29\.[\w.*-]{6,}|Bearer\s+\S+", re.IGNORECASE
)
_MESSAGE_LIMIT = 500


def redact_keys(text: str) -> str:
    """`text` without anything that looks like a key."""
    return _KEY_LIKE.sub("***", text)


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
    """The error for what a server said. A status of 200 is an error told inside a good response."""
    kind = _kind_of(status, message, code)
    said = redact_keys(message.strip())[:_MESSAGE_LIMIT]
    what = f"{provider} answered {status}" if status >= 400 else f"{provider} reported an error"
    if code and code != str(status) and code.lower() not in said.lower():
        what += f" ({code})"
    text = f"{what}: {said.rstrip('.')}." if said else f"{what}."
    text += f" To do: {_ADVICE[kind]}"
    if request_id:
        text += f" (request {request_id})"
    return kind(text, status=status, code=code, request_id=request_id, retry_after=retry_after, body=body[: 64 * 1024])


def _kind_of(status: int, message: str, code: str | None) -> type[ProviderError]:
    told = f"{code or ''} {message}"
    if status < 400:
        # Told inside a good response: only the code and the words are left to go by.
        status = int(code) if code and code.isdecimal() and 400 <= int(code) < 600 else _status_of_code(code, message)
    if status in (400, 413, 422):
        if _CONTEXT.search(told):
            return ContextTooLong
        if _FILTER.search(told):
            return ContentFiltered
        if _WRONG_KEY.search(told):
            return AuthError  # some hosts call a wrong key a bad request
        return ReplayRejected if _REPLAY.search(told) else BadRequest
    if status in (401, 403, 407):
        return AuthError
    if status in (404, 405, 410):
        return NotFound
    if status in (402, 429):
        return RateLimited
    if status in (408, 409) or status >= 500:
        return Overloaded
    return BadRequest if 400 <= status < 500 else ProviderError


_CODES: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"auth|api.?key|permission|forbidden", re.IGNORECASE), 401),
    (re.compile(r"rate.?limit|quota|insufficient|too.?many.?requests|balance", re.IGNORECASE), 429),
    (re.compile(r"overload|unavailable|server.?error|internal|timeout|capacity", re.IGNORECASE), 503),
    (re.compile(r"not.?found|no such model", re.IGNORECASE), 404),
    (re.compile(r"invalid|bad.?request|unsupported|too long|context|content.?filter|tool", re.IGNORECASE), 400),
)


def _status_of_code(code: str | None, message: str) -> int:
    for told in (code or "", message):
        for pattern, status in _CODES:
            if pattern.search(told):
                return status
    return 0
