"""Detects formats: the dialect of a response (`detect_dialect`), of messages (`split_formats`) or a whole history
(`detect_history`).

Every reader uses these functions. Bytes are framed as the decoders frame them, so a stream, a whole body and one that
breaks off are all detected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, Literal, TypeAlias

import msgspec

from asides import dialects
from asides.history.export import MessageFormat
from asides.values.errors import ConfigError, ConnectionLost, ProtocolError
from asides.wire.framing import Framing
from asides.wire.lenient import replace_invalid_text
from asides.wire.partial_json import partial
from asides.wire.sse import DONE

ImportFormat: TypeAlias = Literal[
    "openai_chat", "anthropic", "openai_responses", "gemini", "gemini_interactions", "bedrock", "cohere", "ollama"
]
"""A format of messages. It has the name of its dialect."""
HistoryFormat: TypeAlias = Literal["openai_chat", "anthropic", "openai_responses", "gemini", "asides"]
"""A format of histories that are repaired in place."""

_Document: TypeAlias = Mapping[str, Any]

_ANTHROPIC_EVENTS = frozenset({
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop",
})  # fmt: skip
_COHERE_EVENTS = frozenset({
    "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
    "tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end",
})  # fmt: skip
_COHERE_V1_EVENTS = frozenset({"stream-start", "text-generation", "tool-calls-generation", "stream-end"})
_BEDROCK_EVENTS = frozenset({
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop",
})  # fmt: skip
STREAM_EVENTS = _ANTHROPIC_EVENTS | _COHERE_EVENTS | _COHERE_V1_EVENTS | _BEDROCK_EVENTS
"""Names of stream events, for the dialects that name them."""
_ID_PREFIXES = {"chatcmpl": "openai_chat", "resp_": "openai_responses", "msg_": "anthropic"}
_GEMINI_FIELDS = ("candidates", "promptFeedback", "usageMetadata")


# --- responses: the marks of each dialect -----------------------------------------------------------------------------


def _is_responses(document: _Document) -> bool:
    kind = _get_text(document, "type")
    if kind.startswith("response."):
        return True
    if kind == "error" and "sequence_number" in document:
        return True
    items = document.get("output")
    return document.get("object") == "response" or (isinstance(items, list) and _has_any(items, "type"))


def _is_chat(document: _Document) -> bool:
    choices = document.get("choices")
    return isinstance(choices, list) and (_has_any(choices, "message") or _has_any(choices, "delta"))


def _is_anthropic(document: _Document) -> bool:
    kind, content = _get_text(document, "type"), document.get("content")
    if kind in _ANTHROPIC_EVENTS:
        return True
    is_message = kind == "message" or document.get("role") == "assistant"
    return is_message and isinstance(content, list) and (not content or _has_any(content, "type"))


def _is_gemini(document: _Document) -> bool:
    inner = document.get("response")
    if isinstance(inner, dict) and "candidates" in inner:
        return True
    return any(name in document for name in _GEMINI_FIELDS)


def _is_interaction(document: _Document) -> bool:
    kind = _get_text(document, "event_type")
    steps = document.get("steps")
    is_whole = isinstance(steps, list) and bool(steps) and all(isinstance(step, Mapping) for step in steps)
    return (
        kind.startswith(("interaction.", "step."))
        or document.get("object") == "interaction"
        or (is_whole and isinstance(steps, list) and any(_is_step(step) for step in steps))
    )


def _is_ollama(document: _Document) -> bool:
    has_text = isinstance(document.get("message"), dict) or isinstance(document.get("response"), str)
    return has_text and ("done" in document or "created_at" in document)


def _is_bedrock(document: _Document) -> bool:
    output = document.get("output")
    if isinstance(output, dict) and "message" in output:
        return True
    if any(isinstance(document.get(name), dict) for name in _BEDROCK_EVENTS):
        return True
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and "metrics" in metadata and "usage" in metadata


def _is_cohere(document: _Document) -> bool:
    if _get_text(document, "type") in _COHERE_EVENTS or _get_text(document, "event_type") in _COHERE_V1_EVENTS:
        return True
    if "generation_id" in document and "text" in document:
        return True
    message = document.get("message")
    return isinstance(message, dict) and "role" in message and ("finish_reason" in document or "usage" in document)


class _Marks(msgspec.Struct, frozen=True):
    fits: Callable[[_Document], bool]
    lacking: str
    """What is missing in a body of another dialect."""


# Most specific marks first.
_MARKS: dict[str, _Marks] = {
    "openai_chat": _Marks(_is_chat, "no `choices` with a `message` or a `delta`"),
    "openai_responses": _Marks(_is_responses, "no `object` that is response, no `output` items, no `response.…` event"),
    "anthropic": _Marks(_is_anthropic, "no `content` blocks of a message, no `content_block_…` event"),
    "gemini": _Marks(_is_gemini, "no `candidates`, `promptFeedback` or `usageMetadata`"),
    "gemini_interactions": _Marks(
        _is_interaction, "no `object` that is interaction, no `steps`, no `step.…` or `interaction.…` event"
    ),
    "bedrock": _Marks(_is_bedrock, "no `output` with a `message`, no `contentBlock…` event"),
    "ollama": _Marks(_is_ollama, "no `message` or `response` beside `done`"),
    "cohere": _Marks(_is_cohere, "no `message` beside `finish_reason`, no `content-…` event"),
}


def detect_response(document: _Document) -> str | None:
    """The dialect of a whole response or of a document of a stream; None if it has no dialect's marks."""
    return next((name for name, marks in _MARKS.items() if marks.fits(document)), None)


