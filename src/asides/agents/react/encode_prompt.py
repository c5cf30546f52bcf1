"""Encodes a prompt for a model without tools: the tools become instructions, and the history becomes text.

Thinking is never written into text; native thoughts stay in their turns, and history/plan decides about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from asides.agents.react.translator import VIA
from asides.dialects.message_encoder import encode_arguments
from asides.history.redact import invalidate_seals
from asides.history.turns import make_missing_result
from asides.providers.provider import Target
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.parts import File, Image, Part, Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool

STOP = "\nObservation:"
"""A stop sequence, so that a model does not make up the result of a tool."""

# Every provider accepts this many stop sequences.
_MAX_STOPS = 4


def encode_prompt(prompt: Prompt, target: Target) -> Prompt:
    """Encode the prompt without tools: the system prompt describes them, and calls and results in the history are text.

    A model that thinks natively is not asked to write its thoughts. A schema for the answer becomes an instruction too,
    since a model that may only write JSON could not write an action. The same prompt always gives the same text, so
    that providers can cache the beginning of a longer history.
    """
    # Thoughts that are bound to all earlier messages followed others than these.
    messages = invalidate_seals(_HistoryEncoder().encode(prompt.messages), 0, rows=(target.provider,))
    tools = prompt.tools if prompt.tool_choice != "none" else ()
    if not tools:
        return msgspec.structs.replace(prompt, messages=messages, tools=(), tool_choice=None, parallel_tool_calls=None)
    thinks = bool(target.thinks(prompt.thinking))
    instructions = _write_instructions(tools, prompt.tool_choice, prompt.output, asks_for_thoughts=not thinks)
    system = prompt.system.rstrip() if prompt.system else ""
    return msgspec.structs.replace(
        prompt,
        messages=messages,
        system=f"{system}\n\n{instructions}" if system else instructions,
        tools=(),
        tool_choice=None,
        parallel_tool_calls=None,
        output=None,
        stop=_add_stop(prompt, target, thinks=thinks),
    )


def _add_stop(prompt: Prompt, target: Target, *, thinks: bool) -> tuple[str, ...]:
    rule = target.rule
    refused = "stop" in rule.refuses or (thinks and "stop" in rule.forbids)
    if refused or STOP in prompt.stop or len(prompt.stop) >= _MAX_STOPS:
        return prompt.stop
    return (*prompt.stop, STOP)


# --- instructions ---------------------------------------------------------------------------------------------------


def _write_instructions(
    tools: Sequence[Tool], choice: str | None, output: OutputSchema | str | None, *, asks_for_thoughts: bool
) -> str:
    needed = "Thought: what is needed next, and which tool can tell\n" if asks_for_thoughts else ""
    enough = "Thought: why this is enough\n" if asks_for_thoughts else ""
    lines = [
        "You can use tools. To use one, write exactly this and then stop:",
        "",
        f"{needed}Action: the name of one tool, and nothing else",
        "Action Input: its input as one JSON object",
        "",
        'The next message then brings the result of the tool, as "Observation: …".',
        "Use one tool at a time, as often as needed. Never write an Observation yourself.",
        "When no tool is needed any more, or none was needed at all, write:",
        "",
        f"{enough}Final Answer: the answer to the question",
        "",
    ]
    if choice == "required":
        lines += ["Use a tool before you give the final answer.", ""]
    elif choice is not None and any(tool.name == choice for tool in tools):
        lines += [f"Use the tool {choice} before you give the final answer.", ""]
    if isinstance(output, OutputSchema):
        schema = _to_json(output.schema)
        lines += [f"The final answer is one JSON object, and nothing else, that fits this schema: {schema}", ""]
    elif output is not None:
        lines += ["The final answer is one JSON object, and nothing else.", ""]
    lines.append("The tools, each with the JSON schema of its input:")
    for tool in tools:
        about = f": {' '.join(tool.description.split())}" if tool.description.strip() else ""
        lines += [f"- {tool.name}{about}", f"  {_to_json(tool.parameters)}"]
    return "\n".join(lines)


def _to_json(schema: dict[str, object]) -> str:
    return msgspec.json.encode(schema).decode()


# --- the history ----------------------------------------------------------------------------------------------------


class _HistoryEncoder:
    """Turns a history into text. Tool results wait for the next message, since it may bring text of the user."""

    def __init__(self) -> None:
        self._encoded: list[Message] = []
        self._results: list[ToolResult] = []
        self._calls: dict[str, ToolCall] = {}  # of the last turn

    def encode(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        for message in messages:
            match message.role:
                case "assistant":
                    self._add_results(())
                    turn = self._encode_turn(message)
                    # A turn with only a thought that does not go back is left out: hosts refuse an empty turn.
                    if turn.parts or not message.parts:
                        self._encoded.append(turn)
                case "tool" | "user":
                    self._results += [part for part in message.parts if isinstance(part, ToolResult)]
                    user_parts = tuple(part for part in message.parts if not isinstance(part, ToolResult))
                    if message.role == "user" and (user_parts or not message.parts):
                        self._add_results(user_parts, message)
                case "system":
                    self._encoded.append(message)
        self._add_results(())
        return tuple(self._encoded)

    def _encode_turn(self, message: Message) -> Message:
        """Encode a turn of the model, with its calls as text after its other text."""
        self._calls = {call.id: call for call in message.tool_calls}
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, Thought) and part.via == VIA:
                continue  # the model wrote it as text, and there is no field to send it back in
            if not isinstance(part, ToolCall):
                parts.append(part)
                continue
            text = f"Action: {part.name}\nAction Input: {encode_arguments(part)}"
            before = parts[-1] if parts else None
            if isinstance(before, Text) and not before.seals:
                earlier = before.text.rstrip()
                parts[-1] = msgspec.structs.replace(before, text=f"{earlier}\n{text}" if earlier else text)
            else:
                parts.append(Text(text))
        return message if tuple(parts) == message.parts else msgspec.structs.replace(message, parts=tuple(parts))

    def _add_results(self, user_parts: tuple[Part, ...], message: Message | None = None) -> None:
        """Add a message with the results, followed by the text of the user."""
        results, self._results = self._results, []
        answered = {result.call_id for result in results}
        # Once the calls are text, no later step can notice that a result is missing.
        results += [make_missing_result(call) for call in self._calls.values() if call.id not in answered]
        parts: list[Part] = []
        for result in results:
            parts = _join(parts, self._encode_result(result, named=len(results) > 1))
        self._calls = {}
        if not parts and message is None:
            return
        if parts and user_parts:
            parts = _join(parts, list(user_parts), "\n\n")
        whole = tuple(parts) if parts else user_parts
        self._encoded.append(msgspec.structs.replace(message or Message("user"), parts=whole))

    def _encode_result(self, result: ToolResult, *, named: bool) -> list[Part]:
        call = self._calls.get(result.call_id)
        name = result.name or (call.name if call else "")
        about = ", ".join(text for text in (name if named else "", "error" if result.is_error else "") if text)
        label = f"Observation ({about}): " if about else "Observation: "
        content: tuple[Text | Image | File, ...] = (
            (Text(result.content),) if isinstance(result.content, str) else result.content
        )
        return _join([Text(label)], list(content), "") if content else [Text(label.rstrip())]


def _join(before: Sequence[Part], after: Sequence[Part], between: str = "\n") -> list[Part]:
    """Join two lists of parts. If two texts meet, they become one."""
    if before and after:
        last, first = before[-1], after[0]
        if isinstance(last, Text) and isinstance(first, Text):
            joined = msgspec.structs.replace(first, text=f"{last.text}{between}{first.text}")
            return [*before[:-1], joined, *after[1:]]
    return [*before, *after]
