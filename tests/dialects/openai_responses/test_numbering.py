"""Streams whose events number and name items and parts differently: the text, the thinking and the calls come once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.values.parts import ToolCall
from asides.values.reply import Reply
from tests.decoding import decoded, reply_of, sse
from tests.responses import DIALECT, call, message, reasoning, response, target

STAGES = ("added", "delta", "text", "part", "item")


class Numbering:
    """How the events of one stage number and name items and parts."""

    def __init__(self, shift: int | None, name: str, part_shift: int) -> None:
        self.shift, self.name, self.part_shift = shift, name, part_shift
        self.stage, self.count = "last", 0

    def __repr__(self) -> str:
        return f"Numbering({self.shift}, {self.name!r}, {self.part_shift})"

    def item_id(self, item: dict[str, Any]) -> str | None:
        self.count += 1
        names: dict[str, str | None] = {
            "same": item["id"],
            "other": f"other_{item['id']}",
            "new": f"{self.stage}_{self.count}",
            "none": None,
        }
        return names[self.name]

    def place(self, index: int, item: dict[str, Any], part: int | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.shift is None else {"output_index": index + self.shift}
        if (item_id := self.item_id(item)) is not None:
            found["item_id"] = item_id
        if part is not None:
            found["content_index"] = found["summary_index"] = part + self.part_shift
        return found

    def rename(self, item: dict[str, Any]) -> dict[str, Any]:
        item_id = self.item_id(item)
        return {name: value for name, value in {**item, "id": item_id}.items() if value is not None}


def pieces(text: str) -> list[str]:
    return [text[:2], text[2:3], text[3:]]


def write(items: list[dict[str, Any]], numbering: dict[str, Numbering], present: set[str]) -> list[dict[str, Any]]:
    """Write these items as a stream with the stages that are present."""
    events: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        if "added" in present:
            empty = {**item, "content": [], "summary": [], "arguments": ""}
            here = numbering["added"].place(index, item)
            events.append({"type": "response.output_item.added", **here, "item": numbering["added"].rename(empty)})
        events += write_parts(index, item, numbering, present)
        if "item" in present:
            here = numbering["item"].place(index, item)
            events.append({"type": "response.output_item.done", **here, "item": numbering["item"].rename(item)})
    return events


def write_parts(
    index: int, item: dict[str, Any], numbering: dict[str, Numbering], present: set[str]
) -> list[dict[str, Any]]:
    kind = item["type"]
    if kind == "function_call":
        arguments = item["arguments"]
        name = "response.function_call_arguments"
        deltas = [
            {"type": f"{name}.delta", "delta": piece, **numbering["delta"].place(index, item)}
            for piece in pieces(arguments)
        ]
        done = {"type": f"{name}.done", "arguments": arguments, **numbering["text"].place(index, item)}
        return [*(deltas if "delta" in present else ()), *([done] if "text" in present else ())]
    name = "response.output_text" if kind == "message" else "response.reasoning_summary_text"
    part_name = "response.content_part.done" if kind == "message" else "response.reasoning_summary_part.done"
    events: list[dict[str, Any]] = []
    for place, part in enumerate(item["content"] if kind == "message" else item["summary"]):
        if "delta" in present:
            events += [
                {"type": f"{name}.delta", "delta": piece, **numbering["delta"].place(index, item, place)}
                for piece in pieces(part["text"])
            ]
        if "text" in present:
            events.append({"type": f"{name}.done", "text": part["text"], **numbering["text"].place(index, item, place)})
        if "part" in present:
            events.append({"type": part_name, "part": part, **numbering["part"].place(index, item, place)})
    return events


def check_once(reply: Reply, items: list[dict[str, Any]]) -> None:
    spoken = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    assert reply.text == "".join(spoken)
    thought = [part["text"] for item in items if item["type"] == "reasoning" for part in item["summary"]]
    # A part that is numbered anew with every piece has a blank line between its pieces.
    assert "".join((reply.thinking.text if reply.thinking else "").split()) == "".join("".join(thought).split())
    calls = [(part.name, part.id) for part in reply.parts if isinstance(part, ToolCall)]
    assert calls == [(item["name"], item["call_id"]) for item in items if item["type"] == "function_call"]
    assert all(part.arguments == {"location": "SF"} for part in reply.parts if isinstance(part, ToolCall))


ITEMS = [
    [message("Hello there.")],
    [message("Hello there.", "And more.")],
    [message("same", "same")],
    [reasoning("plan it"), message("Hello there.")],
    [reasoning("plan it", "check it"), message("Hello there."), call()],
    [
        reasoning("one plan"),
        message("Hello there.", id="msg_1"),
        reasoning("two plans", id="rs_2"),
        message("Bye now.", id="msg_2"),
    ],
    [call(), {**call(call_id="call_2"), "id": "fc_2"}],
]
numberings = st.builds(
    Numbering,
    st.sampled_from([0, 0, 1, 7, None]),
    st.sampled_from(["same", "same", "other", "new", "none"]),
    st.sampled_from([0, 0, 1, 5]),
)


@settings(max_examples=200, deadline=None)
@given(
    items=st.sampled_from(ITEMS),
    numbering=st.fixed_dictionaries(dict.fromkeys(STAGES, numberings)),
    present=st.sets(st.sampled_from(STAGES)).map(lambda stages: stages | {"added"}),
    last=numberings,
    has_output=st.booleans(),
    created=st.booleans(),
)
def test_law_everything_comes_once_whatever_the_numbers_say(
    items: list[dict[str, Any]],
    numbering: dict[str, Numbering],
    present: set[str],
    last: Numbering,
    has_output: bool,
    created: bool,
) -> None:
    # Something must have the text; the end of a part alone has no arguments of a call.
    has_output = has_output or not present & {"delta", "text", "item"}
    for stage, each in numbering.items():
        each.stage = stage
    final = response(*[last.rename(item) for item in items] if has_output else ())
    start = [{"type": "response.created", "response": {**response(), "status": "in_progress"}}] if created else []
    body = sse(*start, *write(items, numbering, present), {"type": "response.completed", "response": final})
    reply, failure = reply_of([body], target(), DIALECT)
    assert failure is None
    check_once(reply, items)
    assert (reply.model, reply.id) == (final["model"], final["id"])


@pytest.mark.parametrize("shift", [1, 2, 9])
def test_a_part_counted_across_items_comes_once(shift: int) -> None:
    # As seen at a cloud that counts `content_index` over all items of a response: 1 in events, 0 in the item.
    items = [reasoning("plan it"), message("Hello there.")]
    across: dict[str, Numbering] = dict.fromkeys(STAGES, Numbering(0, "same", shift))
    body = sse(*write(items, across, set(STAGES)), {"type": "response.completed", "response": response(*items)})
    check_once(decoded(body, target(), DIALECT), items)


def test_swapped_indices_of_two_calls_give_each_its_arguments() -> None:
    first, second = call(), {**call("other", '{"location":"NY"}', "call_2"), "id": "fc_2"}
    events = write([first, second], dict.fromkeys(STAGES, Numbering(0, "same", 0)), set(STAGES))
    for event in events:
        if "arguments" in event["type"]:
            event["output_index"] = 1 - event["output_index"]
    body = sse(*events, {"type": "response.completed", "response": response(second, first)})
    reply = decoded(body, target(), DIALECT)
    assert [(found.name, found.arguments) for found in reply.tool_calls] == [
        ("get_weather", {"location": "SF"}),
        ("other", {"location": "NY"}),
    ]


def test_a_stream_without_a_beginning_has_the_model_the_id_and_the_store_of_its_end() -> None:
    final = response(message("Hello there."), store=True)
    events = write([message("Hello there.")], dict.fromkeys(STAGES, Numbering(0, "same", 0)), {"delta", "item"})
    reply = decoded(sse(*events, {"type": "response.completed", "response": final}), target(), DIALECT)
    assert (reply.model, reply.id, reply.stored) == (final["model"], final["id"], True)