def _guess(document: _Document) -> str | None:
    """The dialect of an error, or of a document that breaks off early. Some errors look the same in several dialects;
    the most common one is chosen, and each of them reads the same message.
    """
    error, kind = document.get("error"), document.get("type")
    if kind in ("message", "ping") or (kind == "error" and isinstance(error, dict)):
        return "anthropic"
    if isinstance(error, dict):
        return "gemini" if isinstance(error.get("status"), str) and "code" in error else "openai_chat"
    if isinstance(error, str):
        return "ollama" if len(document) == 1 else "openai_chat"
    named = _get_text(document, "object").startswith(("chat.completion", "error"))
    if named or _can_be_chat(document.get("choices")) or "detail" in document:
        return "openai_chat"
    identity = _get_text(document, "id")
    for prefix, name in _ID_PREFIXES.items():
        if identity.startswith(prefix):
            return name
    if any(name.endswith("Exception") for name in document) or "__type" in document:
        return "bedrock"
    if isinstance(document.get("message") or document.get("Message"), str):
        return "cohere" if "id" in document else "bedrock"
    message = document.get("message")
    return "cohere" if isinstance(message, dict) and "id" in document else None


def _get_text(document: _Document, name: str) -> str:
    """The text in a field; "" for any other value."""
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _can_be_chat(choices: object) -> bool:
    """True unless these are the choices of legacy completions, which have `text` and are not supported."""
    return isinstance(choices, list) and not _has_any(choices, "text")


def _has_any(items: list[Any], name: str) -> bool:
    return any(isinstance(item, dict) and name in item for item in items)


# --- responses: bytes -------------------------------------------------------------------------------------------------


class DialectDetector:
    """Reads a body until its dialect is clear. `dialect` is None until then."""

    def __init__(self) -> None:
        self.dialect: str | None = None
        self._framing = Framing(lines=True, named=True)
        self._guess: str | None = None
        """The dialect if no later document is clearer."""
        self._fields: tuple[str, ...] | None = None
        """The fields of the first document."""
        self._broken = False

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        if self.dialect is None and not self._broken and data:
            self._read(lambda: self._framing.feed(data))

    def finish(self) -> str:
        """End the body and return its dialect. Raises ProtocolError if none fits, and ConnectionLost for an empty
        body.
        """
        if self.dialect is None and not self._broken:
            self._read(self._framing.finish)
        found = self.dialect or self._guess
        if found is None:
            raise self._explain()
        return found

    def _read(self, take: Callable[[], list[bytes]]) -> None:
        try:
            documents = take()
        except ProtocolError:
            self._broken = True  # The decoder reports the error; earlier documents may be enough to detect the dialect.
            return
        for document in documents:
            for value in _parse(document):
                if self.dialect is None:
                    self._judge(value)

    def _judge(self, document: _Document) -> None:
        if self._fields is None:
            self._fields = tuple(document)
        self.dialect = detect_response(document)
        if self.dialect is None:
            self._guess = self._guess or _guess(document)

    def _explain(self) -> ProtocolError | ConnectionLost:
        head = self._framing.head
        if not head:
            return ConnectionLost("the body is empty, so there is nothing to recognise. Record it again.")
        own = dialects.list_third_party()
        advice = "name the dialect" + (f" ({', '.join(own)} of your packages are never guessed)" if own else "")
        if self._fields is None:
            what = _describe_bytes(head, self._framing)
            return ProtocolError(f"the body is in no dialect that asides knows: {what}.", payload=head)
        tried = "; ".join(f"{name}: {marks.lacking}" for name, marks in _MARKS.items())
        return ProtocolError(
            f"the body is JSON, but in no dialect that asides knows. Tried {tried}. Check that it is a response "
            f"of a chat, or {advice}.",
            payload=head,
        )


