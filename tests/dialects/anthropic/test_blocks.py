"""Content blocks while they arrive: each kind from its deltas and whole, and the deltas that it does not know."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from asides.dialects.anthropic.blocks import (
    CallBlock,
    OpenBlock,
    RawBlock,
    RedactedBlock,
    TextBlock,
    ThinkingBlock,
    build_raw_part,
    is_provider_block,
)
from asides.dialects.anthropic.wire import Block, Delta
from asides.values.events import Event, PartArrived, TextDelta, ThinkingDelta, ThoughtSealed, ToolCallDelta
from asides.values.parts import ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal
from asides.wire.lenient import compact_json, read_any
from tests.dialects.anthropic.messages import claude

ORIGIN = Origin("anthropic", "https://example", "m")


def block(**fields: Any) -> Block:
    return msgspec.json.decode(json.dumps(fields).encode(), type=Block)


def read(begin: Callable[[list[Event]], OpenBlock], *deltas: dict[str, Any]) -> tuple[list[Event], list[bool]]:
    """All events of a block, and which of its deltas it knew."""
    events: list[Event] = []
    opened = begin(events)
    known = []
    for delta in deltas:
        payload = json.dumps({"delta": delta}).encode()
        known.append(opened.feed(msgspec.json.decode(json.dumps(delta), type=Delta), payload, events))
    opened.finish(events)
    return events, known


def test_a_text_comes_in_deltas_with_its_citations_at_the_end() -> None:
    target = claude()
    citation = {"type": "char_location", "cited_text": "x"}
    deltas: list[dict[str, Any]] = [
        {"type": "text_delta", "text": "4"},
        {"type": "text_delta", "text": "2"},
        {"type": "citations_delta", "citation": citation},
        {"type": "text_delta"},
        {"type": "novel_delta"},
    ]
    events, known = read(lambda out: TextBlock(3, block(type="text", text=""), target, compact_json, out), *deltas)
    entry = json.dumps([citation], separators=(",", ":"))
    assert events == [
        TextDelta("4", 3),
        TextDelta("2", 3),
        ThoughtSealed(Seal("citations", "", target.origin, entry), 3, source="block"),
    ]
    assert known == [True, True, True, True, False]
    whole = block(type="text", text="42", citations=[citation])
    assert read(lambda out: TextBlock(3, whole, target, compact_json, out))[0] == [TextDelta("42", 3), events[-1]]


@pytest.mark.parametrize(
    ("begin", "deltas", "texts", "signature"),
    [
        ({"thinking": ""}, [{"thinking": "a"}, {"thinking": "b"}, {"signature": "s"}], ["a", "b"], "s"),
        ({"thinking": "a", "signature": "s"}, [], ["a"], "s"),
        ({"thinking": "", "signature": "s"}, [{"thinking": "a"}, {"signature": ""}], ["a"], "s"),
        ({"thinking": ""}, [{"signature": "s"}, {"signature": "t"}], [], "t"),
        ({"thinking": "a"}, [], ["a"], None),
    ],
)
def test_a_thought_is_sealed_at_its_end(
    begin: dict[str, Any], deltas: list[dict[str, Any]], texts: list[str], signature: str | None
) -> None:
    opened = block(type="thinking", **begin)
    events, known = read(lambda out: ThinkingBlock(0, opened, "summary", ORIGIN, out), *deltas)
    seals = [ThoughtSealed(Seal("signature", signature, ORIGIN), 0, "summary", "block")] if signature else []
    assert events == [*(ThinkingDelta(text, 0, "summary", "block", "thinking") for text in texts), *seals]
    assert all(known)


def test_a_thought_is_signed_once_its_signature_has_come() -> None:
    opened = ThinkingBlock(0, block(type="thinking", thinking=""), "summary", ORIGIN, [])
    assert not opened.is_signed
    assert opened.feed(Delta(type="signature_delta", signature="s"), b"{}", [])
    assert opened.is_signed
    assert not opened.feed(Delta(type="text_delta"), b"{}", [])


@pytest.mark.parametrize(
    ("begin", "deltas", "more"),
    [
        ({"input": {}}, [{"partial_json": ""}, {"partial_json": '{"a":'}, {"partial_json": "1}"}], ['{"a":', "1}"]),
        ({"input": {"a": 1}}, [], ['{"a":1}']),
        ({"input": {"a": 1}}, [{"partial_json": "{}"}], ["{}"]),
        ({"input": {}}, [], []),
        ({}, [], []),
    ],
)
def test_a_call_has_its_arguments_in_deltas_or_whole(
    begin: dict[str, Any], deltas: list[dict[str, Any]], more: list[str]
) -> None:
    opened = block(type="tool_use", id="c1", name="f", **begin)
    events, known = read(lambda out: CallBlock(2, opened, ORIGIN, compact_json, out), *deltas)
    assert events == [ToolCallDelta(2, "c1", "f"), *(ToolCallDelta(2, arguments=text) for text in more)]
    assert all(known)


@pytest.mark.parametrize(
    ("caller", "sealed"), [({"type": "direct"}, False), (None, False), ({"type": "code", "tool_id": "s1"}, True)]
)
def test_a_call_of_code_goes_back_with_its_caller(caller: Any, sealed: bool) -> None:
    opened = block(type="tool_use", id="c1", name="f", caller=caller)
    events, _ = read(lambda out: CallBlock(2, opened, ORIGIN, compact_json, out))
    entry = json.dumps(caller, separators=(",", ":"))
    assert events[1:] == [ThoughtSealed(Seal("caller", "", ORIGIN, entry), 2, source="block")] * sealed


def test_a_redacted_thought_comes_in_one_piece() -> None:
    opened = block(type="redacted_thinking", data="r")
    events, known = read(lambda out: RedactedBlock(1, opened, ORIGIN, out), {"type": "text_delta", "text": "x"})
    assert events == [ThoughtSealed(Seal("redacted", "r", ORIGIN), 1, "hidden", "block")]
    assert known == [False]
    assert read(lambda out: RedactedBlock(1, block(type="redacted_thinking"), ORIGIN, out))[0] == []


@pytest.mark.parametrize(
    ("fields", "deltas", "grown", "known"),
    [
        ({"type": "server_tool_use", "id": "s1"}, [], None, []),
        (
            {"type": "server_tool_use", "id": "s1", "input": {}},
            [{"type": "input_json_delta", "partial_json": '{"q":'}, {"type": "input_json_delta", "partial_json": "1}"}],
            {"type": "server_tool_use", "id": "s1", "input": {"q": 1}},
            [True, True],
        ),
        (
            {"type": "server_tool_use"},
            [{"type": "input_json_delta", "partial_json": "{q"}],
            {"type": "server_tool_use", "input": "{q"},
            [True],
        ),
        (
            {"type": "compaction", "content": "a"},
            [{"type": "compaction_delta", "content": "b"}, {"type": "novel_delta", "n": 1}],
            {"type": "compaction", "content": "ab", "n": 1},
            [True, False],
        ),
    ],
)
def test_a_block_that_goes_back_grows_by_its_deltas(
    fields: dict[str, Any], deltas: list[dict[str, Any]], grown: dict[str, Any] | None, known: list[bool]
) -> None:
    events, found = read(lambda out: RawBlock(5, json.loads(json.dumps(fields)), ORIGIN, read_any, out), *deltas)
    versions = [fields] if grown is None else [fields, grown]
    assert events == [PartArrived(build_raw_part(version, ORIGIN), 5) for version in versions]
    assert found == known


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"type": "novel"}, UnknownPart('{"type":"novel"}', ORIGIN)),
        (
            {"type": "web_search_tool_result", "tool_use_id": "s1"},
            ServerTool(
                "web_search_tool_result", "s1", None, '{"type":"web_search_tool_result","tool_use_id":"s1"}', ORIGIN
            ),
        ),
        (
            {"type": "mcp_tool_result", "is_error": True},
            ServerTool("mcp_tool_result", None, "failed", '{"type":"mcp_tool_result","is_error":true}', ORIGIN),
        ),
        (
            {"type": "x_tool_result", "content": {"type": "x_tool_result_error"}},
            ServerTool(
                "x_tool_result",
                None,
                "failed",
                '{"type":"x_tool_result","content":{"type":"x_tool_result_error"}}',
                ORIGIN,
            ),
        ),
    ],
)
def test_the_part_of_a_block_that_goes_back(fields: dict[str, Any], part: ServerTool | UnknownPart) -> None:
    assert build_raw_part(fields, ORIGIN) == part


def test_the_provider_s_own_blocks() -> None:
    names = ("compaction", "server_tool_use", "bash_code_execution_tool_result", "tool_use", "text")
    assert [is_provider_block(name) for name in names] == [True, True, True, False, False]
