"""Messages, what is known about them, and the prompt that carries them with its settings.

Not here: the parts of messages (parts), and how a provider encodes them (dialects).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from asides.values.json_form import JsonForm
from asides.values.learned import Learned
from asides.values.message_facts import (
    CHANGES_EFFORT,
    HAS_BREAKPOINTS,
    HAS_CALLS,
    HAS_FILE_IDS,
    HAS_MEDIA,
    HAS_OTHERS,
    HAS_PICTURES,
    HAS_RESULTS,
    HAS_THOUGHTS,
    HAS_WITHHELD,
    IS_BLANK,
    IS_BOUND,
    IS_PLAIN,
    FactsSlot,
    MessageFacts,
)
from asides.values.parts import (
    ContentLike,
    File,
    Image,
    Part,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from asides.values.thinking import Effort, Origin, Thinking, Thought
from asides.values.tools import Tool

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


# --- what is known about a message ------------------------------------------------------------------------------------

_set_facts = FactsSlot.__dict__["_facts"].__set__


def read_facts(messages: Sequence[Message]) -> list[MessageFacts]:
    """Return the facts about each message."""
    try:
        return [message._facts for message in messages]  # pyright: ignore[reportPrivateUsage]
    except AttributeError:
        # Mostly the last messages are new.
        for message in reversed(messages):
            if hasattr(message, "_facts"):
                break
            _find_facts(message)
    try:
        return [message._facts for message in messages]  # pyright: ignore[reportPrivateUsage]
    except AttributeError:
        return list(map(_find_facts, messages))


def find_traits(messages: Sequence[Message]) -> int:
    """Return the traits of all these messages together; few messages differ in theirs."""
    if len(messages) == 1:
        return _find_facts(messages[0]).traits
    return reduce(or_, {facts.traits for facts in read_facts(messages)}, 0)


def _find_facts(message: Message) -> MessageFacts:
    facts: MessageFacts | None = getattr(message, "_facts", None)
    if facts is None:
        facts = _collect_facts(message)
        if _is_fixed(message, facts):
            _set_facts(message, facts)
    return facts


def _is_fixed(message: Message, facts: MessageFacts) -> bool:
    """Whether nothing but the arguments of calls can change: a caller may give a list, or a class of their own."""
    contents: list[object] = [message.parts, *(result.content for result in facts.results)]
    return type(message) is Message and all(isinstance(each, (str, tuple)) for each in contents)


def _collect_facts(message: Message) -> MessageFacts:
    parts, is_user = message.parts, message.role == "user"
    if len(parts) == 1 and type(part := parts[0]) is Text and not part.cache and not part.seals:
        if _is_blank(part.text):
            return MessageFacts(HAS_OTHERS | IS_BLANK if is_user else HAS_OTHERS)
        is_plain = type(message) is Message and message.name is None and (is_user or message.role == "assistant")
        return MessageFacts(HAS_OTHERS | IS_PLAIN if is_plain else HAS_OTHERS)
    is_filled = any(not isinstance(part, Text) or not _is_blank(part.text) for part in parts)
    traits = 0 if not is_user or is_filled else IS_BLANK
    traits |= CHANGES_EFFORT if message.role == "system" and message.effort is not None else 0
    for part in parts:
        traits |= _find_traits(part)
    calls = tuple([part for part in parts if isinstance(part, ToolCall)]) if traits & HAS_CALLS else ()
    results = tuple([part for part in parts if isinstance(part, ToolResult)]) if traits & HAS_RESULTS else ()
    return MessageFacts(traits, calls, results)


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _find_traits(part: Part) -> int:
    traits = HAS_BREAKPOINTS if getattr(part, "cache", False) else 0
    if isinstance(part, (Thought, Refusal, ServerTool, UnknownPart)) or getattr(part, "seals", None):
        traits |= IS_BOUND
    match part:
        case ToolCall():
            return traits | HAS_CALLS | HAS_OTHERS
        case Thought():
            return traits | HAS_THOUGHTS | HAS_OTHERS | (HAS_WITHHELD if part.withheld else 0)
        case Image():
            return traits | HAS_PICTURES | HAS_MEDIA | HAS_OTHERS
        case File():
            return traits | HAS_MEDIA | HAS_OTHERS | (0 if part.id is None else HAS_FILE_IDS)
        case ToolResult():
            inner = 0
            for each in () if isinstance(part.content, str) else part.content:
                inner |= _find_traits(each)
            return traits | HAS_RESULTS | (inner & (HAS_PICTURES | HAS_MEDIA | HAS_FILE_IDS))
        case _:
            return traits | HAS_OTHERS


# --- messages ---------------------------------------------------------------------------------------------------------


class StoredResponse(msgspec.Struct, frozen=True):
    """The id under which a provider stored a turn and everything before it."""

    id: str
    origin: Origin | None = None


_PARTS = frozenset(get_args(Part))
_ROLES = frozenset(get_args(Role))


class Message(msgspec.Struct, JsonForm, FactsSlot, frozen=True):
    """One turn of one speaker: its parts in order.

    `Message("user", "hello")` and `Message("user", ["What is this?", Image("a.png")])` are read as they say. What
    cannot be sent raises ConfigError. `Message("assistant", ())` is empty, as a model's turn may be.
    """

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
        ) -> None: ...

    def __post_init__(self) -> None:
        # Almost always right, and this runs for each message of a history.
        if type(self.parts) is tuple and self.role in _ROLES:
            for part in self.parts:
                if type(part) not in _PARTS:
                    break
            else:
                return
        from asides.values.content import check_role, read_parts

        check_role(self.role)
        msgspec.structs.force_setattr(self, "parts", read_parts(self.role, self.parts))

    @property
    def text(self) -> str:
        """The text of the message, never its thinking."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

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
        return _find_facts(self).calls

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
    """The thinking with which the model's turn has begun. It is closed, and the model goes on with its answer. Only for
    hosts whose row says how (`Quirks.continues`)."""
    cache: bool | str = False
    """Ask the provider to cache the beginning that requests share; a text is the lifetime."""

    def __repr__(self) -> str:
        tools = [tool.name for tool in self.tools]
        return f"Prompt(messages={len(self.messages)}, tools={tools}, stream={self.stream})"
