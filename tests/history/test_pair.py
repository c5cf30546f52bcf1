"""Every tool call gets a result, and existing results stay."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from asides.history.pair import add_missing_results, drop_orphan_results, is_paired, make_ids_unique
from asides.values.messages import Message, user
from asides.values.parts import Text, ToolCall, ToolResult


def test_results_stand_in_front_of_the_words_that_came_with_others() -> None:
    calls = Message("assistant", (ToolCall("c1", "f"), ToolCall("c2", "f")))
    mixed = user(ToolResult("c1", "42"), "and then?")
    mended = add_missing_results((user("?"), calls, mixed, user("hello?")))
    assert [message.role for message in mended] == ["user", "assistant", "tool", "user", "user"]
    assert (mended[3], add_missing_results(mended)) == (mixed, mended)


def test_results_that_nobody_asked_for_stay() -> None:
    history = (user("?"), Message("tool", (ToolResult("zz", "42"),)), Message("assistant", (Text("a"),)))
    assert add_missing_results(history) == history


def _call(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(each, "f") for each in ids))


def _result(*ids: str) -> list[Message]:
    return [Message("tool", (ToolResult(each, "42"),)) for each in ids]


def _list_ids(messages: tuple[Message, ...]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    return [part.id if isinstance(part, ToolCall) else part.call_id for part in parts if not isinstance(part, Text)]  # type: ignore[union-attr]


def test_a_host_that_counts_from_zero_in_every_turn_gives_unique_ids() -> None:
    turn = [user("?"), _call("c0", "c1"), *_result("c1", "c0")]
    unique = make_ids_unique((*turn, *turn, *turn))
    assert _list_ids(unique) == [
        *("c0", "c1", "c1", "c0"),
        *("c0_2", "c1_2", "c1_2", "c0_2"),
        *("c0_3", "c1_3", "c1_3", "c0_3"),
    ]
    assert make_ids_unique(unique) == unique


def test_equal_ids_in_one_turn_get_their_results_in_order() -> None:
    unique = make_ids_unique((user("?"), _call("c", "c", "c"), *_result("c", "c", "c", "c")))
    assert _list_ids(unique) == ["c", "c_2", "c_3", "c", "c_2", "c_3", "c_3"]


def test_new_ids_take_no_other_id_and_never_change_later() -> None:
    first = (_call("c"), *_result("c"), _call("c"), *_result("c"))
    more = (*first, _call("c_2"), *_result("c_2"), _call("x" * 50), _call("x" * 50))
    unique = make_ids_unique(more)
    assert unique[: len(first)] == make_ids_unique(first)
    assert len(set(_list_ids(unique))) == 5
    assert len(_list_ids(unique)[-1]) <= 40


def test_unique_ids_and_results_of_calls_elsewhere_stay() -> None:
    history = (*_result("zz"), user("?"), _call("a", "b"), *_result("b", "a"))
    assert all(new is old for new, old in zip(make_ids_unique(history), history, strict=True))


STEM = "x" * 32


@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "a_2_2", STEM, STEM + "y", STEM + "_2"]), max_size=12))
def test_an_id_that_is_taken_gets_the_lowest_number_that_is_free(ids: list[str]) -> None:
    taken: list[str] = []
    for id_ in ids:
        numbered = (f"{id_[:32]}_{number}" for number in count(2))
        taken.append(id_ if id_ not in taken else next(new for new in numbered if new not in taken))
    messages = make_ids_unique([Message("assistant", (ToolCall(id_, "f"),)) for id_ in ids])
    assert [call.id for message in messages for call in message.tool_calls] == taken


def test_a_result_has_the_name_of_the_call_that_its_id_belongs_to() -> None:
    calls = Message("assistant", (ToolCall("1", "look", {}),))
    moved = Message("tool", (ToolResult("1", "fine", "feel"),))
    assert not is_paired((calls, moved))
    (_, renamed), orphans = drop_orphan_results((calls, moved))
    assert (renamed.parts, orphans) == ((ToolResult("1", "fine", "look"),), 0)
    unnamed = Message("tool", (ToolResult("1", "fine"),))
    assert is_paired((calls, unnamed))
