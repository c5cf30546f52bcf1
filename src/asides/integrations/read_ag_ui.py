"""Reads the messages that a client of AG-UI posts (`RunAgentInput`, protocol 1.0): dicts, JSON, or the values of the
package `ag-ui-protocol`, which is not needed for it.

Messages of one step become one turn, whatever order a client keeps them in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from asides.integrations.ag_ui import ACTIVITY_FILE
from asides.integrations.read_ui_parts import (
    TurnReader,
    find_messages,
    finish_history,
    get_mapping,
    get_text,
    make_call,
    make_media,
    read_base64,
    read_media,
)
from asides.integrations.ui_state import PostedState
from asides.integrations.vercel_ui import METADATA_KEY
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import Commentary, File, Image, Part, Refusal, Text, ToolResult, read_arguments

# The ids that AgUiWriter makes: all messages of a step begin alike.
_STEP = re.compile(r"(.+:\d+)-\d+")
_DEFAULT_TYPES = {"image": "image/png", "audio": "audio/mpeg", "video": "video/mp4", "document": "application/pdf"}


def read_ag_ui_messages(given: object, *, state: PostedState, system: bool) -> tuple[Message, ...]:
    """Read a list of AG-UI messages, or the input of a run that holds it."""
    reader = _HistoryReader(state, system=system)
    for place, message in enumerate(find_messages(given)):
        try:
            reader.add(message)
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None
    return finish_history(reader.finish())


def list_call_ids(run: Mapping[str, Any]) -> list[str]:
    """The ids of all calls in the messages of a run's input."""
    messages: Any = run.get("messages")
    ids: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        calls: Any = message.get("toolCalls") if isinstance(message, Mapping) else None
        found = [call.get("id") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
        ids += [id_ for id_ in found if isinstance(id_, str)]
    return ids


class _HistoryReader:
    def __init__(self, state: PostedState, *, system: bool) -> None:
        self._state = state
        self._system = system
        self._messages: list[Message] = []
        self._turn: TurnReader | None = None
        self._step: str | None = None
        self._has_results = False
        self._names: dict[str, str] = {}

    def add(self, message: Any) -> None:
        if not isinstance(message, Mapping):
            raise ConfigError(f"a message is an object with a role, not {describe_type(message)}.")
        match message.get("role"):
            case "user":
                self._end_turn()
                self._messages.append(Message("user", tuple(_read_content(message.get("content")))))
            case "reasoning":
                facts = get_mapping(message.get("metadata"), METADATA_KEY)
                turn = self._find_turn(message)
                turn.add_thought(get_text(message, "content"), facts.get("kind"), message.get("encryptedValue"))
            case "assistant":
                self._add_assistant(message)
            case "tool":
                self._add_result(message)
            case "activity":
                self._add_activity(message)
            case "system" | "developer" if self._system:
                self._end_turn()
                self._messages.append(Message("system", (Text(get_text(message, "content")),)))
            case "system" | "developer" as role:
                raise ConfigError(
                    f"it is a {role} message, and a client could write anything into it. Set system= on the "
                    "server, or pass system=True if you trust the client."
                )
            case role:
                raise ConfigError(
                    f"the role {role!r} is not known; it is developer, system, user, assistant, tool, activity or "
                    "reasoning."
                )

    def finish(self) -> list[Message]:
        self._end_turn()
        return self._messages

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._messages += self._turn.build()
        self._turn = self._step = None
        self._has_results = False

    def _find_turn(self, message: Mapping[str, Any]) -> TurnReader:
        """The turn that a message of the model belongs to. After results the next turn begins, unless the id shows that
        the client has put a result between the messages of one step.
        """
        id_ = message.get("id")
        found = _STEP.fullmatch(id_) if isinstance(id_, str) else None
        step = None if found is None else found[1]
        is_same = step == self._step if step is not None and self._step is not None else not self._has_results
        if self._turn is None or not is_same:
            self._end_turn()
            self._turn = TurnReader(self._state)
        self._step = step or self._step
        return self._turn

    def _add_assistant(self, message: Mapping[str, Any]) -> None:
        turn = self._find_turn(message)
        content, calls = message.get("content"), message.get("toolCalls") or []
        if content is not None and not isinstance(content, str):
            raise ConfigError(f"the content of the assistant is text, not {describe_type(content)}.")
        facts = get_mapping(message.get("metadata"), METADATA_KEY)
        if content and facts.get("refusal") is True:
            turn.add(Refusal(content))
        elif content and facts.get("commentary") is True:
            turn.add(Commentary(content))
        else:
            turn.add_text(content or "", message.get("encryptedValue"))
        if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
            raise ConfigError("toolCalls is a list of objects.")
        for call in calls:
            self._add_call(call, turn)

    def _add_call(self, call: Mapping[str, Any], turn: TurnReader) -> None:
        call_id, function = get_text(call, "id"), get_mapping(call, "function")
        name, raw = get_text(function, "name"), get_text(function, "arguments")
        custom = get_mapping(call.get("metadata"), METADATA_KEY).get("custom") is True
        arguments = None if custom else read_arguments(raw)
        given = raw if arguments is None else arguments
        self._names[call_id] = name
        turn.add_call(make_call(call_id, name, given, custom=custom), call.get("encryptedValue"))

    def _add_result(self, message: Mapping[str, Any]) -> None:
        call_id, content = get_text(message, "toolCallId"), message.get("content")
        error = message.get("error")
        is_error = isinstance(error, str) or get_mapping(message.get("metadata"), METADATA_KEY).get("error") is True
        read: Any = content if isinstance(content, str) else tuple(_read_content(content))
        if not read and isinstance(error, str):
            read = error
        result = ToolResult(call_id, read, self._names.get(call_id), is_error=is_error)
        if self._turn is None:
            self._messages.append(Message("tool", (result,)))
        else:
            self._turn.add_result(result)
            self._has_results = True

    def _add_activity(self, message: Mapping[str, Any]) -> None:
        """Activities are for the eye, but for the files that a model made."""
        content = get_mapping(message, "content")
        if message.get("activityType") == ACTIVITY_FILE and isinstance(url := content.get("url"), str):
            self._find_turn(message).add(read_media(url, content.get("mediaType")))


def _read_content(content: object) -> list[Part]:
    if isinstance(content, str):
        if not content:
            raise ConfigError("the message is empty.")
        return [Text(content)]
    if not isinstance(content, list) or not content:
        raise ConfigError(f"content must be text or a list of parts, not {describe_type(content)}.")
    return [_read_part(part) for part in content]


def _read_part(part: object) -> Text | Image | File:
    if not isinstance(part, Mapping):
        raise ConfigError(f"a content part is an object with a type, not {describe_type(part)}.")
    match part.get("type"):
        case "text":
            return Text(get_text(part, "text"))
        case "image" | "audio" | "video" | "document" as kind:
            return _read_source(get_mapping(part, "source"), _DEFAULT_TYPES[kind])
        case "binary":  # before protocol 1.0
            return _read_source(_name_source(part), "application/octet-stream", part.get("filename"))
        case kind:
            raise ConfigError(f"a content part of type {kind!r} is not known.")


def _name_source(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = next((kind for kind in ("data", "url", "id") if isinstance(part.get(kind), str)), "")
    return {"type": "file" if kind == "id" else kind, "value": part.get(kind), "mimeType": part.get("mimeType")}


def _read_source(source: Mapping[str, Any], default: str, name: object = None) -> Image | File:
    value, given = get_text(source, "value"), source.get("mimeType")
    media_type = given if isinstance(given, str) and given else default
    match source.get("type"):
        case "data":
            return make_media(read_base64(value), media_type, name)
        case "url":
            return read_media(value, media_type, name)
        case "file":
            return File(id=value, media_type=media_type)
        case kind:
            raise ConfigError(f"a source of type {kind!r} is not known; it is data, url or file.")
