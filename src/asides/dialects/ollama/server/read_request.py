"""A client's chat request as a prompt: `read(body) → ServedRequest`. What is not ours to understand stays in `extra`.

Not here: what is answered (serve).
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import RequestFields, read_sampling
from asides.values.errors import ConfigError
from asides.values.messages import (
    Image,
    Message,
    OutputSchema,
    Part,
    Prompt,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    read_arguments,
)
from asides.values.thinking import Thinking, Thought, read_thinking
from asides.values.tools import Tool, read_tool

_SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repeat_penalty": "repetition_penalty",
    "seed": "seed",
}


def read(body: bytes) -> ServedRequest:
    """The request in these bytes. Raises ConfigError with words for whoever sent it."""
    fields = RequestFields.parse_body(body)
    model = fields.take_model()
    messages = _messages(fields)
    system = None
    if messages and messages[0].role == "system":
        system, messages = messages[0].text or None, messages[1:]
    # Unsaid means streamed here.
    stream = fields.take("stream", bool)
    stream = True if stream is None else stream
    options = fields.take_object("options")
    prompt = Prompt(
        messages,
        system=system,
        thinking=_thinking(fields),
        tools=_tools(fields),
        output=_output(fields),
        max_tokens=_limit(options),
        sampling=_sampling(options, fields),
        stop=_stop(options),
        stream=stream,
    )
    fields.put_back("options", options)
    return ServedRequest(msgspec.structs.replace(prompt, extra=fields.remaining), model, stream, include_usage=True)


def _thinking(fields: RequestFields) -> Thinking:
    think: object = fields.remaining.pop("think", None)
    if think is None:
        return Thinking()
    if not isinstance(think, (bool, str)):
        raise ConfigError("think is true, false, or low, medium, high or max.")
    return read_thinking(think)[0]


def _limit(options: RequestFields) -> int | None:
    limit = options.take("num_predict", int)
    # Below zero means without end.
    return None if limit is None or limit < 0 else limit


def _sampling(options: RequestFields, fields: RequestFields) -> Sampling:
    given = {ours: options.remaining.pop(theirs) for theirs, ours in _SAMPLING.items() if theirs in options.remaining}
    given |= {name: fields.remaining.pop(name) for name in ("logprobs", "top_logprobs") if name in fields.remaining}
    return read_sampling(given)


def _stop(options: RequestFields) -> tuple[str, ...]:
    if isinstance(options.remaining.get("stop"), str):
        return (options.remaining.pop("stop"),)
    return tuple(options.take("stop", list[str]) or ())


def _output(fields: RequestFields) -> OutputSchema | Literal["json"] | None:
    match fields.remaining.get("format"):
        case "json":
            del fields.remaining["format"]
            return "json"
        case dict() as schema:
            del fields.remaining["format"]
            return OutputSchema("answer", schema)
        case _:
            return None


def _tools(fields: RequestFields) -> tuple[Tool, ...]:
    return tuple(read_tool(tool) for tool in fields.take("tools", list[dict[str, Any]]) or ())


# --- messages -----------------------------------------------------------------------------------------------------


def _messages(fields: RequestFields) -> tuple[Message, ...]:
    """The history. Calls and results that have no ids are told apart by their order, as the server does."""
    told = fields.take("messages", list[dict[str, Any]]) or []
    messages: list[Message] = []
    waiting: list[str] = []
    for place, message in enumerate(told):
        try:
            messages.append(_message(message, place, waiting))
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None
    return tuple(messages)


def _message(message: Mapping[str, Any], place: int, waiting: list[str]) -> Message:
    content = message.get("content") or ""
    if not isinstance(content, str):
        raise ConfigError("content is text.")
    parts: list[Part] = [Text(content)] if content else []
    parts += [_image(image) for image in message.get("images") or ()]
    match message.get("role"):
        case "system":
            return Message("system", tuple(parts))
        case "user":
            return Message("user", tuple(parts))
        case "tool":
            given = message.get("tool_call_id")
            call_id = given if isinstance(given, str) and given else waiting[0] if waiting else f"call_{place}"
            if call_id in waiting:
                waiting.remove(call_id)
            name = message.get("tool_name") or message.get("name")
            result: Any = content if len(parts) < 2 else tuple(parts)
            return Message("tool", (ToolResult(call_id, result, name if isinstance(name, str) else None),))
        case "assistant":
            calls = [_call(call, place, number) for number, call in enumerate(message.get("tool_calls") or ())]
            waiting[:] = [call.id for call in calls]
            thinking = message.get("thinking")
            thoughts: list[Part] = [Thought(thinking, via="thinking")] if isinstance(thinking, str) and thinking else []
            return Message("assistant", (*thoughts, *parts, *calls))
        case other:
            raise ConfigError(f"the role {other!r} is not known; use system, user, assistant or tool.")


def _call(call: Any, place: int, number: int) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ConfigError("a tool call has no function with a name.")
    given = call.get("id")
    call_id = given if isinstance(given, str) and given else f"call_{place}_{number}"
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        read_back = read_arguments(arguments)
        return ToolCall(call_id, function["name"], read_back or {}, None if read_back is not None else arguments)
    if not isinstance(arguments, dict):
        raise ConfigError("the arguments of a tool call are an object.")
    return ToolCall(call_id, function["name"], arguments)


def _image(image: object) -> Image:
    try:
        return Image(data=b64decode(image if isinstance(image, str) else "?", validate=True))
    except (NotBase64, ValueError):
        raise ConfigError("an image is text in base64.") from None
