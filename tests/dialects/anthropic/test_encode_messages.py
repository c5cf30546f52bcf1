"""A history as turns of content blocks: what is a string, what changes the effort, which betas it needs."""

from __future__ import annotations

from typing import Any

from asides.dialects.anthropic.encode_messages import EFFORT_CHANGES, FILES, encode_cache, encode_messages
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import File, Text, ToolCall, ToolResult

CHANGE = Message("system", (), effort="low")


def encode(*messages: Message, **given: Any) -> tuple[list[Any], list[str], list[str]]:
    """The turns, the betas and the codes of the notices."""
    notices: list[Notice] = []
    encoded = encode_messages(Prompt(messages), notices, **given)
    return encoded.messages, encoded.betas, [notice.code for notice in notices]


def test_plain_words_of_a_user_are_a_string_and_those_of_the_model_a_block() -> None:
    assert encode(user("hi"), assistant("hello"))[0] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
    ]


def test_a_change_of_the_effort_is_a_system_turn_without_content() -> None:
    turns, betas, codes = encode(user("hi"), assistant("hello"), CHANGE, user("and?"), changes_effort=True)
    assert turns[2] == {"role": "system", "content": [], "output_config": {"effort": "low"}}
    assert (len(turns), betas, codes) == (4, [EFFORT_CHANGES], [])


def test_it_is_reported_where_the_model_takes_none() -> None:
    turns, betas, codes = encode(user("hi"), assistant("hello"), CHANGE, user("and?"))
    assert ([turn["role"] for turn in turns], betas) == (["user", "assistant", "user"], [])
    assert codes == ["effort_not_sent"]


def test_results_and_words_stay_apart_where_the_effort_changes_between_them() -> None:
    result = Message("tool", (ToolResult("c1", "there", "look"),))
    turns, _, _ = encode(
        user("go"),
        assistant(ToolCall("c1", "look", {})),
        result,
        CHANGE,
        user("and?"),
        changes_effort=True,
    )
    assert len(turns) == 5
    assert len(encode(user("go"), assistant(ToolCall("c1", "look", {})), result, user("and?"))[0]) == 3


def test_the_words_of_a_system_message_are_no_turn() -> None:
    encoded = encode_messages(Prompt((system("Be brief."), user("hi"))), [], changes_effort=True)
    assert (encoded.system, encoded.messages, encoded.betas) == (
        "Be brief.",
        [{"role": "user", "content": "hi"}],
        [],
    )


def test_files_by_their_id_need_a_beta() -> None:
    assert encode(Message("user", (Text("read"), File(id="file_1"))))[1] == [FILES]


def test_a_breakpoint_may_have_a_lifetime() -> None:
    assert encode_cache(True) == {"type": "ephemeral"}
    assert encode_cache("1h") == {"type": "ephemeral", "ttl": "1h"}
