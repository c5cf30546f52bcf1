"""The actor that answers when there is no script: it solves sums, calls tools and fills schemas.

It says that it is not a model. The same question always gets the same thought and the same answer. Whether a reply has
the thought follows what is known about the requested model: some never think, some only when asked, some hide it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.providers.find import find_provider
from asides.providers.provider import ModelRule
from asides.providers.unknown_names import find_candidates
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.tools import Tool
from asides_stage.stage.script import Say
from asides_stage.stage.sums import find_sum

MODEL = "stage"
"""The name of the only model in the stage's lists. Replies have the name that was requested."""

_GREETING = re.compile(r"^\W*(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|greetings)\b", re.IGNORECASE)
_WHO = re.compile(r"\b(?:who|what) (?:are|r) (?:you|u)\b|\bwhich model\b|\bwhat model\b|\byour name\b", re.IGNORECASE)
# A lone "a" is usually a word, so it counts as a letter only if it is called one, quoted, or has an 's.
_LETTERS = re.compile(
    r"how (?:many|often)\b.{0,30}?(?:letters?\s+[\"“']?(?P<called>[a-z])\b|[\"“'](?P<quoted>[a-z])[\"”']"
    r"|\b(?P<plural>[a-z])['’]s\b|\b(?P<bare>[b-hj-z])s?\b)"
    r".{0,30}?\bin (?:the (?:word|name) )?[\"“']?(?P<word>[^\W\d_]+)",
    re.IGNORECASE,
)
_REVERSE = re.compile(r"^\W*(?:please\s+)?reverse\b[:\s]*", re.IGNORECASE)
_QUOTED_TEXT = re.compile(r"[\"“«]([^\"“”«»]+)[\"”»]")

# A tool whose name has these words starts another agent with this question, which would start the next one.
_AGENTS = frozenset({"agent", "agents", "subagent", "subagents"})
_STARTS = frozenset({"create", "delegate", "dispatch", "invoke", "launch", "run", "send", "spawn", "start"})
_MOST_EQUAL_CALLS = 3
# Of a longer message, the actor reads so many characters at each end, and gives so many back.
_READ_CHARACTERS = 2000
_SHOWN_CHARACTERS = 200

_WHAT_I_AM = "I am the offline stage of asides: a small program on this machine, not a model."
_WHAT_I_CAN = 'Ask me for a sum such as "What is 23 * 47?", or how many r are in "strawberry".'


class _Line(msgspec.Struct, frozen=True):
    """A thought, step by step, and the answer or call that follows."""

    thought: tuple[str, ...]
    answer: str = ""
    call: ToolCall | None = None


def improvise(request: ServedRequest) -> Say:
    """Build the actor's reply: deterministic, with a thought if the requested model would think."""
    prompt = request.prompt
    rule = _find_rule(request.model)
    line = _choose_line(prompt)
    thought = _think(line, prompt, rule)
    answer, whole = line.answer, True
    if prompt.max_tokens is not None:
        thought, answer, whole = _cut_to_limit(prompt.max_tokens, thought, answer)
    shown, hidden = (thought, None) if _is_shown(prompt, rule) else (None, thought)
    if not whole:
        return Say(text=answer, thinking=shown, hidden_thinking=hidden, stop="length")
    calls = () if line.call is None else (line.call,)
    return Say(text=answer, thinking=shown, hidden_thinking=hidden, tool_calls=calls)


@lru_cache(maxsize=256)
def _find_rule(model: str) -> ModelRule | None:
    """The facts of a model, as the provider knows them that makes it; None for an unknown model."""
    provider = next(iter(find_candidates(model)), None)
    return None if provider is None else find_provider(provider).rule(model)


def _think(line: _Line, prompt: Prompt, rule: ModelRule | None) -> str | None:
    """The thought of the reply; None where the model does not think. An unknown model thinks unless that is off."""
    thinking = prompt.thinking
    if thinking.mode == "off":
        return None
    if rule is not None and (rule.thinking == "never" or (rule.default == "off" and not thinking.asked)):
        return None
    if thinking.effort in ("minimal", "low"):
        return line.thought[0]
    return "\n".join(line.thought)


def _is_shown(prompt: Prompt, rule: ModelRule | None) -> bool:
    """Whether the reply shows its thought. Models that hide it show a summary at most, if one is requested."""
    if rule is not None and rule.kind == "hidden":
        return prompt.thinking.summary is not None
    return prompt.thinking.show != "none"


def _choose_line(prompt: Prompt) -> _Line:
    question = _find_question(prompt)
    results = _find_results(prompt)
    tool = _choose_tool(question, prompt, results)
    if tool is not None:
        call = _build_call(tool, question, prompt)
        results = _find_earlier_results(call, prompt)
        if not results:
            names = ", ".join(call.arguments) or "nothing"
            return _Line((f"The tool {tool.name} can tell.", f"It is given: {names}."), call=call)
    if prompt.output is not None:
        return _answer_json(prompt.output, question)
    return _report_results(results, prompt) if results else _answer_text(question)


