"""Clients in their own words: one for each dialect that callers of the relay speak, written by hand as an application
would write it, without an SDK and without the library's own reading and writing.

A client keeps its history in the format of its dialect and sends it back in one of several manners (`Echo`). No law is
here (test_relay).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from asides.wire.aws_frames import FrameReader

Wire: TypeAlias = dict[str, Any]
Echo: TypeAlias = Literal["faithful", "known", "unthinking", "unsigned", "blank"]
"""What a client sends back of a turn: all of it · only the fields that its dialect documents · nothing of the thinking
and of its state · the thinking without signatures · all of it, with other white space.
"""
ECHOES: tuple[Echo, ...] = ("faithful", "known", "unthinking", "unsigned", "blank")
Amount: TypeAlias = Literal["off", "low", "high"]
SCHEMA: Wire = {"type": "object", "properties": {"at": {"type": "integer"}}}
TOOL_NAMES = ("look", "feel")


class Call(NamedTuple):
    """A call of a tool, as a client has it."""

    id: str
    name: str
    arguments: Any


class Heard(NamedTuple):
    """What a client understood of a reply."""

    text: str
    thinking: str
    calls: tuple[Call, ...]
    items: list[Wire]
    """The turn in the client's own format."""


class Turn(NamedTuple):
    """One entry of a client's history."""

    role: Literal["user", "assistant", "tool"]
    items: list[Wire]
    calls: tuple[Call, ...] = ()


class Ask(NamedTuple):
    """What a request says besides the history."""

    model: str
    stream: bool = True
    thinking: Amount | None = None
    """None: it says nothing about thinking."""
    tools: bool = True
    system: str | None = "You look around."


_ADAPTIVE = re.compile(r"opus-4-[67]|(?:opus|sonnet|haiku|fable)-5")
"""The models of the maker of Messages that decide themselves how much they think."""


class Unreadable(AssertionError):
    """A client cannot make sense of a reply."""


class WireClient:
    """A client of one dialect."""

    dialect: ClassVar[str]

    def __init__(self, echo: Echo = "faithful") -> None:
        self.echo: Echo = echo
        self.turns: list[Turn] = []

    # --- the history --------------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Add what a person says."""
        self.turns.append(Turn("user", [self.write_user(text)]))

    def answer(self, results: dict[str, str]) -> None:
        """Add the results of the last turn's calls, by their ids. A call without one gets "nothing"."""
        calls = self.open_calls
        self.turns.append(Turn("tool", self.write_results([(call, results.get(call.id, "nothing")) for call in calls])))

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """The calls of the last turn that wait for results."""
        return self.turns[-1].calls if self.turns and self.turns[-1].role == "assistant" else ()

    def hear(self, body: bytes, ask: Ask) -> Heard:
        """Read a reply, and keep it in this client's manner. Raises `Unreadable`."""
        try:
            heard = self.read_stream(body) if ask.stream else self.read_whole(json.loads(body))
        except (LookupError, TypeError, ValueError, AttributeError) as problem:
            raise Unreadable(f"{self.dialect}: {problem!r} in {body[:3000]!r}") from problem
        if items := self.keep(deepcopy(heard.items)):
            self.turns.append(Turn("assistant", items, heard.calls))
        return heard

    def fork(self, place: int | None = None) -> WireClient:
        """Return another client with the turns before this place."""
        other = type(self)(self.echo)
        other.turns = deepcopy(self.turns[:place])
        return other

    def rewrite(self, place: int, text: str) -> None:
        """Replace the words of a turn by others, as people do who edit a history."""
        turn = self.turns[place]
        if turn.role == "user":
            self.turns[place] = Turn("user", [self.write_user(text)])
        elif turn.role == "assistant":
            self.turns[place] = turn._replace(items=self.reword(deepcopy(turn.items), lambda _: text))

    def find_forks(self) -> list[int]:
        """Return the places where a history may end: every call before them has its result."""
        return [
            place
            for place in range(len(self.turns) + 1)
            if place == 0 or not (self.turns[place - 1].role == "assistant" and self.turns[place - 1].calls)
        ]

    def keep(self, items: list[Wire]) -> list[Wire]:
        """Return what this client keeps of a turn, in its manner."""
        match self.echo:
            case "faithful":
                return items
            case "known":
                return self.keep_known(items)
            case "unthinking":
                return self.drop_thinking(self.keep_known(items))
            case "unsigned":
                return self.drop_signatures(self.keep_known(items))
            case "blank":
                return self.reword(items, lambda text: f" {text.strip()}\n" if text.strip() else text)

    # --- a dialect ----------------------------------------------------------------------------------------------------

    def address(self, ask: Ask) -> tuple[str, str]:
        """Return the path and the query of a request."""
        raise NotImplementedError

    def write(self, ask: Ask) -> Wire:
        """Write the body of a request."""
        raise NotImplementedError

    def write_user(self, text: str) -> Wire:
        """Write what a person says."""
        return {"role": "user", "content": text}

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        """Write the results of calls."""
        raise NotImplementedError

    def read_whole(self, document: Wire) -> Heard:
        """Read a whole reply."""
        raise NotImplementedError

    def read_stream(self, body: bytes) -> Heard:
        """Read a streamed reply: the whole one that it amounts to, by the rules of the dialect."""
        raise NotImplementedError

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        """Leave out every field that the dialect does not document."""
        raise NotImplementedError

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        """Leave out thinking, and what stands for it."""
        raise NotImplementedError

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        """Leave out only what stands for thinking."""
        raise NotImplementedError

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        """Change the words of the answer."""
        raise NotImplementedError

    @property
    def items(self) -> list[Wire]:
        """The history, in the format of the dialect."""
        return [item for turn in self.turns for item in turn.items]


