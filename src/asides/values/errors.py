"""All errors, as a tree.

    AsidesError                    .partial: Reply | None
    ├─ ConfigError                 on your side, before a byte is sent
    │  ├─ UnknownProvider · UnknownModel · MissingKey · InvalidThinking · TooManyTools · Unsupported
    ├─ TransportError              no complete answer arrived
    │  ├─ ConnectTimeout · IdleTimeout · ConnectionLost
    ├─ ProviderError               the provider refused   .status .code .kind .request_id .retry_after .body
    │  ├─ AuthError · RateLimited · Overloaded · NotFound · ContentFiltered
    │  └─ BadRequest → ContextTooLong · ReplayRejected · UnsupportedInput (also an Unsupported)
    ├─ ProtocolError               the response breaks its dialect   .dialect .payload
    ├─ NoAnswer                    only when you required one → AnswerInThinking
    └─ AgentError                  an agent's run could not continue   .result
       ├─ LimitReached .limit → TooManyTurns
       └─ InvalidOutput .feedback · ToolFailed .call

Every message says what happened, with which provider, and what to do. Messages hold no answer, no thinking, no seal
and no key, and are one line without control characters. That of `NoAnswer` quotes the commentary. Attributes may hold
content, and say so, but no key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from asides.values.notices import escape_controls

if TYPE_CHECKING:
    from asides.values.parts import ToolCall
    from asides.values.rejections import RejectionKind
    from asides.values.reply import Reply
    from asides.values.result import Result


_Kind = TypeVar("_Kind", bound="AsidesError")


class AsidesError(Exception):
    """The root of all errors. `partial` is the part of the reply that had arrived; its repr shows no content."""

    partial: Reply | None = None
    result: Result[Any] | None = None
    """For an error in an agent's run: the result so far. Its messages can be sent."""
    earlier: tuple[AsidesError, ...] = ()
    """When several models were asked in order: the errors of the models before this one."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__ == __name__:
            cls.__module__ = "asides"  # Tracebacks name an error as its users import it.

    def __str__(self) -> str:
        # Escape line breaks and control characters: the text may come from a server or a file.
        return to_line(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        # The default rebuilds from args alone and would call subclasses without their keyword arguments.
        return (_rebuild, (type(self), self.args, self.__dict__))


AsidesError.__module__ = "asides"


def _rebuild(kind: type[_Kind], args: tuple[Any, ...], state: dict[str, Any]) -> _Kind:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


# --- before sending ---------------------------------------------------------------------------------------------------


class ConfigError(AsidesError):
    """A mistake in the call or the settings, found before a byte was sent."""

    concerns_address = False
    """Whether the configured address of a provider is missing or invalid."""


class UnknownProvider(ConfigError):
    """Unknown provider name."""


class UnknownModel(ConfigError):
    """The model string names no provider, or no model."""


class MissingKey(ConfigError):
    """No API key was given, and none was found in the environment, the key file or a cloud's library."""

    def __init__(
        self, provider: str, variables: tuple[str, ...], *, name: str = "", ways: tuple[str, ...] = (), why: str = ""
    ) -> None:
        """`name` is that of the row, for `asides keys set`; `ways` are further ways to get a key."""
        every = [f"set {' or '.join(variables)}"] if variables else []
        every += [f"run `asides keys set {name}`"] if name else []
        super().__init__(f"{provider} needs an API key{why}: {', or '.join([*every, *ways, 'pass api_key='])}.")
        self.provider = provider
        self.variables = variables

    def with_hint(self, way: str) -> MissingKey:
        """The same error for callers that pass a key in another way than `api_key=`."""
        return _rebuild(type(self), (f"{str(self).removesuffix('pass api_key=.')}{way}.",), self.__dict__)


