"""Models of every dialect on a strict stage: turns with everything in them, for histories that are cut, trimmed, saved.

A script plays one turn after another by what it hears, so that any request can be put to it at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import asides
from asides import dialects
from asides.dialects.dialect import ServedRequest
from asides.history.plan import Plan, plan
from asides.providers.find import find_target
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.messages import Message, Prompt, user
from asides.values.parts import ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Seal, read_thinking
from asides.values.tools import Tool
from asides_stage.stage import Say, Stage
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules import RulesByDialect
from tests.decoding import reply_of

TOOLS = [Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})]
CANARY = "canary-9b1d"


class Model(NamedTuple):
    """A model, how it is asked to think, and what its thoughts are like."""

    name: str
    thinking: Any
    redacts: bool = False
    interleaves: bool = True
    """Whether it thinks again after its text; in a chat message all thinking is one field."""
    via: str | None = None

    def __str__(self) -> str:
        return self.name


MODELS = [
    Model("anthropic:claude-sonnet-4-5", 2000, redacts=True),
    Model("anthropic:claude-opus-4-6", "max", redacts=True),
    Model("anthropic:claude-opus-5-5", "low", redacts=True),
    Model("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", 2000, redacts=True),
    Model("bedrock:us.anthropic.claude-opus-5-5", "high", redacts=True),
    Model("openai-responses:gpt-5", "low"),
    Model("google:gemini-3-pro-preview", "low"),
    Model("deepseek:deepseek-reasoner", None, interleaves=False),
    Model("moonshot:kimi-k2-thinking", None, interleaves=False),
    Model("openrouter:anthropic/claude-sonnet-4.5", 2000, interleaves=False),
    Model("openrouter:openai/gpt-5", "low", interleaves=False),
    Model("minimax:MiniMax-M2", None, interleaves=False),
    Model("mistral:magistral-medium-latest", None, interleaves=False, via="content"),
    Model("cohere:command-a-reasoning-08-2025", True, interleaves=False),
    Model("ollama:qwen3", True, interleaves=False),
]


def played(model: Model, number: int, *, last: bool) -> Say:
    """A turn: a thought, a redacted one, words, another thought, and a call (but in the last turn)."""
    events: list[Event] = [
        ReplyStarted(None, f"reply_{number}"),
        ThinkingDelta(f"{CANARY} plan ", 0),
        ThinkingDelta(f"number {number}", 0),
    ]
    if model.via is not None:
        events[1:] = [ThinkingDelta(f"{CANARY} plan {number}", 0, "raw", "block", model.via)]
    if model.redacts:
        events.append(ThoughtSealed(Seal("redacted", f"cipher{number:02}"), 1, "hidden", "block"))
    events += [TextDelta(f"step {number} ", 2), TextDelta("and on", 2)]
    if model.interleaves:
        events += [ThinkingDelta(f"{CANARY} more ", 3), ThinkingDelta("thought", 3)]
    if last:
        events.append(TextDelta("done", 4))
    else:
        call = f"call{number:05}"
        events += [ToolCallDelta(4, call, "look_up"), ToolCallDelta(4, arguments='{"n": ')]
        events += [ToolCallDelta(4, arguments=f"{number}}}")]
    return Say(events=(*events, ReplyEnded(StopReason("stop" if last else "tool_calls"))))


def script(model: Model, loops: int = 1) -> Callable[[ServedRequest], Say]:
    """Each question is answered after so many calls. No two turns are alike, as no two of a model's are."""
    numbers = count(1)

    def play(request: ServedRequest) -> Say:
        done = 0
        for message in reversed(request.prompt.messages):
            if message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts):
                break
            done += sum(isinstance(part, ToolResult) for part in message.parts)
        return played(model, next(numbers), last=done >= loops)

    return play


