"""Items of a response while they are written."""

from __future__ import annotations

from asides.dialects.openai_responses.server.write_reply import begin_item, make_item_id
from asides.values.events import PartArrived, TextDelta, ToolCallDelta
from asides.values.parts import File, Image
from tests.dialects.openai_responses.server.test_write_reply import END, streamed, whole


def test_ids_are_unique_where_the_response_s_id_is() -> None:
    assert make_item_id("reasoning", "resp_7", 3) == "rs_7_3"
    assert make_item_id("hologram", "own", 0) == "item_own_0"


def test_the_arguments_of_two_calls_may_come_in_turns() -> None:
    pieces = [
        ToolCallDelta(0, "c1", "f", '{"a"'),
        ToolCallDelta(1, "c2", "g", '{"b"'),
        ToolCallDelta(0, arguments=":1}"),
        ToolCallDelta(1, arguments=":2}"),
    ]
    documents = streamed(*pieces, END)
    done = [document["item"] for document in documents if document["type"].endswith("item.done")]
    assert [(item["call_id"], item["arguments"]) for item in done] == [("c1", '{"a":1}'), ("c2", '{"b":2}')]
    assert documents[-1]["response"]["output"] == done


def test_a_picture_is_the_item_of_the_tool_that_makes_pictures() -> None:
    (item,) = whole(PartArrived(Image(data=b"x"), 0), END)["output"]
    assert (item["type"], item["status"], item["result"]) == ("image_generation_call", "completed", "eA==")


def test_only_a_call_without_all_its_arguments_can_go_on() -> None:
    for event, can_go_on in (
        (ToolCallDelta(0, "c", "f"), True),
        (ToolCallDelta(0, "c", "f", '{"a":'), True),
        (ToolCallDelta(0, "c", "f", '{"a":1}'), False),
        (ToolCallDelta(0, "c", "f", "text", custom=True), False),
        (TextDelta("a", 0), False),
    ):
        item = begin_item(event, "resp_1", 0)
        assert item is not None
        list(item.write(event))
        assert item.can_go_on() is can_go_on


def test_a_call_has_the_namespace_of_its_tool_and_a_file_begins_nothing() -> None:
    item = begin_item(ToolCallDelta(0, "c", "f"), "resp_1", 0, "agents")
    assert item is not None
    assert item.start()["namespace"] == item.encode()["namespace"] == "agents"
    assert begin_item(PartArrived(File(data=b"x"), 0), "resp_1", 0) is None
