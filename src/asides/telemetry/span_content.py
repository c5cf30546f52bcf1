"""Prompts, answers and tool calls in spans, if the user turned that on: JSON by the GenAI conventions.

Thinking is in separate parts, and only of the kinds that the visibility of `trace` allows. Seals, the bytes of images
and files, and parts that a provider made for itself are never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from asides.flows.call import Call
from asides.providers.credentials import collect_secrets
from asides.values.messages import Message
from asides.values.parts import Commentary, File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult
from asides.values.redaction import Redact, build_redactor
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.visibility import DEFAULT_VISIBILITY, Visibility

Json = dict[str, Any]

MOST_CHARACTERS = 32_768
"""The most characters of one text. Collectors refuse large spans."""
MOST_MESSAGES = 100
"""The most messages of a prompt: the last ones, since an agent sends the whole conversation with each step."""


class ContentWriter:
    """Writes the content of one call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._visibility: Visibility = call.policy.visibility or DEFAULT_VISIBILITY
        self._redact: Redact = build_redactor(collect_secrets(call.target, call.key))

    def write_prompt(self) -> dict[str, str]:
        """The attributes of a prompt."""
        prompt = self._call.prompt
        attributes: dict[str, Any] = {}
        if prompt.system:
            attributes["gen_ai.system_instructions"] = self._encode([_write_text(prompt.system)])
        messages = prompt.messages[-MOST_MESSAGES:]
        attributes["gen_ai.input.messages"] = self._encode([self._write_message(each) for each in messages])
        if left_out := len(prompt.messages) - len(messages):
            attributes["asides.content.messages_left_out"] = left_out
        return attributes

    def write_reply(self, reply: Reply) -> dict[str, str]:
        """The attribute of a reply."""
        written = {"role": "assistant", "parts": self._write_parts(reply.parts), "finish_reason": reply.stop.reason}
        return {"gen_ai.output.messages": self._encode([written])}

    def _write_message(self, message: Message) -> Json:
        return {"role": message.role, "parts": self._write_parts(message.parts)}

    def _write_parts(self, parts: Iterable[Part]) -> list[Json]:
        return [written for part in parts if (written := self._write_part(part)) is not None]

    def _write_part(self, part: Part) -> Json | None:
        if isinstance(part, (Text, Refusal)):
            return _write_text(part.text)
        if isinstance(part, Thought):
            if not part.text or not self._visibility.allows("trace", part.kind):
                return None
            return {"type": "reasoning", "content": _cut(part.text)}
        if isinstance(part, Commentary):
            return {"type": "commentary", "content": _cut(part.text)}
        if isinstance(part, ToolCall):
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": _cut(write_arguments(part))}
        if isinstance(part, ToolResult):
            return {"type": "tool_call_response", "id": part.call_id, "response": _cut(write_result(part.content))}
        if isinstance(part, (Image, File)):
            return _write_media(part)
        # What a provider made for itself may hold thinking and seals.
        return {"type": "server_tool", "name": part.name} if isinstance(part, ServerTool) else {"type": "unknown"}

    def _encode(self, value: Sequence[Any]) -> str:
        return self._redact(msgspec.json.encode(value).decode())


def write_arguments(call: ToolCall) -> str:
    """The arguments of a call as JSON, or as the model wrote them."""
    if call.raw_arguments is not None:
        return call.raw_arguments
    return msgspec.json.encode(call.arguments, enc_hook=str).decode()


def write_result(content: str | Sequence[Text | Image | File]) -> str:
    """The text of a tool's result."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text if isinstance(part, Text) else f"({part.media_type})" for part in content)


def _write_text(text: str) -> Json:
    return {"type": "text", "content": _cut(text)}


def _write_media(part: Image | File) -> Json:
    modality = "image" if isinstance(part, Image) else "file"
    return {"type": modality, "mime_type": part.media_type}


def _cut(text: str) -> str:
    rest = len(text) - MOST_CHARACTERS
    return text if rest <= 0 else f"{text[:MOST_CHARACTERS]} … ({rest} more characters)"