def _find_question(prompt: Prompt) -> str:
    """Return what the user said last, without the notes that agents add; only its two ends if it is long."""
    asked = (_read_words(message) for message in reversed(prompt.messages) if message.role == "user")
    question = next(filter(None, asked), "")
    if len(question) <= 2 * _READ_CHARACTERS:
        return question
    return f"{question[:_READ_CHARACTERS]}\n…\n{question[-_READ_CHARACTERS:]}"


def _read_words(message: Message) -> str:
    """Return the text of a message without its notes: texts inside a tag, which agents put beside a question."""
    texts = [part.text.strip() for part in message.parts if isinstance(part, Text)]
    return "\n".join(text for text in texts if not (text.startswith("<") and text.endswith(">"))).strip()


def _find_results(prompt: Prompt) -> list[ToolResult]:
    """Return the tool results that the model has not answered yet; none if the user said more after them."""
    latest: list[ToolResult] = []
    for message in reversed(prompt.messages):
        if message.role == "assistant" or (message.role == "user" and _read_words(message)):
            break
        latest[:0] = [part for part in message.parts if isinstance(part, ToolResult)]
    return latest


def _find_earlier_results(call: ToolCall, prompt: Prompt) -> list[ToolResult]:
    """Return the last result of a call that was made too often already: an agent that gets it again never ends."""
    equal = [
        made.id
        for message in prompt.messages
        for made in message.tool_calls
        if (made.name, made.arguments) == (call.name, call.arguments)
    ]
    if len(equal) < _MOST_EQUAL_CALLS:
        return []
    found = [part for message in prompt.messages for part in message.parts if isinstance(part, ToolResult)]
    return [result for result in found if result.call_id in equal][-1:]


# --- answers ----------------------------------------------------------------------------------------------------------


def _answer_text(question: str) -> _Line:
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
        quoted = _QUOTED_TEXT.search(question)
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
        f"You said: {_cut_text(question)}\n\nThat is more than I know. {_WHAT_I_AM} {_WHAT_I_CAN}",
    )


