"""Messages, and the prompt that carries them with its settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import msgspec

from asides.values.json_form import JsonForm, Private
from asides.values.learned import Learned
from asides.values.parts import (
    ContentLike,
    Part,
    Text,
    ToolCall,
)
from asides.values.thinking import Effort, Origin, Thinking
from asides.values.tools import Tool

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


# --- messages ---------------------------------------------------------------------------------------------------------


class StoredResponse(msgspec.Struct, frozen=True):
    """The id under which a provider stored a turn and everything before it."""

    id: str
    origin: Origin | None = None


class Source(msgspec.Struct, frozen=True, eq=False):
    """The JSON that a message was read from. It never makes two messages unequal."""

    dialect: str
    json: str
    """A JSON array: the objects of this dialect that are the message, or the content blocks of its turn."""
    turn: str = ""
    """The fields of the turn beside its blocks, as a JSON object; "" = none."""
    digest: str = ""
    """The digest of what was read. Derived; do not pass."""

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Source) or NotImplemented

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return f"Source(dialect={self.dialect!r})"


_PARTS = frozenset(get_args(Part))
_ROLES = frozenset(get_args(Role))


class Message(msgspec.Struct, JsonForm, frozen=True):
    """One turn of one speaker: its parts in order.

    `Message("user", "hello")` and `Message("user", ["What is this?", Image("a.png")])` are also accepted. Content
    that cannot be sent raises ConfigError. `Message("assistant", ())` is empty, as a model's turn may be.
    """

    _private: ClassVar[Mapping[str, Private]] = {"source": "both"}

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    stored: StoredResponse | None = None
    """For a turn that its provider has stored: the id to continue from."""
    prefix: str = ""
    """For a turn whose seals are bound to all that the model was sent before it: the digest of that."""
    learned: tuple[Learned, ...] = ()
    """For a turn that took repairs of its request: what the refusals taught, so that the next request needs none."""
    effort: Effort | None = None
    """For a turn of the model: the effort it was asked for. For a system message without parts: that from here on."""
    source: Source | None = None
    """The JSON that the message was read from, while the message says the same."""

    if TYPE_CHECKING:

        def __init__(
            self,
            role: Role,
            parts: ContentLike = (),
            name: str | None = None,
            stored: StoredResponse | None = None,
            prefix: str = "",
            learned: tuple[Learned, ...] = (),
            effort: Effort | None = None,
            source: Source | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        # Almost always right, and this runs for each message of a history.
        if type(self.parts) is not tuple or self.role not in _ROLES or not _PARTS.issuperset(map(type, self.parts)):
            from asides.values.content import check_role, read_parts

            check_role(self.role)
            msgspec.structs.force_setattr(self, "parts", read_parts(self.role, self.parts))
        source = self.source
        if source is not None and (checked := self._check_source(source)) is not source:
            msgspec.structs.force_setattr(self, "source", checked)

    def _check_source(self, source: Source) -> Source | None:
        """Return the source with its digest; None for that of a message that was changed: redacted text must not
        survive in it.
        """
        digest = self.digest_content()
        if digest and not source.digest:
            return msgspec.structs.replace(source, digest=digest)
        return source if digest and source.digest == digest else None

    def digest_content(self) -> str:
        """Return the digest of the message's content. A valid source has the same digest.

        "" if JSON cannot hold that: arguments that contain themselves, or text with a lone surrogate.
        """
        said = (self.role, self.name, self.effort, self.parts)
        try:
            encoded = msgspec.json.encode(said, enc_hook=repr)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return ""
        return hashlib.blake2b(encoded, digest_size=12).hexdigest()

    @property
    def text(self) -> str:
        """The text of the message, never its thinking."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def content(self) -> str | tuple[Part, ...] | None:
        """The parts that are not calls: a string when all are text, else a tuple; None when there are none."""
        parts = tuple(part for part in self.parts if not isinstance(part, ToolCall))
        if not parts:
            return None
        return self.text if all(isinstance(part, Text) for part in parts) else parts

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the message."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])

    def __repr__(self) -> str:
        return f"Message(role={self.role!r}, parts=[{', '.join(type(part).__name__ for part in self.parts)}])"


def user(*content: ContentLike) -> Message:
    """Make a message of a user: `user("What is this?", Image("a.png"))`, `user("Sum up", Path("a.pdf"))`."""
    if len(content) == 1 and type(text := content[0]) is str and text:
        return Message("user", (Text(text),))
    return Message("user", list(content))