class InvalidThinking(ConfigError):
    """The thinking settings contradict each other, or the model does not allow them."""

    def __init__(self, message: str, *, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class TooManyTools(ConfigError):
    """The tools exceed the limit of their number or size."""


class Unsupported(ConfigError):
    """The dialect cannot express this."""


# --- transport and provider -------------------------------------------------------------------------------------------


class TransportError(AsidesError):
    """No complete answer arrived."""


class ConnectTimeout(TransportError):
    """The connection was not made in time."""


class IdleTimeout(TransportError):
    """Connected, but no byte came in time: neither a first one nor the next."""


class ConnectionLost(TransportError):
    """The connection was refused, reset or cut, or the stream ended before the reply did."""


class ProviderError(AsidesError):
    """The provider refused. `body` is its response, cut to 64 KiB, and may hold what you sent, but not the key."""

    kind: RejectionKind | None = None
    """Why it refused, if that is about reasoning state or settings: see docs/errors.md."""
    _said: tuple[str, str] = ("", "")
    """The provider's own message, and the part of the error's text that was made of it."""

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

    def rephrase(self, clean: Callable[[str], str]) -> None:
        """Pass the provider's own words in the text of this error through a function."""
        message, shown = self._said
        if shown:
            self.args = (self.args[0].replace(shown, quote_message(clean(message)), 1), *self.args[1:])
        self._said = ("", "")


class AuthError(ProviderError):
    """The key is invalid, or lacks a permission."""


class RateLimited(ProviderError):
    """Too many requests, or no credit left."""


class Overloaded(ProviderError):
    """The provider is down or busy."""


class NotFound(ProviderError):
    """The model or the address does not exist."""


class ContentFiltered(ProviderError):
    """The provider's content filter refused the request."""


class BadRequest(ProviderError):
    """The provider does not accept the request."""


class ContextTooLong(BadRequest):
    """The conversation is too long for the model."""


class UnsupportedInput(BadRequest, Unsupported):
    """The model or its server does not accept this kind of input, such as pictures. Retrying does not help."""


class ReplayRejected(BadRequest):
    """The provider rejects the earlier turns as sent back, usually their thinking, or misses a part of them."""


class ProtocolError(AsidesError):
    """The response breaks its dialect. `payload` holds the offending bytes, cut to 4 KiB."""

    def __init__(self, message: str, *, dialect: str | None = None, payload: bytes = b"") -> None:
        super().__init__(message)
        self.dialect = dialect
        self.payload = payload[:4096]


# --- the answer and the agent -----------------------------------------------------------------------------------------


class NoAnswer(AsidesError):
    """`require_answer()` found no answer. `partial` is the reply; the message quotes its commentary."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.partial = reply


class AnswerInThinking(NoAnswer):
    """The answer is blank, and the thinking holds the requested output. asides never takes an answer from thinking."""


class AgentError(AsidesError):
    """An agent's run could not continue. `result` is the result so far, and its messages can be sent."""


class LimitReached(AgentError):
    """A limit of the run was reached. `limit` names it: "turns", "tool_calls", "tokens" or "seconds"."""

    def __init__(self, message: str, *, limit: str = "turns") -> None:
        super().__init__(message)
        self.limit = limit


class TooManyTurns(LimitReached):
    """The limit of turns was reached."""


class InvalidOutput(AgentError):
    """The answer does not have the requested form; in an agent's run, after all its attempts."""

    def __init__(self, message: str, *, feedback: str | None = None) -> None:
        super().__init__(message)
        self.feedback = feedback
        """What is wrong with the answer, as text for the model; it may quote the answer."""


class ToolFailed(AgentError):
    """A tool failed in a way that the model cannot correct."""

    def __init__(self, message: str, call: ToolCall) -> None:
        super().__init__(message)
        self.call = call


def _name_publicly(names: dict[str, Any]) -> None:
    """Let tracebacks say asides.MissingKey, also in a program that never names it."""
    for value in names.values():
        if isinstance(value, type) and issubclass(value, AsidesError):
            value.__module__ = "asides"


_name_publicly(globals())


# --- texts of servers ------------------------------------------------------------------------------------------------

_KEY_LIKE = r"(?i)\b(?:sk|pk|gsk|xai|nvapi|hf|r8)[-_][\w*-]{6,}|\bAIza[\w*-]{6,}|\bya29\.[\w.*-]{6,}|Bearer\s+\S+"
MESSAGE_LIMIT = 500


_LINE_BREAKS = "\\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\\s*"


def redact_keys(text: str) -> str:
    """Replace everything in `text` that looks like a key."""
    return re.sub(_KEY_LIKE, "***", text)


_IMPERATIVES = (
    "Add|Allow|Answer|Ask|Await|Begin|Call|Change|Check|Choose|Close|Collect|Compare|Copy|Correct|Create|Decode|"
    "Decompress|Decorate|Encode|End|For|Give|Grant|Have|If|Install|Join|Keep|Leave|Let|Load|Look|Make|Move|Name|Omit|"
    "Open|Pass|Point|Put|Raise|Read|Record|Register|Reload|Remove|Rename|Repair|Report|Restore|Resume|Return|Run|Save|"
    "See|Send|Set|Shorten|Start|Take|Try|Turn|Unset|Upgrade|Upload|Use|Wait|Write"
)
_ADVICE = rf"(?:^|(?<=[.?!)…] ))(?:{_IMPERATIVES})\b"


def split_advice(text: str) -> tuple[str, str]:
    """The text of an error of ours in two: what is wrong, and the advice after it, which begins with an imperative."""
    found = re.search(_ADVICE, text)
    return (text, "") if found is None else (text[: found.start()].rstrip(), text[found.start() :])


def to_line(text: str) -> str:
    """Return the text as one line, with control characters escaped."""
    return escape_controls(re.sub(_LINE_BREAKS, " ", text))


def quote_message(message: str) -> str:
    """Return a server's message as the text of an error shows it: one line, nothing like a key, not long."""
    return to_line(redact_keys(message.strip()))[:MESSAGE_LIMIT].rstrip(".")