def _parse(document: bytes) -> Iterator[_Document]:
    """The object in a document, or the objects of a list. An incomplete document is parsed as far as it goes."""
    if document == DONE:
        return
    text = replace_invalid_text(document)
    value: Any
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = partial(text.decode("utf-8", "replace"))
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and item:
            yield item


def _describe_bytes(head: bytes, framing: Framing) -> str:
    """A description of a body without a JSON object."""
    if head.startswith(b"HTTP/"):
        return "it begins with HTTP headers. Record only what follows them (curl without -i)"
    if head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x9c")):
        return "it is compressed. Decompress it first, or record it with Accept-Encoding: identity"
    if head.lstrip()[:1] == b"<":
        return "it is HTML or XML, such as the page of a proxy. Look at it, and check the base URL"
    if framing.looks_like_sse:
        return "it is a stream of events, and none of them holds a JSON object. Check that it is whole"
    if framing.form in ("json", "lines", "aws"):
        begins = "AWS frames do" if framing.form == "aws" else "JSON does"
        return f"it begins as {begins}, and holds no object with fields. Check that it is whole"
    return "it is neither JSON, nor lines of JSON, nor server-sent events, nor AWS frames. Look at it"


def detect_dialect(body: bytes) -> str:
    """The dialect of recorded bytes. Raises ProtocolError with the reason for each dialect that does not fit."""
    return detect_in_pieces((body,))[0]


def detect_in_pieces(pieces: Iterable[bytes]) -> tuple[str, Iterator[bytes]]:
    """The dialect of a body in pieces, and all of its pieces. Reads only as many pieces as needed."""
    detector = DialectDetector()
    read: list[bytes] = []
    rest = iter(pieces)
    for piece in rest:
        read.append(piece)
        detector.feed(piece)
        if detector.dialect is not None:
            break
    return detector.finish(), chain(read, rest)


# --- responses: documents of clients ----------------------------------------------------------------------------------


def is_choice(fields: Mapping[str, Any]) -> bool:
    """Whether it is one choice of a chat completion."""
    return isinstance(fields.get("message"), Mapping) and "index" in fields and "finish_reason" in fields


def is_candidate(fields: Mapping[str, Any]) -> bool:
    """Whether it is one candidate of Gemini."""
    content = fields.get("content")
    return isinstance(content, Mapping) and isinstance(content.get("parts"), list) and "role" not in fields


def is_piece(fields: Mapping[str, Any]) -> bool:
    """Whether it is a piece of a stream that cannot be a whole response: a chunk or an event."""
    if _get_text(fields, "type") in STREAM_EVENTS or not STREAM_EVENTS.isdisjoint(fields):
        return True
    if _get_text(fields, "type").startswith("response."):
        return True
    if set(fields) == {"metadata"} and detect_response(fields) is not None:
        return True  # the last event of Converse
    choices = fields.get("choices")
    if not isinstance(choices, list):
        return False
    is_whole = not has_deltas(fields) or any("message" in choice for choice in choices)
    return not is_whole or _get_text(fields, "object").endswith(".chunk")