def _read_sse(body: bytes) -> Iterator[Wire]:
    """Yield the documents of server-sent events."""
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = b"\n".join(line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
        if data and data != b"[DONE]":
            document = json.loads(data)
            if "error" in document and document.get("type") != "response.completed" and document["error"]:
                raise Unreadable(f"the stream ended with {document['error']}")
            yield document


def _pick(document: Wire, *names: str) -> Wire:
    return {name: document[name] for name in names if name in document}


def _function(name: str) -> Wire:
    return {"name": name, "description": f"to {name}", "parameters": SCHEMA}


# --- chat completions -------------------------------------------------------------------------------------------------


class ChatClient(WireClient):
    """Chat completions. Thinking has no documented field; the usual one is `reasoning_content`."""

    dialect = "openai_chat"
    _OPAQUE = ("reasoning_details", "extra_content", "thought_signature")
    _THINKING = ("reasoning_content", "reasoning", "thinking")

    def address(self, ask: Ask) -> tuple[str, str]:
        return "/v1/chat/completions", ""

    def write(self, ask: Ask) -> Wire:
        system = [] if ask.system is None else [{"role": "system", "content": ask.system}]
        body: Wire = {"model": ask.model, "messages": [*system, *self.items], "stream": ask.stream}
        if ask.stream:
            body["stream_options"] = {"include_usage": True}
        if ask.thinking is not None:
            body["reasoning_effort"] = "none" if ask.thinking == "off" else ask.thinking
        if ask.tools:
            body["tools"] = [{"type": "function", "function": _function(name)} for name in TOOL_NAMES]
        return body

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        return [{"role": "tool", "tool_call_id": call.id, "content": result} for call, result in results]

    def read_whole(self, document: Wire) -> Heard:
        return self._hear(document["choices"][0]["message"])

    def read_stream(self, body: bytes) -> Heard:
        message: Wire = {"role": "assistant", "content": ""}
        calls: dict[int, Wire] = {}
        finished = False
        for chunk in _read_sse(body):
            for choice in chunk["choices"]:
                finished = finished or choice.get("finish_reason") is not None
                for name, value in choice["delta"].items():
                    if name == "tool_calls":
                        for piece in value:
                            self._add_piece(calls.setdefault(piece["index"], {}), piece)
                    elif isinstance(value, list):
                        message.setdefault(name, []).extend(value)
                    elif isinstance(value, str) and name != "role":
                        message[name] = message.get(name, "") + value
                    elif value is not None:
                        message[name] = value
        if not finished or not body.endswith(b"data: [DONE]\n\n"):
            raise Unreadable("the stream ended too early")
        if calls:
            message["tool_calls"] = [calls[index] for index in sorted(calls)]
        return self._hear(message)

    def _add_piece(self, call: Wire, piece: Wire) -> None:
        for name, value in piece.items():
            if name == "function":
                function = call.setdefault("function", {"name": "", "arguments": ""})
                for field, text in value.items():
                    function[field] += text or ""
            elif name != "index":
                call[name] = value

    def _hear(self, message: Wire) -> Heard:
        calls = tuple(
            Call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"] or "{}"))
            for call in message.get("tool_calls") or ()
        )
        thinking = next((message[name] for name in self._THINKING if message.get(name)), "")
        return Heard(message.get("content") or "", thinking, calls, [message])

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        for message in items:
            for call in message.get("tool_calls") or ():
                call.pop("extra_content", None)
        return [_pick(message, "role", "content", "refusal", "tool_calls", *self._kept_thinking) for message in items]

    @property
    def _kept_thinking(self) -> tuple[str, ...]:
        # A client that drops only signatures keeps the thinking, and so knows its field.
        return self._THINKING if self.echo == "unsigned" else ()

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        return [{name: value for name, value in item.items() if name not in self._THINKING} for item in items]

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        return [{name: value for name, value in item.items() if name not in self._OPAQUE} for item in items]

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        for message in items:
            if message.get("content"):
                message["content"] = change(message["content"])
            for call in message.get("tool_calls") or ():
                call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"] or "{}"), indent=1)
        return items


# --- responses --------------------------------------------------------------------------------------------------------


class ResponsesClient(WireClient):
    """Responses, with the whole history in every request and nothing stored."""

    dialect = "openai_responses"
    _KNOWN: ClassVar[dict[str, tuple[str, ...]]] = {
        "message": ("type", "id", "role", "status", "content"),
        "reasoning": ("type", "id", "summary", "content", "encrypted_content"),
        "function_call": ("type", "id", "call_id", "name", "arguments", "status"),
    }

    def address(self, ask: Ask) -> tuple[str, str]:
        return "/v1/responses", ""

    def write(self, ask: Ask) -> Wire:
        body: Wire = {"model": ask.model, "input": self.items, "stream": ask.stream, "store": False}
        body["include"] = ["reasoning.encrypted_content"]
        if ask.system is not None:
            body["instructions"] = ask.system
        if ask.thinking is not None:
            effort = "none" if ask.thinking == "off" else ask.thinking
            body["reasoning"] = {"effort": effort, **({} if ask.thinking == "off" else {"summary": "auto"})}
        if ask.tools:
            body["tools"] = [{"type": "function", **_function(name), "strict": False} for name in TOOL_NAMES]
        return body

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        return [{"type": "function_call_output", "call_id": call.id, "output": result} for call, result in results]

    def read_whole(self, document: Wire) -> Heard:
        if document["status"] != "completed":
            raise Unreadable(f"the response is {document['status']}")
        texts = [part["text"] for item in document["output"] for part in self._parts_of(item, "message", "content")]
        thoughts = [
            part["text"]
            for item in document["output"]
            for part in (*self._parts_of(item, "reasoning", "summary"), *self._parts_of(item, "reasoning", "content"))
        ]
        calls = tuple(
            Call(item["call_id"], item["name"], json.loads(item["arguments"] or "{}"))
            for item in document["output"]
            if item["type"] == "function_call"
        )
        return Heard("".join(texts), "\n\n".join(thoughts), calls, document["output"])

    def _parts_of(self, item: Wire, kind: str, field: str) -> list[Wire]:
        return (item.get(field) or []) if item["type"] == kind else []

    def read_stream(self, body: bytes) -> Heard:
        done: dict[int, Wire] = {}
        said: list[str] = []
        numbers: list[int] = []
        for event in _read_sse(body):
            numbers.append(event["sequence_number"])
            match event["type"]:
                case "response.output_item.done":
                    done[event["output_index"]] = event["item"]
                case "response.output_text.delta":
                    said.append(event["delta"])
                case "response.completed":
                    whole = event["response"]
                    if whole["output"] != [done[index] for index in sorted(done)]:
                        raise Unreadable("the items of the stream are not those of its response")
                    if numbers != list(range(len(numbers))):
                        raise Unreadable("the events are not numbered in order")
                    heard = self.read_whole(whole)
                    if heard.text != "".join(said):
                        raise Unreadable("the deltas are not the text")
                    return heard
                case _:
                    pass
        raise Unreadable("the stream ended too early")

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        return [_pick(item, *self._KNOWN[item["type"]]) for item in items if item["type"] in self._KNOWN]

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        # Ids belong to the items before them, so a client that drops those drops the ids.
        return [
            {name: value for name, value in item.items() if name != "id"}
            for item in items
            if item["type"] != "reasoning"
        ]

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        return [{name: value for name, value in item.items() if name != "encrypted_content"} for item in items]

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        for item in items:
            for part in self._parts_of(item, "message", "content"):
                part["text"] = change(part["text"])
            if item["type"] == "function_call":
                item["arguments"] = json.dumps(json.loads(item["arguments"] or "{}"), indent=1)
        return items


class StoredResponsesClient(ResponsesClient):
    """Responses whose server keeps the history: a request has the id of the last response, and what came after it."""

    def write(self, ask: Ask) -> Wire:
        last = max((place for place, turn in enumerate(self.turns) if turn.role == "assistant"), default=-1)
        body = super().write(ask)
        body["input"] = [item for turn in self.turns[last + 1 :] for item in turn.items]
        body["store"] = True
        if last >= 0:
            body["previous_response_id"] = self.turns[last].items[0]["response"]
        return body

    def read_whole(self, document: Wire) -> Heard:
        return super().read_whole(document)._replace(items=[{"response": document["id"]}])

    def keep(self, items: list[Wire]) -> list[Wire]:
        return items

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        return items


# --- messages ---------------------------------------------------------------------------------------------------------


class MessagesClient(WireClient):
    """Anthropic's messages."""

    dialect = "anthropic"
    _KNOWN: ClassVar[dict[str, tuple[str, ...]]] = {
        "text": ("type", "text"),
        "thinking": ("type", "thinking", "signature"),
        "redacted_thinking": ("type", "data"),
        "tool_use": ("type", "id", "name", "input"),
    }

    def address(self, ask: Ask) -> tuple[str, str]:
        return "/v1/messages", "beta=true"

    def write(self, ask: Ask) -> Wire:
        body: Wire = {"model": ask.model, "max_tokens": 8000, "messages": self.items, "stream": ask.stream}
        if ask.system is not None:
            body["system"] = [{"type": "text", "text": ask.system}]
        if ask.thinking == "off":
            body["thinking"] = {"type": "disabled"}
        elif ask.thinking is not None and _ADAPTIVE.search(ask.model):
            body |= {"thinking": {"type": "adaptive"}, "output_config": {"effort": ask.thinking}}
        elif ask.thinking is not None:
            body["thinking"] = {"type": "enabled", "budget_tokens": 2000}
        if ask.tools:
            body["tools"] = [{"name": name, "description": "to do", "input_schema": SCHEMA} for name in TOOL_NAMES]
        return body

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": result} for call, result in results]
        return [{"role": "user", "content": blocks}]

    def read_whole(self, document: Wire) -> Heard:
        content: list[Wire] = document["content"]
        if document["role"] != "assistant" or document["type"] != "message" or document["stop_reason"] is None:
            raise Unreadable("this is no whole message")
        calls = tuple(
            Call(block["id"], block["name"], block["input"]) for block in content if block["type"] == "tool_use"
        )
        thoughts = [block["thinking"] for block in content if block["type"] == "thinking"]
        text = "".join(block["text"] for block in content if block["type"] == "text")
        return Heard(text, "\n\n".join(thoughts), calls, [{"role": "assistant", "content": content}] if content else [])

    def read_stream(self, body: bytes) -> Heard:
        message: Wire = {}
        content: list[Wire] = []
        arguments: dict[int, str] = {}
        is_open = ended = False
        for event in _read_sse(body):
            match event["type"]:
                case "message_start":
                    message = event["message"]
                    _ = message["usage"]["input_tokens"], message["usage"]["output_tokens"]
                case "content_block_start":
                    if is_open or event["index"] != len(content):
                        raise Unreadable("a block begins before the last one ended")
                    is_open = True
                    content.append(event["content_block"])
                case "content_block_delta":
                    if not is_open or event["index"] != len(content) - 1:
                        raise Unreadable("a delta of a block that is not open")
                    self._add_delta(content[-1], event["delta"], arguments, event["index"])
                case "content_block_stop":
                    is_open = False
                    if arguments.get(event["index"]):
                        content[-1]["input"] = json.loads(arguments[event["index"]])
                case "message_delta":
                    message |= event["delta"]
                case "message_stop":
                    ended = True
                case _:
                    pass
        if not ended or is_open:
            raise Unreadable("the stream ended too early")
        return self.read_whole({**message, "content": content})

    def _add_delta(self, block: Wire, delta: Wire, arguments: dict[int, str], index: int) -> None:
        match delta["type"]:
            case "text_delta":
                block["text"] += delta["text"]
            case "thinking_delta":
                block["thinking"] += delta["thinking"]
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]
            case "input_json_delta":
                arguments[index] = arguments.get(index, "") + delta["partial_json"]
            case kind:
                raise Unreadable(f"what is {kind}?")

    def _with_blocks(self, items: list[Wire], change: Callable[[list[Wire]], list[Wire]]) -> list[Wire]:
        changed = [{**item, "content": change(item["content"])} for item in items]
        return [item for item in changed if item["content"]]

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        known = self._KNOWN
        return self._with_blocks(
            items, lambda blocks: [_pick(block, *known[block["type"]]) for block in blocks if block["type"] in known]
        )

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        return self._with_blocks(items, lambda blocks: [block for block in blocks if "thinking" not in block["type"]])

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        def change(blocks: list[Wire]) -> list[Wire]:
            return [
                {**block, "signature": ""} if block["type"] == "thinking" else block
                for block in blocks
                if block["type"] != "redacted_thinking"
            ]

        return self._with_blocks(items, change)

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        return self._with_blocks(
            items,
            lambda blocks: [
                {**block, "text": change(block["text"])} if block["type"] == "text" else block for block in blocks
            ],
        )


