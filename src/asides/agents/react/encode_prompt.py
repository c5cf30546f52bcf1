"""A prompt for a model that has no tools of its own: they become instructions, and the history becomes text.

Not here: what a reply in this form means (translator). Thinking is never written into text; native thoughts stay parts
of their turns, for the plan to decide about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from asides.agents.react.translator import VIA
from asides.dialects.message_encoder import encode_arguments
from asides.history.pair import CANCELLED
from asides.providers.provider import Target
from asides.values.messages import File, Image, Message, OutputSchema, Part, Prompt, Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool

STOP = "\nObservation:"
"""Where a model is stopped, before it makes up what a tool said."""

# The fewest stop sequences that any provider takes.
_MOST_STOPS = 4


def dressed(prompt: Prompt, target: Target) -> Prompt:
    """The prompt without tools: they are told in the system prompt, and calls and results in the history are text.

    A model that thinks natively is not asked to write its thoughts. A schema for the answer becomes an instruction too,
    since a model that is held to JSON could not write anything else. The same prompt always gives the same text, so
    that a longer history begins as a shorter one did.
    """
    messages = _History().spell(prompt.messages)
    told = prompt.tools if prompt.tool_choice != "none" else ()
    if not told:
        return msgspec.structs.replace(prompt, messages=messages, tools=(), tool_choice=None, parallel_tool_calls=None)
    thinks = bool(target.thinks(prompt.thinking))
    instructions = _instructions(told, prompt.tool_choice, prompt.output, asks_for_thoughts=not thinks)
    system = prompt.system.rstrip() if prompt.system else ""
    return msgspec.structs.replace(
        prompt,
        messages=messages,
        system=f"{system}\n\n{instructions}" if system else instructions,
        tools=(),
        tool_choice=None,
        parallel_tool_calls=None,
        output=None,
        stop=_stops(prompt, target, thinks=thinks),
    )


def _stops(prompt: Prompt, target: Target, *, thinks: bool) -> tuple[str, ...]:
    rule = target.rule
    refused = "stop" in rule.refuses or (thinks and "stop" in rule.forbids)
    if refused or STOP in prompt.stop or len(prompt.stop) >= _MOST_STOPS:
        return prompt.stop
    return (*prompt.stop, STOP)


# --- instructions ---------------------------------------------------------------------------------------------------


def _instructions(
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
        'The next message then brings what the tool said, as "Observation: …".',
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
        schema = _json(output.schema)
        lines += [f"The final answer is one JSON object, and nothing else, that fits this schema: {schema}", ""]
    elif output is not None:
        lines += ["The final answer is one JSON object, and nothing else.", ""]
    lines.append("The tools, each with the JSON schema of its input:")
    for tool in tools:
        about = f": {' '.join(tool.description.split())}" if tool.description.strip() else ""
        lines += [f"- {tool.name}{about}", f"  {_json(tool.parameters)}"]
    return "\n".join(lines)


def _json(schema: dict[str, object]) -> str:
    return msgspec.json.encode(schema).decode()


# --- the history ----------------------------------------------------------------------------------------------------


class _History:
    """A history while it is turned into text. What tools said waits for its message, since words may come with it."""

    def __init__(self) -> None:
        self._spelled: list[Message] = []
        self._results: list[ToolResult] = []
        self._calls: dict[str, ToolCall] = {}  # of the last turn

    def spell(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        for message in messages:
            match message.role:
                case "assistant":
                    self._observe(())
                    turn = self._turn(message)
                    # Nothing but a thought that does not go back: an empty turn would be refused.
                    if turn.parts or not message.parts:
                        self._spelled.append(turn)
                case "tool" | "user":
                    self._results += [part for part in message.parts if isinstance(part, ToolResult)]
                    words = tuple(part for part in message.parts if not isinstance(part, ToolResult))
                    if message.role == "user" and (words or not message.parts):
                        self._observe(words, message)
                case "system":
                    self._spelled.append(message)
        self._observe(())
        return tuple(self._spelled)

    def _turn(self, message: Message) -> Message:
        """A turn of the model with its calls as text, behind its own words."""
        self._calls = {call.id: call for call in message.tool_calls}
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, Thought) and part.via == VIA:
                continue  # it was written as text, and has no field to go back in
            if not isinstance(part, ToolCall):
                parts.append(part)
                continue
            text = f"Action: {part.name}\nAction Input: {encode_arguments(part)}"
            before = parts[-1] if parts else None
            if isinstance(before, Text) and not before.seals:
                words = before.text.rstrip()
                parts[-1] = msgspec.structs.replace(before, text=f"{words}\n{text}" if words else text)
            else:
                parts.append(Text(text))
        return message if tuple(parts) == message.parts else msgspec.structs.replace(message, parts=tuple(parts))

    def _observe(self, words: tuple[Part, ...], message: Message | None = None) -> None:
        """The message that the results make, with what a person said behind them."""
        results, self._results = self._results, []
        answered = {result.call_id for result in results}
        # Nobody else would see that they are missing.
        missing = [call for call in self._calls.values() if call.id not in answered]
        results += [ToolResult(call.id, CANCELLED, call.name, is_error=True) for call in missing]
        parts: list[Part] = []
        for result in results:
            parts = _joined(parts, self._observation(result, named=len(results) > 1))
        self._calls = {}
        if not parts and message is None:
            return
        if parts and words:
            parts = _joined(parts, list(words), "\n\n")
        whole = tuple(parts) if parts else words
        spoken = message or Message("user")
        self._spelled.append(msgspec.structs.replace(spoken, parts=whole))

    def _observation(self, result: ToolResult, *, named: bool) -> list[Part]:
        call = self._calls.get(result.call_id)
        name = result.name or (call.name if call else "")
        about = ", ".join(word for word in (name if named else "", "error" if result.is_error else "") if word)
        label = f"Observation ({about}): " if about else "Observation: "
        content: tuple[Text | Image | File, ...] = (
            (Text(result.content),) if isinstance(result.content, str) else result.content
        )
        return _joined([Text(label)], list(content), "") if content else [Text(label.rstrip())]


def _joined(before: Sequence[Part], behind: Sequence[Part], between: str = "\n") -> list[Part]:
    """The parts in a row; where two texts meet, they are one."""
    if before and behind:
        last, first = before[-1], behind[0]
        if isinstance(last, Text) and isinstance(first, Text):
            met = msgspec.structs.replace(first, text=f"{last.text}{between}{first.text}")
            return [*before[:-1], met, *behind[1:]]
    return [*before, *behind]
