"""Read a client's request as a prompt: `read(body) → ServedRequest` for a chat, `read_generate` for a single prompt.
Unknown fields stay in `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.ollama.wire import SAMPLING, SAMPLING_BESIDE
from asides.dialects.server_half import RequestFields
from asides.dialects.verbatim import keep_source
from asides.providers.switches.read import read as read_switches
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling
from asides.values.parts import Image, Part, Text, ToolCall, ToolResult, read_arguments
from asides.values.thinking import Thought
from asides.values.tools import read_tool
from asides.wire.lenient import read_base64


def read(body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG001 - all of it is in the body
    """Read a chat. Raises ConfigError with a message for the client."""
    fields = RequestFields.parse_body(body).keep("ollama")
    model = fields.take_model()
    messages = _take_messages(fields)
    system = None
    if messages and messages[0].role == "system":
        system, messages = fields.keep_system(messages[0]), messages[1:]
    tools = tuple(read_tool(tool) for tool in fields.take("tools", list[dict[str, Any]]) or ())
    return _read_settings(fields, model, Prompt(messages, system=system, tools=tools, source=fields.source))


def read_generate(body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG001 - all of it is in the body
    """Read a request of `/api/generate`: one prompt without a history. Raises ConfigError as `read` does."""
    fields = RequestFields.parse_body(body)
    model = fields.take_model()
    text = fields.take("prompt", str)
    parts: list[Part] = [Text(text)] if text else []
    parts += [_read_image(image) for image in fields.take("images", list[str]) or ()]
    messages = (Message("user", tuple(parts)),) if parts else ()
    return _read_settings(fields, model, Prompt(messages, system=fields.take("system", str) or None))


def _read_settings(fields: RequestFields, model: str, prompt: Prompt) -> ServedRequest:
    # Streaming is the default of this dialect.
    stream = fields.take("stream", bool) is not False
    options = fields.take_object("options")
    prompt = msgspec.structs.replace(
        prompt,
        thinking=read_switches("ollama", fields.remaining),
        output=_take_output(fields),
        max_tokens=_take_limit(options),
        sampling=_take_sampling(options, fields),
        stop=options.take_stop(),
        stream=stream,
    )
    fields.put_back("options", options)
    return ServedRequest(msgspec.structs.replace(prompt, extra=fields.remaining), model, stream, include_usage=True)


def _take_limit(options: RequestFields) -> int | None:
    limit = options.take("num_predict", int)
    # A negative limit means no limit.
    return None if limit is None or limit < 0 else limit


def _take_sampling(options: RequestFields, fields: RequestFields) -> Sampling:
    beside = fields.take_sampling(SAMPLING_BESIDE)
    return msgspec.structs.replace(options.take_sampling(SAMPLING), **beside.to_dict())


def _take_output(fields: RequestFields) -> OutputSchema | Literal["json"] | None:
    match fields.remaining.get("format"):
        case "json":
            del fields.remaining["format"]
            return "json"
        case dict() as schema:
            del fields.remaining["format"]
            return OutputSchema("answer", schema)
        case _:
            return None


# --- messages -----------------------------------------------------------------------------------------------------


def _take_messages(fields: RequestFields) -> tuple[Message, ...]:
    """Take the history. Results without ids belong to the calls in their order, as on the server."""
    documents = fields.take("messages", list[dict[str, Any]]) or []
    messages: list[Message] = []
    unanswered: list[str] = []
    for index, document in enumerate(documents):
        try:
            messages.append(keep_source(_read_message(document, index, unanswered), "ollama", [document]))
        except ConfigError as problem:
            raise ConfigError(f"messages[{index}]: {problem}") from None
    return tuple(messages)


def _read_message(message: Mapping[str, Any], index: int, unanswered: list[str]) -> Message:
    """Read a message. `unanswered` holds the ids of the calls whose results have not come."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        raise ConfigError("content is text.")
    parts: list[Part] = [Text(content)] if content else []
    parts += [_read_image(image) for image in _get_list(message, "images")]
    match message.get("role"):
        case "system":
            return Message("system", tuple(parts))
        case "user":
            return Message("user", tuple(parts))
        case "tool":
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str) or not call_id:
                call_id = unanswered[0] if unanswered else f"call_{index}"
            if call_id in unanswered:
                unanswered.remove(call_id)
            name = message.get("tool_name") or message.get("name")
            result: Any = content if len(parts) < 2 else tuple(parts)
            return Message("tool", (ToolResult(call_id, result, name if isinstance(name, str) else None),))
        case "assistant":
            calls = [_read_call(call, index, number) for number, call in enumerate(_get_list(message, "tool_calls"))]
            unanswered[:] = [call.id for call in calls]
            thinking = message.get("thinking")
            thoughts: list[Part] = [Thought(thinking, via="thinking")] if isinstance(thinking, str) and thinking else []
            return Message("assistant", (*thoughts, *parts, *calls))
        case other:
            raise ConfigError(f"the role {other!r} is not known; use system, user, assistant or tool.")


def _get_list(message: Mapping[str, Any], name: str) -> list[Any]:
    value = message.get(name)
    if value is not None and not isinstance(value, list):
        raise ConfigError(f"{name} is a list.")
    return value or []


def _read_call(call: Any, index: int, number: int) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ConfigError("a tool call has no function with a name.")
    call_id = call.get("id")
    if not isinstance(call_id, str) or not call_id:
        call_id = f"call_{index}_{number}"
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        parsed = read_arguments(arguments)
        return ToolCall(call_id, function["name"], parsed or {}, None if parsed is not None else arguments)
    if not isinstance(arguments, dict):
        raise ConfigError("the arguments of a tool call are an object.")
    return ToolCall(call_id, function["name"], arguments)


def _read_image(image: object) -> Image:
    data = read_base64(image) if isinstance(image, str) else None
    if data is None:
        raise ConfigError("an image is text in base64.")
    return Image(data=data)