# --- gemini -----------------------------------------------------------------------------------------------------------


class InteractionsClient(WireClient):
    """Gemini Interactions, with nothing stored: the steps of each turn go back."""

    dialect = "gemini_interactions"

    def address(self, ask: Ask) -> tuple[str, str]:
        del ask
        return "/v1beta/interactions", ""

    def write(self, ask: Ask) -> Wire:
        body: Wire = {"model": ask.model, "input": self.items, "stream": ask.stream, "store": False}
        if ask.system is not None:
            body["system_instruction"] = ask.system
        if ask.thinking is not None and ask.thinking != "off":
            body["generation_config"] = {"thinking_level": ask.thinking, "thinking_summaries": "auto"}
        if ask.tools:
            body["tools"] = [
                {"type": "function", "name": name, "description": f"to {name}", "parameters": SCHEMA}
                for name in TOOL_NAMES
            ]
        return body

    def write_user(self, text: str) -> Wire:
        return {"type": "user_input", "content": [{"type": "text", "text": text}]}

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        return [
            {"type": "function_result", "call_id": call.id, "name": call.name, "result": result}
            for call, result in results
        ]

    def read_whole(self, document: Wire) -> Heard:
        return self._hear(document["steps"])

    def read_stream(self, body: bytes) -> Heard:
        steps: dict[int, Wire] = {}
        arguments: dict[int, str] = {}
        finished = False
        for event in _read_sse(body):
            match event["event_type"]:
                case "step.start":
                    steps[event["index"]] = deepcopy(event["step"])
                case "step.delta":
                    self._add(steps[event["index"]], event["index"], event["delta"], arguments)
                case "interaction.completed":
                    finished = True
                case _:
                    pass
        if not finished:
            raise Unreadable("the stream ended too early")
        for index, text in arguments.items():
            steps[index]["arguments"] = json.loads(text)
        return self._hear([steps[index] for index in sorted(steps)])

    @staticmethod
    def _add(step: Wire, index: int, delta: Wire, arguments: dict[int, str]) -> None:
        match delta["type"]:
            case "text":
                contents = step.setdefault("content", [])
                if contents and contents[-1]["type"] == "text":
                    contents[-1]["text"] += delta["text"]
                else:
                    contents.append({"type": "text", "text": delta["text"]})
            case "thought_summary":
                step.setdefault("summary", []).append(delta["content"])
            case "thought_signature":
                step["signature"] = delta["signature"]
            case "arguments_delta":
                arguments[index] = arguments.get(index, "") + delta["arguments"]
            case _:
                pass

    def _hear(self, steps: list[Wire]) -> Heard:
        contents = [content for step in steps for content in step.get("content", ())]
        summaries = [content for step in steps for content in step.get("summary", ())]
        calls = tuple(
            Call(step["id"], step["name"], step["arguments"]) for step in steps if step["type"] == "function_call"
        )
        text = "".join(content.get("text", "") for content in contents)
        return Heard(text, "".join(content.get("text", "") for content in summaries), calls, steps)

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        return [_pick(item, "type", "content", "summary", "signature", "id", "name", "arguments") for item in items]

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        return [item for item in items if item["type"] != "thought"]

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        return [{name: value for name, value in item.items() if name != "signature"} for item in items]

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        for item in items:
            for content in item.get("content", ()) if item["type"] == "model_output" else ():
                content["text"] = change(content["text"])
        return items


