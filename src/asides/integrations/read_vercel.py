"""Reads the messages that `useChat` of Vercel's AI SDK posts (`UIMessage`s of npm package `ai`, versions 5 to 7).

Parts for the eye alone (sources, `data-*`) are left out, as the SDK does for models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asides.integrations.read_ui_parts import (
    TurnReader,
    encode_json,
    find_messages,
    finish_history,
    get_mapping,
    get_text,
    make_call,
    read_media,
)
from asides.integrations.ui_state import PostedState
from asides.integrations.vercel_ui import METADATA_KEY
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import Commentary, File, Image, Part, Refusal, Text, ToolResult

_DENIED = "The user did not allow this call."


def read_ui_messages(given: object, *, state: PostedState, system: bool) -> tuple[Message, ...]:
    """Read a list of UI messages, or the body that holds it."""
    messages: list[Message] = []
    for place, message in enumerate(find_messages(given)):
        try:
            messages += _read_message(message, state, system=system)
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None
    return finish_history(messages)


def _read_message(message: Any, state: PostedState, *, system: bool) -> list[Message]:
    if not isinstance(message, Mapping):
        raise ConfigError(f"a UI message is an object with a role and parts, not {describe_type(message)}.")
    role = message.get("role")
    parts: Any = message.get("parts")
    if parts is None and isinstance(message.get("content"), str):
        parts = [{"type": "text", "text": message["content"]}]
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise ConfigError("a UI message has a list of parts, each an object.")
    match role:
        case "user":
            return _read_user(parts)
        case "assistant":
            return _read_assistant(parts, state)
        case "system" if system:
            return [Message("system", (Text("".join(get_text(part, "text") for part in _find(parts, "text"))),))]
        case "system":
            raise ConfigError(
                "it is a system message, and a browser could write anything into it. Set system= on the server, "
                "or pass system=True if you trust the front end."
            )
        case _:
            raise ConfigError(f"the role {role!r} is not known; it is system, user or assistant.")


def _find(parts: list[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [part for part in parts if part.get("type") == kind]


def _read_user(parts: list[Mapping[str, Any]]) -> list[Message]:
    content: list[Part] = []
    for part in parts:
        match part.get("type"):
            case "text":
                if text := get_text(part, "text"):
                    content.append(Text(text))
            case "file":
                content.append(_read_file(part))
            case str():
                pass  # for the eye alone
            case _:
                raise ConfigError("a part has no type.")
    if not content:
        raise ConfigError("the user's message has neither text nor a file.")
    return [Message("user", tuple(content))]


def _read_file(part: Mapping[str, Any]) -> Image | File:
    return read_media(get_text(part, "url"), part.get("mediaType"), part.get("filename"))


def _read_assistant(parts: list[Mapping[str, Any]], state: PostedState) -> list[Message]:
    """The turns of one message: each step is one."""
    messages: list[Message] = []
    turn = TurnReader(state)
    for part in parts:
        kind = part.get("type")
        facts = get_mapping(part.get("providerMetadata"), METADATA_KEY)
        if kind == "step-start":
            messages += turn.build()
            turn = TurnReader(state)
        elif kind == "text" and facts.get("refusal") is True:
            turn.add(Refusal(get_text(part, "text")))
        elif kind == "text" and facts.get("commentary") is True:
            turn.add(Commentary(get_text(part, "text")))
        elif kind == "text" and facts.get("moved") is True:
            pass  # it comes again, as the thought that it is
        elif kind == "text":
            turn.add_text(get_text(part, "text"), facts.get("state"))
        elif kind == "reasoning":
            turn.add_thought(get_text(part, "text"), facts.get("kind"), facts.get("state"))
        elif kind == "file":
            turn.add(_read_file(part))
        elif kind == "dynamic-tool":
            _read_tool(part, get_text(part, "toolName"), turn)
        elif isinstance(kind, str):
            if kind.startswith("tool-"):
                _read_tool(part, kind[len("tool-") :], turn)
        else:
            raise ConfigError("a part has no type.")
    return [*messages, *turn.build()]


def _read_tool(part: Mapping[str, Any], name: str, turn: TurnReader) -> None:
    state, call_id = part.get("state"), get_text(part, "toolCallId")
    if state == "input-streaming":
        return  # the stream ended inside its arguments, so it was never called
    token = get_mapping(part.get("callProviderMetadata"), METADATA_KEY).get("state")
    if part.get("providerExecuted") is True:
        turn.add_server_tool(token)
        return
    given = part.get("input")
    if given is None and state == "output-error":
        given = part.get("rawInput")
    turn.add_call(make_call(call_id, name, given), token)
    if (result := _read_result(part, call_id, name)) is not None:
        turn.add_result(result)


def _read_result(part: Mapping[str, Any], call_id: str, name: str) -> ToolResult | None:
    approval = get_mapping(part, "approval")
    match part.get("state"):
        case "output-available":
            return ToolResult(call_id, _read_output(part.get("output")), name)
        case "output-error":
            return ToolResult(call_id, get_text(part, "errorText"), name, is_error=True)
        case "output-denied":
            pass
        case "approval-responded" if approval.get("approved") is False:
            pass
        case _:
            return None
    reason = approval.get("reason")
    words = f"{_DENIED} The reason: {reason}" if isinstance(reason, str) and reason else _DENIED
    return ToolResult(call_id, words, name, is_error=True)


def _read_output(output: object) -> str | tuple[Text | Image | File, ...]:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and output and all(_is_result_part(part) for part in output):
        return tuple(Text(part["text"]) if part["type"] == "text" else _read_file(part) for part in output)
    return "" if output is None else encode_json(output)


def _is_result_part(part: object) -> bool:
    """Whether it is a part of a result as `vercel` writes them."""
    if not isinstance(part, Mapping):
        return False
    if part.get("type") == "text":
        return set(part) == {"type", "text"} and isinstance(part["text"], str)
    return part.get("type") == "file" and set(part) == {"type", "mediaType", "url"} and isinstance(part["url"], str)
