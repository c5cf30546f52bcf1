"""Encodes a planned prompt as a chat request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

In order: the request, messages.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    encode_tool,
    merge_fields,
    report_cache,
    report_unsupported,
    write_sampling,
)
from asides.dialects.media import find_media_type, read_text_file
from asides.dialects.message_encoder import (
    Wire,
    add_notice,
    encode_flat,
    leave_out,
    put_system_first,
)
from asides.dialects.ollama.wire import SAMPLING, SAMPLING_BESIDE
from asides.dialects.verbatim import WholeFields, write_fields, write_source
from asides.providers.provider import Target
from asides.providers.switches.write import write as write_thinking
from asides.values.errors import Unsupported
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Thought, join_thoughts


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether a field means the same: some are optional, and a single stop text needs no list."""
    return (name in _OPTIONAL_FIELDS and theirs is None) or (name == "stop" and bool(ours == [theirs]))


_WHOLE = WholeFields(("tools", "options.stop"), schemas=frozenset({"parameters"}), same=_is_same)


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    report_cache(prompt, notices)
    body = _build_body(prompt, target, notices)
    accept = "application/json" if body.get("stream") is False else "application/x-ndjson"
    return build_post(target, build_url(target), accept, body), tuple(notices)


def build_url(target: Target) -> str:
    """Build the address. The base URL may be one for programs that use the server's other dialects."""
    base = urlsplit(target.base_url)
    path = base.path.rstrip("/")
    for end in (target.quirks.path, "/v1", "/api"):
        path = path.removesuffix(end)
    return urlunsplit((base.scheme, base.netloc, path + target.quirks.path, base.query, ""))


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    # The model and the messages come first, so that a longer conversation begins with the bytes of a shorter one.
    body: dict[str, Any] = {"model": target.model, "messages": encode_messages(prompt, notices)}
    if tools := _encode_tools(prompt, notices):
        body["tools"] = tools
    if isinstance(prompt.output, OutputSchema):
        body["format"] = prompt.output.schema
    elif prompt.output == "json":
        body["format"] = "json"
    options, beside = _encode_sampling(prompt, notices)
    if options:
        body["options"] = options
    body |= beside
    thinking, told = write_thinking(prompt.thinking, target, "ollama", source=prompt.source)
    notices += told
    body |= thinking
    # A request without the field streams here.
    body["stream"] = prompt.stream
    notices += report_unsupported(prompt, "metadata", "user", "parallel_tool_calls")
    return write_fields(prompt, merge_fields(body, prompt.extra), "ollama", _WHOLE, notices)


def _encode_tools(prompt: Prompt, notices: list[Notice]) -> list[dict[str, Any]]:
    match prompt.tool_choice:
        case None | "auto":
            pass
        case "none":
            return []
        case _:
            detail = "this dialect cannot force a call; the model chooses"
            notices.append(Notice("tool_choice_adjusted", detail, "tool_choice", prompt.tool_choice, "auto"))
    return [encode_tool(tool) for tool in prompt.tools]


def _encode_sampling(prompt: Prompt, notices: list[Notice]) -> tuple[dict[str, Any], dict[str, Any]]:
    given = write_sampling(prompt, SAMPLING | SAMPLING_BESIDE, notices)
    beside = {name: given.pop(name) for name in SAMPLING_BESIDE.values() if name in given}
    options = given
    if prompt.max_tokens is not None:
        options["num_predict"] = prompt.max_tokens
    if prompt.stop:
        options["stop"] = list(prompt.stop)
    return options, beside


# --- messages -------------------------------------------------------------------------------------------------------


_OPTIONAL_FIELDS = frozenset({"id", "type", "tool_call_id", "tool_name"})


def encode_messages(prompt: Prompt, notices: list[Notice]) -> list[Wire]:
    """Encode every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    encoder = _MessageEncoder(notices)
    return encode_flat(
        put_system_first(prompt),
        notices,
        restore=partial(write_source, dialect="ollama", same=_is_same),
        user=encoder.encode_user,
        assistant=encoder.encode_assistant,
        tool_result=encoder.encode_tool_result,
    )


class _MessageEncoder:
    """Encodes the messages of one history, with the calls so far."""

    def __init__(self, notices: list[Notice]) -> None:
        self.notices = notices
        self.called: dict[str, str] = {}
        """The names of the tools that were called, by the ids of the calls."""

    def encode_user(self, _: Message, parts: list[Part]) -> Wire:
        return {"role": "user", **_encode_parts(parts, "user", self.notices)}

    def encode_tool_result(self, result: ToolResult) -> Wire:
        parts = (Text(result.content),) if isinstance(result.content, str) else result.content
        encoded: Wire = {"role": "tool", **_encode_parts(parts, "tool", self.notices)}
        # The server matches results by the name of the tool; newer servers also by the id of the call.
        if name := result.name or self.called.get(result.call_id):
            encoded["tool_name"] = name
        encoded["tool_call_id"] = result.call_id
        return encoded

    def encode_assistant(self, message: Message) -> list[Wire]:
        thoughts: list[str] = []
        texts: list[str] = []
        images: list[str] = []
        calls: list[Wire] = []
        for part in message.parts:
            match part:
                case Thought():
                    thoughts.append(part.text)
                case Text() | Refusal():
                    texts.append(part.text)  # this dialect has no field for refusals
                case Image():
                    images.append(_encode_image(part))
                case ToolCall():
                    calls.append(self.encode_tool_call(part))
                case _:
                    leave_out(part, "assistant", self.notices)
        content, thinking = "".join(texts), join_thoughts(thoughts)
        if not content and not calls and not thinking and not images:
            add_notice(self.notices, "message_not_sent", "an assistant message without content was left out")
            return []
        more = {"thinking": thinking, "images": images, "tool_calls": calls}
        return [{"role": "assistant", "content": content, **{name: value for name, value in more.items() if value}}]

    def encode_tool_call(self, call: ToolCall) -> Wire:
        self.called[call.id] = call.name
        if call.raw_arguments is not None:
            detail = "arguments that are not a JSON object cannot be sent in this dialect"
            add_notice(self.notices, "arguments_not_sent", detail)
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _encode_parts(parts: Iterable[Part], role: str, notices: list[Notice]) -> Wire:
    """Encode parts as fields of a message: one text, and the images beside it."""
    texts: list[str] = []
    images: list[str] = []
    for part in parts:
        match part:
            case Text():
                texts.append(part.text)
            case Image():
                images.append(_encode_image(part))
            case File() if (text := read_text_file(part)) is not None:
                texts.append(text)
            case File() if role == "user":
                raise Unsupported(f"files are text here, not {find_media_type(part)}; convert it first.")
            case _:
                leave_out(part, role, notices)
    encoded: Wire = {"content": "\n\n".join(texts)}
    return {**encoded, "images": images} if images else encoded


def _encode_image(image: Image) -> str:
    if image.data is not None:
        return b64encode(image.data).decode()
    url = image.url or ""
    if url.startswith("data:") and ";base64," in url:
        return url.partition(";base64,")[2]
    raise Unsupported("this server takes pictures by their bytes, not by address; give Image(data=…).")