class GeminiClient(WireClient):
    """Gemini's generateContent."""

    dialect = "gemini"

    def address(self, ask: Ask) -> tuple[str, str]:
        verb = "streamGenerateContent" if ask.stream else "generateContent"
        return f"/v1beta/models/{quote(ask.model, safe='')}:{verb}", "alt=sse" if ask.stream else ""

    def write(self, ask: Ask) -> Wire:
        body: Wire = {"contents": self.items}
        if ask.system is not None:
            body["systemInstruction"] = {"parts": [{"text": ask.system}]}
        if ask.thinking == "off":
            body["generationConfig"] = {"thinkingConfig": {"thinkingBudget": 0}}
        elif ask.thinking is not None:
            config = {"includeThoughts": True, "thinkingLevel": ask.thinking.upper()}
            body["generationConfig"] = {"thinkingConfig": config}
        if ask.tools:
            declared = [
                {"name": name, "description": f"to {name}", "parametersJsonSchema": SCHEMA} for name in TOOL_NAMES
            ]
            body["tools"] = [{"functionDeclarations": declared}]
        return body

    def write_user(self, text: str) -> Wire:
        return {"role": "user", "parts": [{"text": text}]}

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        parts = [
            {
                "functionResponse": {
                    **({"id": call.id} if call.id else {}),
                    "name": call.name,
                    "response": {"result": result},
                }
            }
            for call, result in results
        ]
        return [{"role": "user", "parts": parts}]

    def read_whole(self, document: Wire) -> Heard:
        return self._hear(document["candidates"][0]["content"].get("parts", []))

    def read_stream(self, body: bytes) -> Heard:
        parts: list[Wire] = []
        finished = False
        for chunk in _read_sse(body):
            for candidate in chunk.get("candidates", ()):
                parts += candidate.get("content", {}).get("parts", [])
                finished = finished or bool(candidate.get("finishReason"))
        if not finished:
            raise Unreadable("the stream ended too early")
        return self._hear(parts)

    def _hear(self, parts: list[Wire]) -> Heard:
        text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        thinking = "".join(part.get("text", "") for part in parts if part.get("thought"))
        calls = tuple(
            Call(part["functionCall"].get("id", ""), part["functionCall"]["name"], part["functionCall"].get("args", {}))
            for part in parts
            if "functionCall" in part
        )
        return Heard(text, thinking, calls, [{"role": "model", "parts": parts}] if parts else [])

    def _with_parts(self, items: list[Wire], change: Callable[[list[Wire]], list[Wire]]) -> list[Wire]:
        changed = [{**item, "parts": change(item["parts"])} for item in items]
        return [item for item in changed if item["parts"]]

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        return self._with_parts(
            items,
            lambda parts: [_pick(part, "text", "thought", "thoughtSignature", "functionCall") for part in parts],
        )

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        return self._with_parts(
            self.drop_signatures(items), lambda parts: [part for part in parts if not part.get("thought")]
        )

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        def change(parts: list[Wire]) -> list[Wire]:
            return [{name: value for name, value in part.items() if name != "thoughtSignature"} for part in parts]

        return self._with_parts(items, change)

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        def reworded(parts: list[Wire]) -> list[Wire]:
            return [
                {**part, "text": change(part["text"])} if part.get("text") and not part.get("thought") else part
                for part in parts
            ]

        return self._with_parts(items, reworded)