def has_deltas(fields: Mapping[str, Any]) -> bool:
    """Whether this is a piece of a stream: an event, or a chat completion whose choices have a delta. Some hosts write
    one into whole responses too.
    """
    if "event_type" in fields:
        return True
    choices = fields.get("choices")
    choices = choices if isinstance(choices, list) else []
    return bool(choices) and all(isinstance(choice, Mapping) and "delta" in choice for choice in choices)


# --- messages: marks that only one format has -------------------------------------------------------------------------

_CHAT_ROLES = frozenset({"tool", "function"})
_CHAT_FIELDS = frozenset(
    {"tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning", "reasoning_details", "refusal"}
)
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "video_url"})
_BLOCKS = frozenset({"redacted_thinking", "tool_use", "tool_result", "server_tool_use"})
_ITEM_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file", "summary_text", "reasoning_text"})
_CONVERSE_BLOCKS = frozenset(
    {
        *("text", "image", "document", "video", "toolUse", "toolResult", "reasoningContent", "cachePoint"),
        *("guardContent", "citationsContent", "searchResult", "audio"),
    }
)
# Steps of interactions that no other format has.
_STEPS = frozenset(
    {
        *("user_input", "model_output", "thought", "function_result", "google_search_call", "google_search_result"),
        *("google_maps_call", "google_maps_result", "code_execution_call", "code_execution_result"),
        *("url_context_call", "url_context_result", "mcp_server_tool_call", "mcp_server_tool_result"),
    }
)
# Fields that Cohere or Ollama fill in their own way.
_OWN_FIELDS = frozenset({"tool_calls", "tool_plan", "thinking", "tool_name", "images"})


def find_formats(message: _Document) -> set[ImportFormat]:
    """The formats whose marks a message has; empty if it holds only text, which looks the same in every format.

    A cache breakpoint is not a mark: hosts of chat completions accept it too.
    """
    if len(message) == 2 and type(message.get("content")) is str and "role" in message:
        return set()  # the common case
    if isinstance(message.get("parts"), (list, tuple)) and "content" not in message:
        return {"gemini"}
    if _is_step(message):
        return {"gemini_interactions"}
    parts = _list_parts(message)
    if parts and all(isinstance(part, Mapping) and len(part) == 1 and _is_converse_block(part) for part in parts):
        return {"bedrock"}
    if isinstance(message.get("role"), str) and (own := _find_own_format(message, parts)) is not None:
        return {own}
    return {*_find_common_formats(message)}


def _is_step(message: _Document) -> bool:
    """Whether it is a step of an interaction. Its calls have objects as arguments, those of Responses have texts."""
    if "role" in message:
        return False
    kind = _get_text(message, "type")
    return kind in _STEPS or (kind == "function_call" and isinstance(message.get("arguments"), Mapping))


def _list_parts(message: _Document) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, (list, tuple)) else ()


def _is_converse_block(part: _Document) -> bool:
    """Whether it is a block of Converse: an object with one field, named for its kind."""
    return not _CONVERSE_BLOCKS.isdisjoint(part)


def _find_own_format(message: _Document, parts: Sequence[Any]) -> ImportFormat | None:
    """Cohere for a plan before calls; Ollama for its thinking, tool names, pictures and calls without ids."""
    if _OWN_FIELDS.isdisjoint(message):
        return None
    calls = message.get("tool_calls")
    calls = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    thinks = any(isinstance(part, Mapping) and isinstance(part.get("thinking"), str) for part in parts)
    if isinstance(message.get("tool_plan"), str) or (thinks and calls):
        return "cohere"
    has_own = isinstance(message.get("thinking"), str) or isinstance(message.get("tool_name"), str)
    has_pictures = isinstance(message.get("images"), list) and not parts
    nameless = any(isinstance(call.get("function"), Mapping) and not call.get("id") for call in calls)
    return "ollama" if has_own or nameless or (has_pictures and message["images"]) else None


def _find_common_formats(message: _Document) -> Iterator[MessageFormat]:
    if isinstance(message.get("type"), str) and message["type"] != "" and _is_item(message):
        yield "openai_responses"
        return
    if _get_text(message, "role") in _CHAT_ROLES or any(message.get(name) is not None for name in _CHAT_FIELDS):
        yield "openai_chat"
    for part in _list_parts(message):
        if isinstance(part, Mapping) and (found := _find_mark(part)) is not None:
            yield found


