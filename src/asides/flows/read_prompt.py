"""The prompt of a call: messages, tools, output and settings, in the many shapes that people have them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from asides.dialects.openai_chat.import_messages import import_message
from asides.options import SPELLINGS_OF_THINKING, Options, PromptLike, checked, convert_option
from asides.values.errors import ConfigError
from asides.values.messages import Message, Prompt, Sampling, user
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.thinking import read_thinking
from asides.values.tools import Tool, read_tool

if TYPE_CHECKING:
    from asides.agents.tools.toolset import ToolLike

_SAMPLING = Sampling.__struct_fields__


def read_prompt(prompt: PromptLike, given: Options, stream: bool) -> tuple[Prompt, tuple[Notice, ...]]:
    """The prompt, and what was worth a notice in how it was asked. A `Prompt` keeps what no option says otherwise."""
    start = prompt if isinstance(prompt, Prompt) else Prompt(_messages(prompt), system=_system_of(prompt))
    changes: dict[str, Any] = {
        name: checked(name, given)
        for name in ("system", "parallel_tool_calls", "max_tokens", "user")
        if given.get(name) is not None
    }
    if changes.get("max_tokens", 1) < 1:
        raise ConfigError("max_tokens is below one; an answer needs at least a token.")
    changes["stream"] = checked("stream", given) if given.get("stream") is not None else stream
    thinking, notices = read_thinking(
        given.get("thinking"), reasoning_effort=given.get("reasoning_effort"), reasoning=given.get("reasoning")
    )
    if not isinstance(prompt, Prompt) or SPELLINGS_OF_THINKING & given.keys():
        changes["thinking"] = thinking
    if (tools := given.get("tools")) is not None:
        changes["tools"] = tuple(_tool(tool) for tool in tools)
    if (choice := given.get("tool_choice")) is not None:
        changes["tool_choice"] = _tool_choice(choice)
    if (output := given.get("output")) is not None:
        from asides.agents.outputs.schemas import build_schema

        changes["output"] = build_schema(output).schema
    if (stop := given.get("stop")) is not None:
        changes["stop"] = convert_option("stop", (stop,) if isinstance(stop, str) else stop, tuple[str, ...])
    if (metadata := given.get("metadata")) is not None:
        changes["metadata"] = convert_option("metadata", metadata, dict[str, str])
    if (extra := given.get("extra")) is not None:
        changes["extra"] = {**start.extra, **convert_option("extra", extra, dict[str, Any])}
    if state := _state(given):
        changes["state"] = msgspec.structs.replace(start.state, **state)
    if sampling := _sampling(given):
        changes["sampling"] = convert_option("sampling", {**start.sampling.given(), **sampling}, Sampling)
    return msgspec.structs.replace(start, **changes), notices


def _messages(prompt: PromptLike) -> tuple[Message, ...]:
    if isinstance(prompt, str):
        return (user(prompt),)
    if isinstance(prompt, Message):
        return (prompt,)
    held = getattr(prompt, "messages", prompt)
    if isinstance(held, (Mapping, bytes, str)) or not isinstance(held, Iterable):
        raise ConfigError(
            f"a prompt is text, a message or a list of messages, not {type(prompt).__name__}. To do: make it one."
        )
    read: list[Message] = []
    legacy_calls = 0
    for place, item in enumerate(held):
        if isinstance(item, Mapping) and item.get("function_call"):
            legacy_calls += 1
        message = _message(item, place, legacy_calls)
        if message is not None:
            read.append(message)
    if not read:
        raise ConfigError("the prompt holds no message. To do: say something.")
    return tuple(read)


def _message(item: object, place: int, legacy_calls: int) -> Message | None:
    if isinstance(item, Message):
        return item
    if isinstance(item, Reply):
        return item.to_message()
    if not isinstance(item, Mapping):
        raise ConfigError(f"messages[{place}] is {type(item).__name__}, no message. To do: use user(…) or a dict.")
    try:
        return import_message(item, legacy_calls)
    except ConfigError as problem:
        raise ConfigError(f"messages[{place}]: {problem}") from None


def _system_of(prompt: object) -> str | None:
    """A conversation may have one of its own."""
    system = None if isinstance(prompt, (str, Message)) else getattr(prompt, "system", None)
    return system if isinstance(system, str) else None


def _tool(tool: ToolLike) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return read_tool(tool)
    # What reads a signature brings much along that most questions have no use for.
    from asides.agents.tools.toolset import read_offer

    return read_offer(tool).tool


def _tool_choice(choice: object) -> str:
    """Our word for a choice: "auto", "none", "required" or a tool's name, also from the objects that providers use."""
    if isinstance(choice, str):
        return {"any": "required"}.get(choice, choice)
    if not isinstance(choice, Mapping):
        raise ConfigError(f"tool_choice is a word, a tool's name or an object, not {type(choice).__name__}.")
    inner = choice.get("function", choice)
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if isinstance(name, str) and name:
        return name
    match choice.get("type"):
        case "any" | "required":
            return "required"
        case "auto" | "none" as word:
            return str(word)
        case _:
            pass
    raise ConfigError('tool_choice names no tool. To do: use "auto", "none", "required" or the name of a tool.')


# Options, and what they are called in a State.
_STATE = {
    "store": "store",
    "stateful": "resume",
    "previous_response_id": "previous_response_id",
    "conversation_id": "conversation",
    "truncation": "truncation",
    "reasoning_context": "context",
    "reasoning_mode": "mode",
}


def _state(given: Options) -> dict[str, Any]:
    state: dict[str, Any] = {
        field: checked(option, given) for option, field in _STATE.items() if given.get(option) is not None
    }
    if (include := given.get("include")) is not None:
        state["include"] = convert_option("include", include, tuple[str, ...])
    return state


def _sampling(given: Options) -> dict[str, Any]:
    sampling: dict[str, Any] = {name: given[name] for name in _SAMPLING if given.get(name) is not None}  # type: ignore[literal-required]
    if isinstance(bias := sampling.get("logit_bias"), Mapping):
        sampling["logit_bias"] = {str(token): value for token, value in bias.items()}
    return sampling
