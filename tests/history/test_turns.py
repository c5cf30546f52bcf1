"""One view of turns: calls have results and unique ids, and the current turn is found."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.history.turns import (
    CallIds,
    add_missing_results,
    drop_orphan_results,
    ends_with_assistant,
    find_last_run,
    find_model_runs,
    find_open_turn,
    find_question,
    is_paired,
    lacks_thinking,
    make_ids_unique,
)
from asides.values.messages import Message, assistant, user
from asides.values.parts import ServerTool, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Thought


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


# --- ids of a conversation that grows ---


def find_unique_ids(ids: list[str], messages: list[Message]) -> list[str]:
    """The rule, with a search through all messages for each reply."""
    taken = {part.id for message in messages for part in message.parts if isinstance(part, ToolCall)}
    found: list[str] = []
    for id_ in ids:
        unique, count = id_, 1
        while unique in taken:
            count += 1
            unique = f"{id_}_{count}"
        taken.add(unique)
        found.append(unique)
    return found


# Ids that servers send, and ids that look like those that are made of them.
some_ids = st.lists(st.sampled_from(["", "a", "a_2", "a_3", "a_2_2", "b", "_2", "é"]), max_size=5)


@given(some_ids, st.lists(st.tuples(some_ids, st.booleans()), max_size=8))
def test_each_call_gets_an_id_that_no_call_before_it_has(
    first: list[str], replies: list[tuple[list[str], bool]]
) -> None:
    messages = [Message("assistant", tuple(ToolCall(id_, "look") for id_ in first))]
    ids = CallIds(messages)
    for given_ids, is_kept in replies:
        reply = Reply((Text("so"), *(ToolCall(id_, "look") for id_ in given_ids), Text("and")))
        expected = find_unique_ids(given_ids, messages)
        # A reply that is read before its end gets the ids that it has at its end.
        unique = ids.make_unique(reply)
        assert ids.make_unique(reply) == unique
        assert [part.id for part in unique.parts if isinstance(part, ToolCall)] == expected
        assert (unique.parts[0], unique.parts[-1]) == (Text("so"), Text("and"))
        if is_kept:
            messages.append(Message("assistant", unique.parts))
            ids.add(messages[-1:])


def test_an_id_that_a_server_sends_each_time_is_searched_for_once() -> None:
    class Watched(set[str]):
        searches = 0

        def __contains__(self, item: object) -> bool:
            Watched.searches += 1
            return super().__contains__(item)

    ids = CallIds(())
    ids._taken = Watched()
    reply = Reply((ToolCall("call_0", "look"),))
    for number in range(1, 301):
        unique = ids.make_unique(reply)
        assert unique.tool_calls[0].id == ("call_0" if number == 1 else f"call_0_{number}")
        ids.add([Message("assistant", unique.parts)])
    assert Watched.searches < 3000


# --- the current turn ---


@pytest.mark.parametrize(
    ("messages", "ends"),
    [
        ((), False),
        ((user("?"),), False),
        ((user("?"), assistant("The answer is")), True),
        ((user("?"), assistant(Thought("t"))), False),
        ((user("?"), assistant("I look.", ServerTool("web_search_call"))), False),
        ((user("?"), assistant("a"), user("!")), False),
    ],
)
def test_only_a_text_of_the_assistant_at_the_end_asks_the_model_to_go_on(
    messages: tuple[Message, ...], ends: bool
) -> None:
    assert ends_with_assistant(messages) is ends


CALL, THOUGHT = ToolCall("c1", "f"), Thought("t")
RESULT = Message("tool", (ToolResult("c1", "42"),))


@pytest.mark.parametrize(
    ("messages", "lacks"),
    [
        ((user("?"),), False),
        ((user("?"), assistant("a")), False),
        ((user("?"), assistant(CALL), RESULT), True),
        ((user("?"), assistant(THOUGHT, CALL), RESULT), False),
        ((user("?"), assistant("I look.", CALL), RESULT), True),
        # The turn begins with its first message, whatever its later ones begin with.
        ((user("?"), assistant(CALL), RESULT, assistant(THOUGHT, CALL), RESULT), True),
        ((user("?"), assistant(THOUGHT, CALL), RESULT, assistant(CALL), RESULT), False),
        # An empty message begins nothing, and a turn that is over does not count.
        ((user("?"), assistant(), assistant(THOUGHT, CALL), RESULT), False),
        ((user("?"), assistant(CALL), RESULT, assistant("a"), user("!")), False),
        # Results and the next question are one message of the user.
        ((user("?"), assistant(CALL), RESULT, user("!")), True),
        ((user("?"), assistant(CALL), RESULT, user("!"), user("?")), True),
        ((user("?"), assistant(THOUGHT, CALL), RESULT, user("!")), False),
        ((user("?"), assistant(CALL), user("!")), False),
    ],
)
def test_a_turn_with_calls_lacks_thinking_unless_it_begins_with_it(messages: tuple[Message, ...], lacks: bool) -> None:
    assert lacks_thinking(messages) is lacks


def lacks_thinking_by_the_words(messages: tuple[Message, ...]) -> bool:
    """The same from the front: collect the messages of the current turn, then look at them."""
    end = 1 + max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)
    if not any(isinstance(part, ToolResult) for message in messages[end:] for part in message.parts):
        end = len(messages)
    turn: list[Message] = []
    for message in messages[:end]:
        if message.role == "assistant":
            turn += [message] if message.parts else []
        elif any(not isinstance(part, ToolResult) for part in message.parts):
            turn = []
    return any(message.tool_calls for message in turn) and not isinstance(turn[0].parts[0], Thought)


_MESSAGES = [
    user("?"),
    Message("user"),
    Message("user", (ToolResult("c1", "42"),)),
    Message("user", (ToolResult("c1", "42"), Text("and?"))),
    RESULT,
    Message("tool"),
    Message("system", (Text("s"),)),
    assistant(),
    assistant("a"),
    assistant(CALL),
    assistant(THOUGHT, CALL),
    assistant(THOUGHT),
    assistant("a", THOUGHT, CALL),
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(_MESSAGES), min_size=1, max_size=6).map(tuple))
def test_a_turn_of_any_messages_lacks_thinking_by_the_words(messages: tuple[Message, ...]) -> None:
    assert lacks_thinking(messages) is lacks_thinking_by_the_words(messages)


HISTORY = (user("?"), assistant(THOUGHT), assistant(CALL), RESULT, assistant("a"), user("!"), assistant(CALL), RESULT)


def test_runs_of_the_model_are_what_it_said_between_two_messages_of_others() -> None:
    assert list(find_model_runs(HISTORY)) == [range(1, 3), range(4, 5), range(6, 7)]
    assert list(find_model_runs((user("?"), assistant("a")))) == [range(1, 2)]
    assert list(find_model_runs(())) == []


@pytest.mark.parametrize(
    ("messages", "question", "open_turn", "last_run"),
    [
        ((), -1, 0, range(0)),
        (HISTORY, 5, 6, range(6, 7)),
        (HISTORY[:4], 0, 1, range(1, 3)),
        (HISTORY[:5], 0, 5, range(4, 5)),
        (HISTORY[:6], 5, 6, range(6, 6)),
        # Results in a user message are results, unless it asks something too.
        ((user("?"), assistant(CALL), user(ToolResult("c1", "42"))), 0, 1, range(1, 2)),
        ((user("?"), assistant(CALL), user(ToolResult("c1", "42"), "and?")), 2, 3, range(3, 3)),
    ],
)
def test_the_current_turn_begins_after_the_last_question(
    messages: tuple[Message, ...], question: int, open_turn: int, last_run: range
) -> None:
    assert (find_question(messages), find_open_turn(messages), find_last_run(messages)) == (
        question,
        open_turn,
        last_run,
    )