def _is_item(message: _Document) -> bool:
    # A response of Messages has a type and a role, too.
    return "role" not in message or (message["type"] == "message" and not _has_blocks(message))


def _has_blocks(message: _Document) -> bool:
    found = {_find_mark(part) for part in _list_parts(message) if isinstance(part, Mapping)}
    return "anthropic" in found or ("openai_responses" not in found and bool(found))


def _find_mark(part: _Document) -> MessageFormat | None:
    kind = _get_text(part, "type")
    if kind in _ITEM_PARTS:
        return "openai_responses"
    if kind in _CHAT_PARTS:
        return "openai_chat"
    if kind in _BLOCKS or isinstance(part.get("source"), Mapping):
        return "anthropic"
    if kind == "thinking":
        # One chat completions provider puts a list of texts there.
        return "openai_chat" if isinstance(part.get("thinking"), (list, tuple)) else "anthropic"
    return None


# --- messages: single dicts -------------------------------------------------------------------------------------------

_CHAT_CONTENT = frozenset(
    {
        *("input_text", "image_url", "input_image", "video_url", "input_video", "audio_url", "input_audio"),
        *("file", "input_file"),
    }
)
_CONTENT_TYPES = _CHAT_CONTENT | {"text", "image", "document"}
_GEMINI_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")


def is_content(fields: _Document) -> bool:
    """Whether a dict is one part of content: text, a picture or a file."""
    kind = fields.get("type")
    is_typed = isinstance(kind, str) and kind in _CONTENT_TYPES
    is_media = "type" not in fields and any(isinstance(fields.get(name), Mapping) for name in _GEMINI_MEDIA)
    return "role" not in fields and (is_typed or is_media)


_ITEMS = frozenset({"function_call", "function_call_output", "reasoning", "item_reference"})
# Fields of responses, and fields that clients add to messages.
_OTHER_FIELDS = frozenset(
    {"parts", "stop_reason", "usage", "thinking_blocks", "provider_specific_fields", "additional_kwargs", "data"}
)


def is_message(fields: _Document) -> bool:
    """Whether a dict is a message, an item or a part of content without fields that clients add."""
    kind = fields.get("type", "")
    is_item = isinstance(kind, str) and ("role" in fields or kind in _ITEMS or kind in _STEPS)
    return (is_item or is_content(fields)) and _OTHER_FIELDS.isdisjoint(fields)


def find_part_format(part: object) -> ImportFormat:
    """The format of one part of content, outside of a message."""
    if not isinstance(part, Mapping):
        return "anthropic"
    if "type" not in part and any(name in part for name in ("text", *_GEMINI_MEDIA)):
        return "gemini"
    is_chat = _get_text(part, "type") in _CHAT_CONTENT and not isinstance(part.get("source"), Mapping)
    return "openai_chat" if is_chat else "anthropic"


# --- messages of other libraries --------------------------------------------------------------------------------------

_LANGCHAIN_KINDS = frozenset({"human", "ai", "system", "tool", "function", "chat", "remove"})
_LANGCHAIN_FIELDS = ("additional_kwargs", "response_metadata")


def find_langchain_kind(fields: _Document) -> str | None:
    """The kind of a LangChain message ("human", "ai" …); None for other dicts."""
    kind = fields.get("type")
    if not isinstance(kind, str) or ("role" in fields and kind != "chat"):
        return None
    name = kind.removesuffix("MessageChunk").removesuffix("Message").lower()
    if name not in _LANGCHAIN_KINDS:
        return None
    # No other format has content under these types and no role; a result has the id of its call. The others need one of
    # LangChain's fields beside them.
    is_named = name in ("human", "ai") or (name == "tool" and "tool_call_id" in fields)
    is_named = is_named and "content" in fields
    return name if is_named or any(field in fields for field in _LANGCHAIN_FIELDS) else None


