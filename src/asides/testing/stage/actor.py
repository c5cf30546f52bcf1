"""Who answers when there is no script: a small actor that works out what it can and says plainly what it is.

Not a model, and it never claims to be one. The same question always gets the same thought and the same answer.
"""

from __future__ import annotations

import re

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.testing.stage.actor import fill, find_sum
from asides.testing.stage.script import Say
from asides.values.messages import Message, OutputSchema, Prompt, ToolCall, ToolResult
from asides.values.tools import Tool

MODEL = "stage"
"""The model's name, in lists and in replies."""

_GREETING = re.compile(r"^\W*(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|greetings)\b", re.IGNORECASE)
_WHO = re.compile(r"\b(?:who|what) (?:are|r) (?:you|u)\b|\bwhich model\b|\bwhat model\b|\byour name\b", re.IGNORECASE)
# A lone "a" is most often no letter but a word, so it has to be called one, quoted, or have an 's.
_LETTERS = re.compile(
    r"how (?:many|often)\b.{0,30}?(?:letters?\s+[\"“']?(?P<called>[a-z])\b|[\"“'](?P<quoted>[a-z])[\"”']"
    r"|\b(?P<plural>[a-z])['’]s\b|\b(?P<bare>[b-hj-z])s?\b)"
    r".{0,30}?\bin (?:the (?:word|name) )?[\"“']?(?P<word>[^\W\d_]+)",
    re.IGNORECASE,
)
_REVERSE = re.compile(r"^\W*(?:please\s+)?reverse\b[:\s]*", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“«]([^\"”»]+)[\"”»]")

_WHAT_I_AM = "I am the offline stage of asides: a small program on this machine, not a model."
_WHAT_I_CAN = 'Ask me for a sum such as "What is 23 * 47?", or how many r are in "strawberry".'


class _Line(msgspec.Struct, frozen=True):
    """A thought, step by step, and what comes of it."""

    thought: tuple[str, ...]
    answer: str = ""
    call: ToolCall | None = None


def improvise(request: ServedRequest) -> Say:
    """The actor's reply: deterministic, with a visible thought unless thinking was switched off."""
    prompt = request.prompt
    line = _line_for(prompt)
    thought = _thought_of(line, prompt)
    answer, whole = line.answer, True
    if prompt.max_tokens is not None:
        thought, answer, whole = _within(prompt.max_tokens, thought, answer)
    if not whole:
        return Say(text=answer, thinking=thought, model=MODEL, stop="length")
    calls = () if line.call is None else (line.call,)
    return Say(text=answer, thinking=thought, tool_calls=calls, model=MODEL)


def _thought_of(line: _Line, prompt: Prompt) -> str | None:
    thinking = prompt.thinking
    if thinking.mode == "off" or thinking.show == "none":
        return None
    if thinking.effort in ("minimal", "low"):
        return line.thought[0]
    return "\n".join(line.thought)


def _line_for(prompt: Prompt) -> _Line:
    question = _question_of(prompt)
    if results := _results_of(prompt):
        return _report(results, prompt)
    if tool := _tool_for(question, prompt):
        return _call(tool, question)
    if prompt.output is not None:
        return _shaped(prompt.output, question)
    return _talk(question)


def _question_of(prompt: Prompt) -> str:
    return next((message.text for message in reversed(prompt.messages) if message.role == "user"), "").strip()


def _results_of(prompt: Prompt) -> list[ToolResult]:
    """What tools gave back since anybody else spoke."""
    latest: list[Message] = []
    for message in reversed(prompt.messages):
        if message.role != "tool":
            break
        latest.insert(0, message)
    return [part for message in latest for part in message.parts if isinstance(part, ToolResult)]


# --- talking ----------------------------------------------------------------------------------------------------------


def _talk(question: str) -> _Line:
    if (found := find_sum(question)) is not None:
        return _Line(
            (f"The question is {found.question}.", *found.steps, f"So {found.result}."),
            found.result,
        )
    if counted := _LETTERS.search(question):
        letter = next(filter(None, counted.group("called", "quoted", "plural", "bare")))
        return _count_letters(letter.lower(), counted["word"])
    if not question:
        return _Line(("Nothing was asked.",), f"There was no question. {_WHAT_I_CAN}")
    if _WHO.search(question):
        return _Line(("They want to know who answers. That should be said plainly.",), f"{_WHAT_I_AM} {_WHAT_I_CAN}")
    if _GREETING.search(question):
        return _Line(("A greeting. It should be returned.",), f"Hello! {_WHAT_I_AM} {_WHAT_I_CAN}")
    if _REVERSE.search(question):
        quoted = _QUOTED.search(question)
        text = quoted[1] if quoted else _REVERSE.sub("", question, count=1).strip()
        thought = (f"They want {len(text)} characters the other way round.", "Read them from the last to the first.")
        return _Line(thought, text[::-1])
    words = len(question.split())
    return _Line(
        (
            f"The message has {words} {'word' if words == 1 else 'words'}.",
            "It is no sum, no greeting and no tool was asked for.",
            "I know nothing else, so I should say so and give it back.",
        ),
        f"You said: {question}\n\nThat is more than I know. {_WHAT_I_AM} {_WHAT_I_CAN}",
    )


def _count_letters(letter: str, word: str) -> _Line:
    places = [place for place, each in enumerate(word.lower(), 1) if each == letter]
    spelled = "-".join(each.upper() if each.lower() == letter else each for each in word.lower())
    found = f"{letter} is at {', '.join(map(str, places))}." if places else f"There is no {letter}."
    times = "once" if len(places) == 1 else f"{len(places)} times"
    return _Line(
        (f"Spell it: {spelled}.", found, f"That makes {len(places)}."), f'The letter {letter} is in "{word}" {times}.'
    )


# --- tools and shapes -------------------------------------------------------------------------------------------------


def _tool_for(question: str, prompt: Prompt) -> Tool | None:
    """The tool that must be called, or that the question names, in one word or in the words of its name."""
    if prompt.tool_choice == "none" or not prompt.tools:
        return None
    for tool in prompt.tools:
        if tool.name == prompt.tool_choice:
            return tool
    heard = set(re.findall(r"\w+", question.lower()))
    for tool in prompt.tools:
        words = {word for word in re.split(r"[^a-z0-9]+", tool.name.lower()) if len(word) > 3}
        if tool.name.lower() in heard or (words and words & heard):
            return tool
    return prompt.tools[0] if prompt.tool_choice == "required" else None


def _call(tool: Tool, question: str) -> _Line:
    arguments = fill(tool.parameters, question)
    call = ToolCall(f"call_{tool.name}", tool.name, arguments if isinstance(arguments, dict) else {})
    given = ", ".join(call.arguments) or "nothing"
    return _Line((f"The tool {tool.name} can tell.", f"It is given: {given}."), call=call)


def _report(results: list[ToolResult], prompt: Prompt) -> _Line:
    names = {call.id: call.name for message in prompt.messages for call in message.tool_calls}
    told = [(result.name or names.get(result.call_id) or "the tool", result) for result in results]
    lines = [f"{name} {'failed' if result.is_error else 'says'}: {result.text.strip()}" for name, result in told]
    thought = f"{', '.join(name for name, _ in told)} answered. That can be passed on."
    return _Line((thought,), "\n".join(lines))


def _shaped(output: OutputSchema | str, question: str) -> _Line:
    """An answer in JSON, as it was asked for."""
    plain = _talk(question)
    if isinstance(output, OutputSchema):
        document = fill(output.schema, question)
        thought = (*plain.thought, f"The answer must fit the schema {output.name}.")
    else:
        document = {"answer": plain.answer}
        thought = (*plain.thought, "The answer must be JSON.")
    return _Line(thought, msgspec.json.encode(document).decode())


def _within(limit: int, thought: str | None, answer: str) -> tuple[str | None, str, bool]:
    """What is left of thought and answer within so many words, and whether that is all of it."""
    kept: list[str] = []
    left = max(limit, 0)
    for text in (thought or "", answer):
        words = re.findall(r"\s*\S+", text)
        kept.append(text if len(words) <= left else "".join(words[:left]))
        left -= min(len(words), left)
    return (kept[0] or None) if thought is not None else None, kept[1], kept == [thought or "", answer]