# --- ollama -----------------------------------------------------------------------------------------------------------


class OllamaClient(WireClient):
    """Ollama's chat. A client that knows only the documented fields has no ids of calls."""

    dialect = "ollama"

    def address(self, ask: Ask) -> tuple[str, str]:
        return "/api/chat", ""

    def write(self, ask: Ask) -> Wire:
        system = [] if ask.system is None else [{"role": "system", "content": ask.system}]
        body: Wire = {"model": ask.model, "messages": [*system, *self.items], "stream": ask.stream}
        if ask.thinking is not None:
            body["think"] = {"off": False, "low": True, "high": "high"}[ask.thinking]
        if ask.tools:
            body["tools"] = [{"type": "function", "function": _function(name)} for name in TOOL_NAMES]
        return body

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        ids = self.echo in ("faithful", "blank")
        return [
            {
                "role": "tool",
                "tool_name": call.name,
                "content": result,
                **({"tool_call_id": call.id} if ids else {}),
            }
            for call, result in results
        ]

    def read_whole(self, document: Wire) -> Heard:
        if document["done"] is not True:
            raise Unreadable("this is no whole reply")
        message = document["message"]
        calls = tuple(
            Call(call.get("id", ""), call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        )
        return Heard(message.get("content", ""), message.get("thinking", ""), calls, [message])

    def read_stream(self, body: bytes) -> Heard:
        message: Wire = {"role": "assistant", "content": ""}
        document: Wire = {"done": False}
        for line in body.splitlines():
            document = json.loads(line)
            if "error" in document:
                raise Unreadable(f"the stream ended with {document['error']}")
            for name, value in document["message"].items():
                if isinstance(value, list):
                    message.setdefault(name, []).extend(value)
                elif name != "role":
                    message[name] = message.get(name, "") + value
        return self.read_whole({**document, "message": message})

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        kept = [_pick(item, "role", "content", "thinking", "tool_calls") for item in items]
        for message in kept:
            if calls := message.get("tool_calls"):
                message["tool_calls"] = [{"function": _pick(call["function"], "name", "arguments")} for call in calls]
        return kept

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        return [_pick(item, "role", "content", "tool_calls") for item in items]

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        return items

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        return [{**item, "content": change(item["content"])} if item.get("content") else item for item in items]


# --- cohere -----------------------------------------------------------------------------------------------------------


class CohereClient(WireClient):
    """Cohere's v2 chat."""

    dialect = "cohere"

    def address(self, ask: Ask) -> tuple[str, str]:
        return "/v2/chat", ""

    def write(self, ask: Ask) -> Wire:
        system = [] if ask.system is None else [{"role": "system", "content": ask.system}]
        body: Wire = {"model": ask.model, "messages": [*system, *self.items], "stream": ask.stream}
        if ask.thinking is not None:
            amounts: dict[Amount, Wire] = {
                "off": {"type": "disabled"},
                "low": {"type": "enabled", "token_budget": 1500},
                "high": {"type": "enabled"},
            }
            body["thinking"] = amounts[ask.thinking]
        if ask.tools:
            body["tools"] = [{"type": "function", "function": _function(name)} for name in TOOL_NAMES]
        return body

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        return [{"role": "tool", "tool_call_id": call.id, "content": result} for call, result in results]

    def read_whole(self, document: Wire) -> Heard:
        message = document["message"]
        content = message.get("content") or []
        calls = tuple(
            Call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"] or "{}"))
            for call in message.get("tool_calls") or ()
        )
        text = "".join(item["text"] for item in content if item["type"] == "text")
        thoughts = [item["thinking"] for item in content if item["type"] == "thinking"]
        is_empty = not content and not calls
        return Heard(text, "\n\n".join(thoughts), calls, [] if is_empty else [message])

    def read_stream(self, body: bytes) -> Heard:
        message: Wire = {"role": "assistant", "content": [], "tool_calls": []}
        is_open = ended = False
        for event in _read_sse(body):
            said: Wire = (event.get("delta") or {}).get("message") or {}
            match event["type"]:
                case "content-start":
                    if is_open or event["index"] != len(message["content"]):
                        raise Unreadable("an item begins before the last one ended")
                    is_open = True
                    message["content"].append(said["content"])
                case "content-delta":
                    for name, text in said["content"].items():
                        message["content"][event["index"]][name] += text
                case "content-end":
                    is_open = False
                case "tool-plan-delta":
                    message["tool_plan"] = message.get("tool_plan", "") + said["tool_plan"]
                case "tool-call-start":
                    message["tool_calls"].append(said["tool_calls"])
                case "tool-call-delta":
                    function = message["tool_calls"][event["index"]]["function"]
                    function["arguments"] += said["tool_calls"]["function"]["arguments"]
                case "message-end":
                    ended = True
                case _:
                    pass
        if not ended or is_open:
            raise Unreadable("the stream ended too early")
        return self.read_whole({"message": {name: value for name, value in message.items() if value}})

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        return [_pick(item, "role", "content", "tool_plan", "tool_calls", "citations") for item in items]

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        for item in items:
            item["content"] = [part for part in item.get("content", ()) if part["type"] != "thinking"]
        return [
            {name: value for name, value in item.items() if value}
            for item in items
            if item["content"] or item.get("tool_calls")
        ]

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        return items

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        for item in items:
            for part in item.get("content", ()):
                if part["type"] == "text":
                    part["text"] = change(part["text"])
        return items


# --- converse ---------------------------------------------------------------------------------------------------------


class ConverseClient(WireClient):
    """Bedrock's Converse."""

    dialect = "bedrock"

    def address(self, ask: Ask) -> tuple[str, str]:
        return f"/model/{quote(ask.model, safe='')}/converse{'-stream' if ask.stream else ''}", ""

    def write(self, ask: Ask) -> Wire:
        body: Wire = {"messages": self.items, "inferenceConfig": {"maxTokens": 8000}}
        if ask.system is not None:
            body["system"] = [{"text": ask.system}]
        if ask.thinking is not None:
            off = ask.thinking == "off"
            thinking: Wire = {"type": "disabled"} if off else {"type": "enabled", "budget_tokens": 2000}
            body["additionalModelRequestFields"] = {"thinking": thinking}
        if ask.tools:
            body["toolConfig"] = {
                "tools": [
                    {"toolSpec": {"name": name, "description": f"to {name}", "inputSchema": {"json": SCHEMA}}}
                    for name in TOOL_NAMES
                ]
            }
        return body

    def write_user(self, text: str) -> Wire:
        return {"role": "user", "content": [{"text": text}]}

    def write_results(self, results: list[tuple[Call, str]]) -> list[Wire]:
        blocks = [{"toolResult": {"toolUseId": call.id, "content": [{"text": result}]}} for call, result in results]
        return [{"role": "user", "content": blocks}]

    def read_whole(self, document: Wire) -> Heard:
        if not document["stopReason"]:
            raise Unreadable("this is no whole reply")
        message = document["output"]["message"]
        content: list[Wire] = message["content"]
        thoughts = [
            block["reasoningContent"]["reasoningText"]["text"]
            for block in content
            if "reasoningText" in block.get("reasoningContent", {})
        ]
        calls = tuple(
            Call(block["toolUse"]["toolUseId"], block["toolUse"]["name"], block["toolUse"]["input"])
            for block in content
            if "toolUse" in block
        )
        text = "".join(block.get("text", "") for block in content)
        return Heard(text, "\n\n".join(thoughts), calls, [message] if content else [])

    def read_stream(self, body: bytes) -> Heard:
        content: dict[int, Wire] = {}
        stop = ""
        closed = -1
        for frame in FrameReader().feed(body):
            kind, event = frame.headers[":event-type"], json.loads(frame.payload)
            index = event.get("contentBlockIndex", -1)
            match kind:
                case "contentBlockStart":
                    content[index] = {"toolUse": {**event["start"]["toolUse"], "input": ""}}
                case "contentBlockDelta":
                    if index <= closed:
                        raise Unreadable("a delta of a block that has ended")
                    self._add_delta(content.setdefault(index, {}), event["delta"])
                case "contentBlockStop":
                    closed = index
                case "messageStop":
                    stop = event["stopReason"]
                case _:
                    pass
        for block in content.values():
            if "toolUse" in block:
                block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
        message = {"role": "assistant", "content": [content[index] for index in sorted(content)]}
        return self.read_whole({"output": {"message": message}, "stopReason": stop})

    def _add_delta(self, block: Wire, delta: Wire) -> None:
        match delta:
            case {"text": text}:
                block["text"] = block.get("text", "") + text
            case {"toolUse": {"input": text}}:
                block["toolUse"]["input"] += text
            case {"reasoningContent": {"redactedContent": data}}:
                block["reasoningContent"] = {"redactedContent": data}
            case {"reasoningContent": pieces}:
                thought = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})["reasoningText"]
                for name, text in pieces.items():
                    thought[name] = thought.get(name, "") + text
            case _:
                raise Unreadable(f"what is {delta}?")

    def _with_blocks(self, items: list[Wire], change: Callable[[list[Wire]], list[Wire]]) -> list[Wire]:
        changed = [{**item, "content": change(item["content"])} for item in items]
        return [item for item in changed if item["content"]]

    def keep_known(self, items: list[Wire]) -> list[Wire]:
        return items

    def drop_thinking(self, items: list[Wire]) -> list[Wire]:
        return self._with_blocks(items, lambda blocks: [block for block in blocks if "reasoningContent" not in block])

    def drop_signatures(self, items: list[Wire]) -> list[Wire]:
        def change(blocks: list[Wire]) -> list[Wire]:
            kept = [block for block in blocks if "redactedContent" not in block.get("reasoningContent", {})]
            for block in kept:
                if "reasoningContent" in block:
                    block["reasoningContent"]["reasoningText"].pop("signature", None)
            return kept

        return self._with_blocks(items, change)

    def reword(self, items: list[Wire], change: Callable[[str], str]) -> list[Wire]:
        return self._with_blocks(
            items,
            lambda blocks: [{**block, "text": change(block["text"])} if "text" in block else block for block in blocks],
        )


CLIENTS: dict[str, type[WireClient]] = {
    kind.dialect: kind
    for kind in (
        ChatClient,
        ResponsesClient,
        MessagesClient,
        GeminiClient,
        InteractionsClient,
        OllamaClient,
        CohereClient,
        ConverseClient,
    )
}
"""The clients, by their dialects."""
ALL_CLIENTS: dict[str, type[WireClient]] = {**CLIENTS, "openai_responses, stored": StoredResponsesClient}