def find_pydantic_ai_kind(fields: _Document) -> str | None:
    """ "request" or "response" for a message of pydantic-ai; None for other dicts."""
    kind, parts = fields.get("kind"), fields.get("parts")
    if kind not in ("request", "response") or not isinstance(parts, list):
        return None
    return str(kind) if all(isinstance(part, Mapping) and "part_kind" in part for part in parts) else None


# --- messages: lists --------------------------------------------------------------------------------------------------

Run: TypeAlias = tuple[ImportFormat, int, list[_Document]]
"""Messages of one format in a row: the format, the place of the first message, and the messages."""


def split_formats(messages: Sequence[_Document], start: int = 0) -> Iterator[Run]:
    """Split a list of messages by their formats. `start` is the place of the first.

    A list of one library has one format. Gemini's contents are always separated from others. A list with the marks of
    several other formats is split only where each message has the marks of one; otherwise it was written for a host of
    chat completions, which accept the most.
    """
    found = [find_formats(message) for message in messages]
    all_found: set[ImportFormat] = set().union(*found)
    if len(all_found) < 2 and ("gemini" not in all_found or all(found)):
        if messages:
            yield _choose_format(all_found), start, list(messages)
        return
    place = 0
    for _, group in groupby(found, lambda formats: "gemini" in formats):
        formats = list(group)
        yield from _split_run(messages[place : place + len(formats)], formats, start + place)
        place += len(formats)


def _split_run(run: Sequence[_Document], found: list[set[ImportFormat]], start: int) -> Iterator[Run]:
    all_found: set[ImportFormat] = set().union(*found)
    if len(all_found) < 2 or any(len(each) > 1 for each in found) or not _has_own_marks(run, all_found):
        yield _choose_format(all_found), start, list(run)
        return
    first, form = 0, next(iter(next(each for each in found if each)))
    for place, each in enumerate(found):
        if each and form not in each:
            yield form, start + first, list(run[first:place])
            first, form = place, next(iter(each))
    yield form, start + first, list(run[first:])


def _choose_format(found: set[ImportFormat]) -> ImportFormat:
    """The only format; of several, a rare one; otherwise chat completions."""
    if len(found) == 1:
        return next(iter(found))
    rare: tuple[ImportFormat, ...] = ("gemini", "gemini_interactions", "bedrock", "cohere", "ollama")
    for form in rare:
        if form in found:
            return form
    return "openai_chat"


def _has_own_marks(run: Sequence[_Document], found: set[ImportFormat]) -> bool:
    """False if messages of chat completions contain Anthropic's marks, but no blocks that hosts of chat completions
    refuse.
    """
    if found != {"openai_chat", "anthropic"}:
        return True
    parts = [part for message in run for part in _list_parts(message) if isinstance(part, Mapping)]
    return any(part.get("type") in ("tool_use", "tool_result") for part in parts)


# --- histories --------------------------------------------------------------------------------------------------------


def detect_history(messages: Sequence[_Document], fields: _Document, list_name: str, preferred: str) -> HistoryFormat:
    """The format of a history. Raises ConfigError if two messages have the marks of two formats.

    `fields` is the object around the list, which is called `list_name`. `preferred` is the format of plain text.
    """
    if "asides" in fields:
        return "asides"
    with_parts = [each["parts"] for each in messages if isinstance(each.get("parts"), list) and "content" not in each]
    if with_parts:
        ours = any(isinstance(part, Mapping) and "type" in part for parts in with_parts for part in parts)
        return "asides" if ours else "gemini"
    if list_name == "contents":
        return "gemini"
    found: dict[MessageFormat, int] = {}
    for place, message in enumerate(messages):
        for form in _find_common_formats(message):
            found.setdefault(form, place)
    if len(found) > 1:
        marked = " and ".join(f"messages[{place}] of the format {form!r}" for form, place in found.items())
        raise ConfigError(
            f"the messages are not of one format: {marked}. Name it with format_name=, or correct the list."
        )
    if found:
        return next(iter(found))
    if any(isinstance(part, Mapping) and "cache_control" in part for each in messages for part in _list_parts(each)):
        return "anthropic"
    if list_name in ("input", "output"):
        return "openai_responses"
    if "system" in fields or preferred == "anthropic":
        return "anthropic"
    return "openai_responses" if preferred == "openai_responses" and not fields else "openai_chat"