def _cut_text(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _count_letters(letter: str, word: str) -> _Line:
    places = [place for place, each in enumerate(word.lower(), 1) if each == letter]
    letters = "-".join(each.upper() if each.lower() == letter else each for each in word.lower())
    found = f"{letter} is at {', '.join(map(str, places))}." if places else f"There is no {letter}."
    times = "once" if len(places) == 1 else f"{len(places)} times"
    return _Line(
        (f"Spell it: {letters}.", found, f"That makes {len(places)}."), f'The letter {letter} is in "{word}" {times}.'
    )


# --- tools and JSON answers -------------------------------------------------------------------------------------------


def _choose_tool(question: str, prompt: Prompt, results: list[ToolResult]) -> Tool | None:
    """Return the tool that must be called, or that the question names by its name or by a word of it.

    After results only a tool that is demanded by its name and did not just answer: the actor ends a loop.
    """
    if prompt.tool_choice == "none":
        return None
    demanded = next((tool for tool in prompt.tools if tool.name == prompt.tool_choice), None)
    if results:
        answered = {result.name for result in results} | {_find_names_of_calls(prompt).get(r.call_id) for r in results}
        return demanded if demanded is not None and demanded.name not in answered else None
    if demanded is not None:
        return demanded
    asked = set(re.findall(r"\w+", question.lower()))
    tools = [tool for tool in prompt.tools if not _starts_agent(tool)]
    for tool in tools:
        words = {word for word in _split_name(tool) - _AGENTS if len(word) > 3}
        if tool.name.lower() in asked or words & asked:
            return tool
    return next(iter(tools or prompt.tools), None) if prompt.tool_choice == "required" else None


def _split_name(tool: Tool) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", tool.name.lower()))


def _starts_agent(tool: Tool) -> bool:
    words = _split_name(tool)
    return bool(words & _AGENTS and (words & _STARTS or words <= _AGENTS)) or tool.name.lower() == "task"


def _build_call(tool: Tool, question: str, prompt: Prompt) -> ToolCall:
    arguments = fill_schema(tool.parameters, question)
    # The id is unlike the others of the conversation, and has the strictest form that a host demands.
    state = prompt.state
    content = [tool.name, state.previous_response_id, state.conversation, *_find_names_of_calls(prompt)]
    number = blake2b(repr(content).encode(errors="replace"), digest_size=5).hexdigest()[:9]
    return ToolCall(number, tool.name, arguments if isinstance(arguments, dict) else {})


def _find_names_of_calls(prompt: Prompt) -> dict[str, str]:
    return {call.id: call.name for message in prompt.messages for call in message.tool_calls}


def _report_results(results: list[ToolResult], prompt: Prompt) -> _Line:
    names = _find_names_of_calls(prompt)
    named = [(result.name or names.get(result.call_id) or "the tool", result) for result in results]
    lines = [f"{name} {'failed' if result.is_error else 'says'}: {result.text.strip()}" for name, result in named]
    thought = f"{', '.join(name for name, _ in named)} answered. That can be passed on."
    return _Line((thought,), "\n".join(lines))


def _answer_json(output: OutputSchema | str, question: str) -> _Line:
    """Build an answer in JSON, in the schema if there is one."""
    plain = _answer_text(question)
    if isinstance(output, OutputSchema):
        document = fill_schema(output.schema, question)
        thought = (*plain.thought, f"The answer must fit the schema {output.name}.")
    else:
        document = {"answer": plain.answer}
        thought = (*plain.thought, "The answer must be JSON.")
    return _Line(thought, msgspec.json.encode(document).decode())


def _cut_to_limit(limit: int, thought: str | None, answer: str) -> tuple[str | None, str, bool]:
    """Cut thought and answer to this many words; return also whether nothing was cut."""
    cut: list[str] = []
    left = max(limit, 0)
    for text in (thought or "", answer):
        words = re.findall(r"\s*\S+", text)
        cut.append(text if len(words) <= left else "".join(words[:left]))
        left -= min(len(words), left)
    return (cut[0] or None) if thought is not None else None, cut[1], cut == [thought or "", answer]


# --- a JSON schema filled from the words of a question ----------------------------------------------------------------

_NUMBERS = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?")
_QUOTED_NAME = re.compile(r"[\"“«']([^\"”»']{1,80})[\"”»']")
_PLACED = re.compile(r"\b(?:in|at|of|for|from|about|to)\s+([^\W\d_][\w'-]*(?:\s+[A-Z][\w'-]*)*)")
_NAMED = re.compile(r"(?<=[\w,]\s)([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)")
_MOST_VALUES = 1000
_DEEPEST = 40
_SMALL_WORDS = frozenset({"the", "a", "an", "me", "my", "your", "it", "this", "that", "today", "now"})


def fill_schema(schema: Mapping[str, Any], words: str) -> Any:
    """Return a value that fits the schema's types, taken from the words where possible."""
    return _Filler(schema, words).value(schema)


class _Filler:
    """Fills one schema. What is beyond its bounds is filled with null, so that no schema takes long."""

    def __init__(self, root: Mapping[str, Any], words: str) -> None:
        self._root = root
        self._words = words
        self._numbers = iter(_NUMBERS.findall(words))
        self._names = _find_names(words)
        self._open: list[str] = []
        self._depth = 0
        self._left = _MOST_VALUES

    def value(self, schema: Any) -> Any:
        if not isinstance(schema, Mapping) or self._depth > _DEEPEST or not self._left:  # "true" allows any value
            return None
        self._left -= 1
        self._depth += 1
        filled = self._fill(schema)
        self._depth -= 1
        return filled

    def _fill(self, schema: Mapping[str, Any]) -> Any:
        if "const" in schema:
            return schema["const"]
        if isinstance(choices := schema.get("enum"), list) and choices:
            return self._choose(choices)
        if isinstance(address := schema.get("$ref"), str):
            return self._follow(address)
        for several in ("anyOf", "oneOf", "allOf"):
            if isinstance(options := schema.get(several), list) and options:
                return self.value(options[0])
        return self._fill_type(schema)

    def _fill_type(self, schema: Mapping[str, Any]) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        match kind[0] if isinstance(kind, list) and kind else kind:
            case "object":
                found, required = schema.get("properties"), schema.get("required")
                properties = found if isinstance(found, Mapping) else {}
                names = required if isinstance(required, list) else list(properties)
                return {name: self.value(properties.get(name, {})) for name in names if isinstance(name, str)}
            case "array":
                count = schema.get("minItems")
                number = min(count, _MOST_VALUES) if isinstance(count, int) else 1
                return [self.value(schema.get("items", {})) for _ in range(number)]
            case "integer":
                return int(float(next(self._numbers, "1")))
            case "number":
                return float(next(self._numbers, "1"))
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return next(self._names, _cut_text(self._words.strip()))

    def _choose(self, choices: list[Any]) -> Any:
        words = self._words.lower()
        return next((choice for choice in choices if isinstance(choice, str) and choice.lower() in words), choices[0])

    def _follow(self, address: str) -> Any:
        # A schema that contains itself would never end; fill it with null.
        if not address.startswith("#/") or address in self._open:
            return None
        place: Any = self._root
        for step in address[2:].split("/"):
            place = place.get(step) if isinstance(place, Mapping) else None
        self._open.append(address)
        filled = self.value(place)
        self._open.pop()
        return filled


def _find_names(words: str) -> Iterator[str]:
    """Yield candidates for a string: quoted words, words after "in" or "of", capitalised words."""
    seen: set[str] = set()
    for pattern in (_QUOTED_NAME, _PLACED, _NAMED):
        for name in pattern.findall(words):
            if name.lower() not in _SMALL_WORDS and name not in seen:
                seen.add(name)
                yield name
