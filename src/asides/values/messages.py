"""What is said: a message, its parts, and the prompt that carries them. Not here: how any provider spells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.values.thinking import Origin, Seal, Thinking, Thought
from asides.values.tools import Tool

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Words, of a person or of the answer."""

    text: str
    seals: tuple[Seal, ...] = ()
    cache: bool = False
    """A breakpoint of the provider's cache stands behind this part, where it has such marks."""

    def __repr__(self) -> str:
        return f"Text(<{len(self.text)} characters>)"


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """The model's own words for not answering; never part of the answer."""

    text: str

    def __repr__(self) -> str:
        return f"Refusal(<{len(self.text)} characters>)"


class Image(msgspec.Struct, frozen=True, tag="image"):
    """A picture, by address or by its bytes."""

    url: str | None = None
    data: bytes | None = None
    media_type: str = "image/png"
    detail: str | None = None
    cache: bool = False
    """A breakpoint of the provider's cache stands behind this part, where it has such marks."""
    seals: tuple[Seal, ...] = ()

    def __repr__(self) -> str:
        return f"Image({_where(self.url, self.data)}, media_type={self.media_type!r})"


class File(msgspec.Struct, frozen=True, tag="file"):
    """A document, by its bytes, by address or by the id a provider gave it."""

    name: str = "file"
    data: bytes | None = None
    url: str | None = None
    id: str | None = None
    media_type: str = "application/pdf"
    cache: bool = False
    """A breakpoint of the provider's cache stands behind this part, where it has such marks."""
    seals: tuple[Seal, ...] = ()

    def __repr__(self) -> str:
        return f"File({_where(self.url or self.id, self.data)}, media_type={self.media_type!r})"


def _where(address: str | None, data: bytes | None) -> str:
    return f"<{len(data)} bytes>" if data is not None else "by address" if address else "empty"


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """The model wants a tool run. `arguments` are parsed; what could not be parsed stays in `raw_arguments`."""

    id: str
    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    raw_arguments: str | None = None
    seals: tuple[Seal, ...] = ()
    custom: bool = False
    """The tool takes text of its own form, not JSON: it stands in `raw_arguments`."""

    def __repr__(self) -> str:
        return f"ToolCall(id={self.id!r}, name={self.name!r}, arguments={sorted(self.arguments)})"


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result"):
    """What a tool gave back. `content` is text, or parts where the provider takes pictures from tools."""

    call_id: str
    content: str | tuple[Text | Image | File, ...] = ""
    name: str | None = None
    is_error: bool = False
    cache: bool = False
    """A breakpoint of the provider's cache stands behind this part, where it has such marks."""

    @property
    def text(self) -> str:
        """The words of it."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, Text))

    def __repr__(self) -> str:
        return f"ToolResult(call_id={self.call_id!r}, <{len(self.text)} characters>, is_error={self.is_error})"


class ServerTool(msgspec.Struct, frozen=True, tag="server_tool"):
    """A tool that the provider ran itself: a search, an interpreter, a file look-up. Nothing is left to run."""

    name: str
    """The provider's word for it: "web_search_call", "code_execution_tool_result" …"""
    id: str | None = None
    status: str | None = None
    json: str = "{}"
    """The item as it came, so that it can go back."""
    origin: Origin | None = None
    seals: tuple[Seal, ...] = ()

    def __repr__(self) -> str:
        return f"ServerTool(name={self.name!r}, id={self.id!r}, status={self.status!r})"


class UnknownPart(msgspec.Struct, frozen=True, tag="unknown"):
    """A part that a provider sent and we do not know: kept as its JSON, so that it can go back."""

    json: str
    origin: Origin | None = None
    seals: tuple[Seal, ...] = ()

    def __repr__(self) -> str:
        return f"UnknownPart(<{len(self.json)} characters>)"


Part: TypeAlias = Text | Thought | ToolCall | ToolResult | Image | File | Refusal | ServerTool | UnknownPart


