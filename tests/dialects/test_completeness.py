"""Every dialect handles every kind of part, event and setting: it sends it, converts it, or gives a notice.

When you add a kind, add a sample here: the tests then name each dialect that drops it without a notice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from asides.dialects import DIALECTS, find_dialect, plain_row
from asides.dialects.dialect import HttpRequest
from asides.providers.provider import Target
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.messages import Message, OutputSchema, Prompt, ProviderState, Role, Sampling, user
from asides.values.notices import Notice
from asides.values.parts import (
    Commentary,
    File,
    Image,
    Part,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool
from asides.values.usage import Usage

MARK = "marked-sample"
_NATIVE = f'{{"type":"odd","odd":"{MARK}"}}'

PARTS: dict[type[Any], Part] = {
    Text: Text(MARK),
    Commentary: Commentary(MARK),
    Thought: Thought(MARK, "raw", "field", seals=(Seal("signature", "signed"),)),
    ToolCall: ToolCall(MARK, "look", {"at": "it"}),
    ToolResult: ToolResult("call_1", MARK, "look"),
    Image: Image(data=MARK.encode(), media_type="image/png"),
    File: File(MARK, MARK.encode(), media_type="text/plain"),
    Refusal: Refusal(MARK),
    ServerTool: ServerTool("odd", json=_NATIVE),
    UnknownPart: UnknownPart(_NATIVE),
}
# Parts that a dialect leaves out on purpose and without a notice: (part, role) and the reason.
_SILENT: dict[tuple[str, type[Any], Role], str] = {
    ("anthropic", Refusal, "assistant"): "the provider wrote it about the reply; it is no part of it",
    ("bedrock", Refusal, "assistant"): "the provider wrote it about the reply; it is no part of it",
}

SETTINGS: dict[str, Any] = {
    "system": "be brief",
    "thinking": Thinking(mode="on", effort="high"),
    "tools": (Tool("look", "see", {"type": "object"}),),
    "cache": "1h",
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "output": OutputSchema("answer", {"type": "object"}),
    "max_tokens": 77,
    "sampling": Sampling(temperature=0.5),
    "stop": ("END",),
    "stream": False,
    "metadata": {"a": "b"},
    "user": "me",
    "state": ProviderState(store=True),
    "extra": {"odd": 1},
    "begun_thinking": MARK,
    "compaction": 60_000,
}
SAMPLES: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 5,
    "min_p": 0.5,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "repetition_penalty": 1.5,
    "logit_bias": {"1": 1.0},
    "logprobs": True,
    "top_logprobs": 2,
    "seed": 5,
}

EVENTS: dict[type[Any], Event] = {
    ReplyStarted: ReplyStarted(MARK, MARK),
    ThinkingDelta: ThinkingDelta(MARK, 0),
    ThoughtSealed: ThoughtSealed(Seal("signature", MARK), 0),
    TextDelta: TextDelta(MARK, 1),
    TextReclassified: TextReclassified(MARK, 1),
    CommentaryDelta: CommentaryDelta(MARK, 2),
    RefusalDelta: RefusalDelta(MARK, 1),
    ToolCallDelta: ToolCallDelta(2, MARK, "look", "{}"),
    PartArrived: PartArrived(UnknownPart(_NATIVE), 3),
    UsageReported: UsageReported(Usage(input=31_337, output=1)),
    Warned: Warned(Notice("odd", "something was odd")),
    ReplyEnded: ReplyEnded(StopReason("stop", "stop")),
}

every_dialect = pytest.mark.parametrize("name", DIALECTS)


def encode(name: str, prompt: Prompt) -> tuple[HttpRequest, tuple[Notice, ...]]:
    return find_dialect(name).encode(prompt, Target(plain_row(name), "m", "http://127.0.0.1:1/v1"))


def test_there_is_a_sample_of_everything() -> None:
    assert set(PARTS) == set(get_args(Part)), "add the new part to PARTS"
    assert set(EVENTS) == set(get_args(Event)), "add the new event to EVENTS"
    # A source is JSON of one dialect, with a law of its own (tests/laws/test_verbatim.py).
    assert set(SETTINGS) | {"messages", "source"} == set(Prompt.__struct_fields__), "add the new setting to SETTINGS"
    assert set(SAMPLES) == set(Sampling.__struct_fields__), "add the new setting to SAMPLES"


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("kind", get_args(Part), ids=lambda kind: kind.__name__)
@every_dialect
def test_a_part_is_sent_or_gives_a_notice(name: str, kind: type[Any], role: Role) -> None:
    call = Message("assistant", (ToolCall("call_1", "look"),))
    answer = Message("tool", (ToolResult("call_1", "there", "look"),))
    without = Prompt((user("?"), call, answer, Message(role, (Text("!"),)), user("?")))
    part = PARTS[kind]
    parts = (Text("!"), part) if role == "user" or kind is not Thought else (part, Text("!"))
    having = Prompt((user("?"), call, answer, Message(role, parts), user("?")))
    (plain, _), (request, notices) = encode(name, without), encode(name, having)
    is_sent = request.body != plain.body
    is_noticed = any(notice.setting == "messages" for notice in notices)
    if (name, kind, role) in _SILENT:
        assert not is_sent
    else:
        assert is_sent or is_noticed, f"{name} drops a {kind.__name__} of the {role} in silence: see its encode*.py"


@pytest.mark.parametrize("setting", sorted(SETTINGS))
@every_dialect
def test_a_setting_is_sent_or_gives_a_notice(name: str, setting: str) -> None:
    given: dict[str, Any] = {setting: SETTINGS[setting]}
    beside: dict[str, Any] = {"tools": SETTINGS["tools"]} if setting in ("tool_choice", "parallel_tool_calls") else {}
    if setting == "state" and name not in ("gemini_interactions", "openai_responses"):
        pytest.skip("plan settles what a provider stores, and only these dialects have fields for it")
    if setting == "begun_thinking":
        pytest.skip("recovery sets it only for hosts whose row says how: tests/dialects/openai_chat")
    if setting == "compaction" and name not in ("anthropic", "openai_responses"):
        pytest.skip("a call refuses it before, where the provider is not known to compact")
    plain, _ = encode(name, Prompt((user("?"),), **beside))
    request, notices = encode(name, Prompt((user("?"),), **beside, **given))
    is_sent = (request.url, request.body) != (plain.url, plain.body)
    assert is_sent or notices, f"{name} drops {setting} in silence: see its encode.py"


@pytest.mark.parametrize("setting", sorted(SAMPLES))
@every_dialect
def test_a_sampling_setting_is_sent_or_gives_a_notice(name: str, setting: str) -> None:
    plain, _ = encode(name, Prompt((user("?"),)))
    sampling = msgspec.structs.replace(Sampling(), **{setting: SAMPLES[setting]})
    request, notices = encode(name, Prompt((user("?"),), sampling=sampling))
    assert request.body != plain.body or [notice.setting for notice in notices] == [setting]


# Events that have no place in a response of the dialect.
_UNWRITTEN: dict[type[Any], tuple[str, ...]] = {
    Warned: DIALECTS,
    ReplyStarted: ("bedrock",),
    # The sample is of another dialect's kind.
    ThoughtSealed: ("cohere", "gemini", "gemini_interactions", "ollama", "openai_chat", "openai_responses"),
    PartArrived: ("ollama", "openai_chat"),
    # Their clients take every text for the answer: it is left out, with a notice.
    CommentaryDelta: ("anthropic", "bedrock", "cohere", "gemini", "gemini_interactions", "ollama"),
}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
@every_dialect
def test_an_event_is_written_or_listed_as_unwritten(name: str, kind: type[Any], stream: bool) -> None:
    dialect = find_dialect(name)
    plain: list[Event] = [ThinkingDelta("so", 0), TextDelta("42", 1)]
    event, end = EVENTS[kind], EVENTS[ReplyEnded]
    having = [event, *plain] if kind in (ReplyStarted, ThinkingDelta, ThoughtSealed) else [*plain, event]
    if kind is ThoughtSealed:
        having = [plain[0], event, plain[1]]
    ends = [] if kind is ReplyEnded else [end]
    start = ReplyStarted("m", "reply_1")  # a reply without an id gets one of its own
    written = dialect.writer(model="m", stream=stream).write([start, *having, *ends])
    without = dialect.writer(model="m", stream=stream).write([start, *plain, *ends])
    is_written = written != without
    if kind is TextReclassified and stream:
        assert not is_written, "no dialect can take back what a stream has sent"
        return
    assert is_written == (name not in _UNWRITTEN.get(kind, ())), f"see {name}/server/write_reply.py"


# Its own folder and these: decision 0015.
_FILES_THAT_NAME_INTERACTIONS = {
    "src/asides/dialects/__init__.py",
    "src/asides/intake/detect.py",
    "src/asides/providers/refusals.toml",
    "src/asides/providers/switches/table.py",
    "src/asides/providers/table.py",
    "packages/asides-stage/src/asides_stage/stage/rules/gemini_interactions.py",
}


def test_a_dialect_is_named_in_few_files() -> None:
    root = Path(__file__).parents[2]
    files = [file for folder in ("src", "packages") for file in (root / folder).rglob("*.*")]
    named = {
        place
        for file in files
        if file.suffix in (".py", ".toml") and "/tests/" not in (place := file.relative_to(root).as_posix())
        if "dialects/gemini_interactions/" not in place
        if re.search(r"gemini_interactions|[\"'/]interactions?\b|\w+_interaction\b", file.read_text(encoding="utf-8"))
    }
    assert named == _FILES_THAT_NAME_INTERACTIONS