def assistant(*content: ContentLike) -> Message:
    """Make a message of the model. A model may say nothing: `assistant()`."""
    return Message("assistant", list(content))


def system(text: str) -> Message:
    """Make a system message."""
    return Message("system", (Text(text),) if type(text) is str else [text])


def join_system_texts(message: Message) -> str:
    """Return the text of a system message, with a blank line between its blocks: they are not one sentence."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "\n\n".join([text for text in texts if text.strip()]) if len(texts) > 1 else message.text


def read_attribute(prompt: object, name: str) -> Any:
    """Read an attribute of an object that may hold messages; None if it has none, or if reading it fails."""
    try:
        return getattr(prompt, name, None)
    except Exception:  # noqa: BLE001 - code of an object of the caller's
        return None


# --- the prompt -------------------------------------------------------------------------------------------------------

ToolChoice: TypeAlias = str
""""auto", "none", "required", or the name of a tool."""


class OutputSchema(msgspec.Struct, frozen=True):
    """The JSON schema that the answer must fit."""

    name: str
    schema: dict[str, Any]
    strict: bool = True


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sampling settings. None is not sent."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    seed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that are set, by name."""
        if self is _NO_SAMPLING:
            return {}
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


_NO_SAMPLING = Sampling()


class ProviderState(msgspec.Struct, frozen=True):
    """Settings for a conversation that the provider stores. By default every request holds the whole conversation."""

    store: bool | None = None
    """Whether the provider stores this turn; None: only where a setting below needs it."""
    resume: bool = False
    """Continue from the newest turn that this endpoint has stored, and send only the messages after it."""
    previous_response_id: str | None = None
    """Continue from this response."""
    conversation: str | None = None
    """Continue this conversation at the provider; not together with a previous response."""
    truncation: Literal["auto", "disabled"] | None = None
    """auto: the provider may drop the oldest turns when the context is too long."""
    include: tuple[str, ...] = ()
    """More fields that the provider should send, by its names for them."""
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    """Which earlier reasoning the model sees again."""
    mode: Literal["standard", "pro"] | None = None
    """The reasoning mode, for models that have several."""

    @property
    def continues(self) -> bool:
        """Whether the provider holds a part of the conversation."""
        return self.previous_response_id is not None or self.conversation is not None


class RequestSource(msgspec.Struct, frozen=True, eq=False):
    """The fields of the request that a prompt was read from. It never makes two prompts unequal."""

    dialect: str
    fields: dict[str, Any]
    """The fields beside the history, as they came."""
    system: Message | None = None
    """The message that the system prompt was read from, where it was one."""

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, RequestSource) or NotImplemented

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return f"RequestSource(dialect={self.dialect!r})"


class Prompt(msgspec.Struct, frozen=True):
    """A request before it is encoded. It names no model and no host."""

    messages: tuple[Message, ...]
    system: str | None = None
    thinking: Thinking = Thinking()
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    output: OutputSchema | Literal["json"] | None = None
    max_tokens: int | None = None
    """The limit for the whole output, thinking included."""
    sampling: Sampling = _NO_SAMPLING
    stop: tuple[str, ...] = ()
    stream: bool = True
    metadata: dict[str, str] | None = None
    user: str | None = None
    state: ProviderState = ProviderState()
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """Fields of the provider, merged into the request body last, so that they win."""
    compaction: Literal["provider"] | int | None = None
    """Let the provider compact the conversation. Only for hosts whose row says that they do (`Quirks.compacts`)."""
    begun_thinking: str | None = None
    """The thinking that the model's turn began with. It is closed, and the model continues with its answer. Only for
    hosts whose row says how (`Quirks.continues`)."""
    cache: bool | str = False
    """Ask the provider to cache the beginning that requests share; a text is the lifetime."""
    source: RequestSource | None = None
    """The fields that the prompt was read from. Their dialect's encoder reuses those whose meaning is unchanged."""

    def is_from(self, dialect: str) -> bool:
        """Whether the prompt was read from a request in this dialect."""
        return self.source is not None and self.source.dialect == dialect

    def __repr__(self) -> str:
        tools = [tool.name for tool in self.tools]
        return f"Prompt(messages={len(self.messages)}, tools={tools}, stream={self.stream})"