class StoredResponse(msgspec.Struct, frozen=True):
    """Where a provider keeps a turn, and all that came before it."""

    id: str
    origin: Origin | None = None


class Message(msgspec.Struct, frozen=True):
    """One turn of one speaker: its parts, in the order they were said."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    stored: StoredResponse | None = None
    """For a turn that its provider has stored: what to name to go on from there."""

    @property
    def text(self) -> str:
        """The words of the message, never its thinking."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def content(self) -> str | tuple[Part, ...] | None:
        """Plain text where there is nothing but text, the parts where there is more, None where there is nothing."""
        said = tuple(part for part in self.parts if not isinstance(part, ToolCall))
        if not said:
            return None
        return self.text if all(isinstance(part, Text) for part in said) else said

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in it."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    def __repr__(self) -> str:
        return f"Message(role={self.role!r}, parts=[{', '.join(type(part).__name__ for part in self.parts)}])"


def user(*content: str | Part) -> Message:
    """What a person says: `user("What is this?", Image(url=…))`."""
    return Message("user", _as_parts(content))


def assistant(*content: str | Part) -> Message:
    """What the model said."""
    return Message("assistant", _as_parts(content))


def system(text: str) -> Message:
    """How the model is to behave."""
    return Message("system", (Text(text),))


def _as_parts(content: Sequence[str | Part]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in content)


ToolChoice: TypeAlias = str
""""auto", "none", "required", or the name of a tool."""


class OutputSchema(msgspec.Struct, frozen=True):
    """The JSON schema that the answer must fit."""

    name: str
    schema: dict[str, Any]
    strict: bool = True


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the next token is chosen. None is not sent."""

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

    def given(self) -> dict[str, Any]:
        """The settings that were set, by name."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


class ProviderState(msgspec.Struct, frozen=True):
    """What a provider keeps of a conversation, where it keeps any. Unset: nothing, and everything is sent each time."""

    store: bool | None = None
    """Whether the provider is to store this turn; None: only where something below needs it."""
    resume: bool = False
    """Go on from the newest turn that this endpoint has stored, and send only what came after it."""
    previous_response_id: str | None = None
    """Go on from this response."""
    conversation: str | None = None
    """Go on in this conversation of the provider's; not together with a previous response."""
    truncation: Literal["auto", "disabled"] | None = None
    """auto: the provider may drop the oldest turns where the context is too long."""
    include: tuple[str, ...] = ()
    """More that the provider is to send along, in its own words."""
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    """Whose earlier reasoning the model gets to see again."""
    mode: Literal["standard", "pro"] | None = None
    """How the model reasons, where it has more than one way."""

    @property
    def continues(self) -> bool:
        """Whether a part of the conversation is with the provider."""
        return self.previous_response_id is not None or self.conversation is not None


class Prompt(msgspec.Struct, frozen=True):
    """Everything that is sent, in our words. The model and its host are not part of it."""

    messages: tuple[Message, ...]
    system: str | None = None
    thinking: Thinking = Thinking()
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    output: OutputSchema | Literal["json"] | None = None
    max_tokens: int | None = None
    """The whole output, thinking included."""
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    stream: bool = True
    metadata: dict[str, str] | None = None
    user: str | None = None
    state: ProviderState = ProviderState()
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """Merged into the request body last, so that a native field always wins."""

    def __repr__(self) -> str:
        return (
            f"Prompt(messages={len(self.messages)}, tools={[tool.name for tool in self.tools]}, stream={self.stream})"
        )


def read_arguments(raw: str) -> dict[str, Any] | None:
    """The arguments as an object, also when none were sent or when they were encoded twice; None when they do not
    parse.
    """
    if not raw.strip():
        return {}
    value: Any = raw
    for _ in range(2):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):  # nested deeper than anybody means
            return None
        if not isinstance(value, str):
            break
    if value is None:
        return {}
    return value if isinstance(value, dict) else None