class StageClient:
    """A client, a strict stage and a model. What it is asked is accepted, or the test fails."""

    def __init__(self, client: asides.Client, stage: Stage, model: Model) -> None:
        self.client = client
        self.stage = stage
        self.model = model
        self.options: dict[str, Any] = {"base_url": stage.url, "tools": TOOLS, "retries": 0}
        if model.thinking is not None:
            self.options["thinking"] = model.thinking

    def ask(self, messages: Sequence[Message]) -> asides.Reply:
        """The reply to this history."""
        return self.client.ask(self.model.name, list(messages), **self.options)

    def answered(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The history, gone on with until there is nothing left to run."""
        history = tuple(messages)
        for _ in range(6):
            reply = self.ask(history)
            message = reply.to_message()
            assert message is not None
            history = (*history, message)
            if not reply.tool_calls:
                return history
            results = tuple(ToolResult(call.id, "42", call.name) for call in reply.tool_calls)
            history = (*history, Message("tool", results))
        raise AssertionError("it never ended")

    def refused(self) -> list[str]:
        """What the stage did not take."""
        return [request.problem for request in self.stage.requests if request.problem is not None]


class StrictRules:
    """The rules of a strict stage without its sockets: what it would say to a request, and to a reply that was cut."""

    def __init__(self, model: Model, *, at_home: bool = False) -> None:
        """`at_home`: at the provider's own address, where all facts of its row hold."""
        self.model = model
        self.target = find_target(model.name, base_url=None if at_home else "http://127.0.0.1:9/v1")
        self.dialect = dialects.find_dialect(self.target.dialect)
        rules = RulesByDialect().find(self.target.dialect)
        assert rules is not None
        self._rules = rules
        self._play = script(model)

    def prompt(self, messages: Sequence[Message], **more: Any) -> Prompt:
        """What is asked: the history, the tools, the thinking."""
        given: dict[str, Any] = {"thinking": read_thinking(self.model.thinking)[0], "tools": tuple(TOOLS), **more}
        return Prompt(tuple(messages), **given)

    def request(self, messages: Sequence[Message], **more: Any) -> tuple[Request, Plan]:
        """The request that this history makes, and why."""
        planned = plan(self.prompt(messages, **more), self.target, on_conflict="adjust")
        made, _ = self.dialect.encode(planned.prompt, self.target)
        headers = {name.lower(): value for name, value in made.headers.items()}
        return Request(made.method, urlsplit(made.url).path, urlsplit(made.url).query, headers, made.body), planned

    def refusal(self, messages: Sequence[Message], **more: Any) -> str | None:
        """Why this history would be refused."""
        return self._rules.refuse(self.request(messages, **more)[0])

    def stream(self, messages: Sequence[Message], **more: Any) -> bytes:
        """The bytes of the reply."""
        request, _ = self.request(messages, **more)
        problem = self._rules.refuse(request)
        assert problem is None, problem
        served = self.dialect.read(request.body, request.path)
        events = self._play(served).events
        assert events is not None
        writer = self.dialect.writer(model=served.model, stream=True)
        return b"".join(writer.write([event]) for event in self._rules.seal(list(events), request))

    def reply(self, data: bytes) -> Reply:
        """What these bytes are, be they cut or whole."""
        return reply_of([data], self.target, self.target.dialect)[0]

    def answered(self, messages: Sequence[Message], **more: Any) -> tuple[Message, ...]:
        """The history, gone on with until there is nothing left to run."""
        history = tuple(messages)
        for _ in range(6):
            reply = self.reply(self.stream(history, **more))
            assert reply.complete
            message = reply.to_message()
            assert message is not None
            history = (*history, message)
            if not reply.tool_calls:
                return history
            results = tuple(ToolResult(call.id, "42", call.name) for call in reply.tool_calls)
            history = (*history, Message("tool", results))
        raise AssertionError("it never ended")

    def conversation(self, turns: int, **more: Any) -> tuple[Message, ...]:
        """A history of so many questions, each with a loop."""
        history: tuple[Message, ...] = ()
        for number in range(turns):
            history = self.answered((*history, question(number)), **more)
        return history


def question(number: int = 0) -> Message:
    """What a person says."""
    return user(f"question {number}")
