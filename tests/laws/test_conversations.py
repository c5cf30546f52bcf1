"""The laws about whole conversations: whatever was said, by whom, and whatever became of it, the next turn is taken.

The stages are strict and have secrets of their own; each request has to be taken at once, without a repair.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import Phase, given, settings

from asides.history.finish import finish_turn
from asides.values.fold import fold
from asides.values.messages import Message, user
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from tests.laws.conversations import REDACTED, Turn, changed, continued, conversations, reshaped
from tests.laws.theatre import HOUSES, Manner, Refused, Target, Theatre, opened, scene_of


@pytest.fixture(scope="module")
def theatre() -> Iterator[Theatre]:
    with opened() as theatre:
        yield theatre


def kept(reply: Reply | None) -> tuple[Message, ...]:
    message = finish_turn(reply)
    return () if message is None else (message,)


@given(turns=conversations())
@settings(max_examples=150, deadline=None, derandomize=True, phases=[Phase.generate, Phase.shrink])
def test_law_the_next_turn_is_taken(theatre: Theatre, turns: list[Turn]) -> None:
    """A random conversation over two or three houses: switched, cancelled, cut, pruned, edited, forked, trimmed.

    Nothing that one provider's model thought is in any request to another.
    """
    history: tuple[Message, ...] = ()
    marks: dict[str, tuple[str, int]] = {}
    for number, turn in enumerate(turns):
        history = continued(changed(history, turn), turn, number)
        act = theatre.ask(turn.target, history, scene_of(turn.reply.parts, turn.reply.piece), turn.manner)
        foreign = [mark for mark, origin in marks.items() if origin != turn.target.origin]
        assert [mark for mark in foreign if mark.encode() in act.body] == []
        marks |= dict.fromkeys(turn.reply.marks, turn.target.origin)
        # Of a stream that was left, exactly what was handed out: how much more was read is a matter of luck.
        left = act.reply
        if left is not None and len(act.events) == turn.manner.stop_after:
            left = fold(act.events).with_call(prefix=left.prefix)
        history += kept(left)


@given(turns=conversations())
@settings(max_examples=100, deadline=None, derandomize=True, phases=[Phase.generate, Phase.shrink])
def test_law_a_conversation_can_always_be_sent(theatre: Theatre, turns: list[Turn]) -> None:
    """The same with a `Conversation`: asked, streamed, left, trimmed, truncated, forked, edited, saved and loaded."""
    chat = theatre.conversation(awaited=turns[0].manner.awaited)
    marks: dict[str, tuple[str, int]] = {}
    for number, turn in enumerate(turns):
        chat = reshaped(chat, turn)
        question = continued(chat.messages, turn, number)[len(chat) :]
        scene = scene_of(turn.reply.parts, turn.reply.piece)
        act = theatre.talk(chat, turn.target, question, scene, turn.manner)
        foreign = [mark for mark, origin in marks.items() if origin != turn.target.origin]
        assert [mark for mark in foreign if mark.encode() in act.body] == []
        marks |= dict.fromkeys(turn.reply.marks, turn.target.origin)


def interleaved(name: str, number: int) -> tuple[Part, ...]:
    """A reply with everything in it, in the order in which models that think between words and calls have it."""
    redacted = Thought("", "hidden", "block", seals=(Seal(REDACTED, f"c2hvd24gdG8gbm9ib2R5{number:04d}"),))
    return (
        Thought(f" mull-{number}-a \n"),
        *((redacted,) if HOUSES[name].redacts else ()),
        Text("\n\n"),
        Thought(f"mull-{number}-b\n\nand on"),
        Text("Let me look. "),
        ToolCall(f"call_{number}_1", "look", {"at": number}),
        ToolCall(f"call_{number}_2", "feel", {"at": number}),
    )


def results(message: Message) -> Message:
    return Message("tool", tuple(ToolResult(call.id, "fine", call.name) for call in message.tool_calls))


def turn_of(reply: Reply | None) -> Message:
    message = finish_turn(reply)
    assert message is not None
    return message


def tokens(message: Message) -> list[bytes]:
    """Every seal of a turn as it has to stand in a request: its value, or the whole entry where that has none."""
    seals = [seal for part in message.parts if isinstance(part, (Thought, Text, ToolCall)) for seal in part.seals]
    told = [seal.value or (seal.entry or "" if seal.kind == "reasoning_details" else "") for seal in seals]
    return [token.encode() for token in told if token]


@pytest.mark.parametrize("third", sorted(HOUSES))
@pytest.mark.parametrize("first", sorted(HOUSES))
def test_law_there_and_back_again(theatre: Theatre, first: str, third: str) -> None:
    """A, then B, then A: B gets nothing of what A thought, in any form, and A gets its own back, byte for byte."""
    # Another model of the same provider is asked at the same address: what binds a seal is then the model alone.
    siblings = first != third and HOUSES[first].provider == HOUSES[third].provider
    there, elsewhere = Target(first, 0), Target(third, 0 if siblings else 1)
    number = 1 + 2 * sorted(HOUSES).index(first)
    said = turn_of(theatre.ask(there, (user("one"),), scene_of(interleaved(first, number))).reply)
    history = (user("one"), said, results(said), user("two"))
    act = theatre.ask(elsewhere, history, scene_of(interleaved(third, number + 1)), Manner(awaited=True))
    mine = tokens(said)
    assert [token for token in mine if token in act.body] == []
    assert siblings or f"mull-{number}-".encode() not in act.body

    between = turn_of(act.reply)
    longer = (*history, between, results(between), user("three"))
    back = theatre.ask(there, longer, scene_of((Text("So be it."),)), Manner(streamed=False)).body
    assert [token for token in tokens(between) if token in back] == []
    assert siblings or f"mull-{number + 1}-".encode() not in back
    match HOUSES[first].returns:
        case "seals":
            assert mine, "this house seals nothing"
            assert [token for token in mine if token not in back] == []
        case "thinking_on_tool_turns":
            thoughts = [part.text for part in said.parts if isinstance(part, Thought)]
            assert thoughts
            assert [text for text in thoughts if msgspec.json.encode(text)[1:-1] not in back] == []
        case "nothing":
            assert mine == []


@pytest.mark.parametrize("name", sorted(HOUSES))
def test_law_a_turn_may_be_cancelled_behind_every_event(theatre: Theatre, name: str) -> None:
    """Whatever had come of a reply with thoughts, words and calls: what it leaves behind is taken in the next turn."""
    target, asked = Target(name, 0), user("one")
    events = theatre.ask(target, (asked,), scene_of(interleaved(name, 90), 8)).events
    assert len(events) > 10
    for count in range(1, len(events)):
        left = kept(fold(events[:count]))
        assert all(call.raw_arguments is None for message in left for call in message.tool_calls)
        theatre.ask(target, (asked, *left, user("go on")), scene_of((Text("on"),)))


@pytest.mark.parametrize("name", sorted(HOUSES))
def test_law_any_message_may_be_taken_out(theatre: Theatre, name: str) -> None:
    """A history without any one of its messages, or without its beginning, is taken; also if another model made it."""
    target = Target(name, 1)
    for maker in (target, Target("plain chat" if name != "plain chat" else "chat lines", 2)):
        first = turn_of(theatre.ask(maker, (user("one"),), scene_of(interleaved(maker.house, 92))).reply)
        begun = (user("one"), first, results(first))
        second = turn_of(theatre.ask(maker, begun, scene_of((Thought("mull"), Text("So.")))).reply)
        asked = (*begun, second, user("two"))
        third = turn_of(theatre.ask(maker, asked, scene_of(interleaved(maker.house, 93))).reply)
        whole = (*asked, third, results(third), user("three"))
        for place in range(len(whole) - 1):
            for history in (whole[:place] + whole[place + 1 :], whole[place:]):
                theatre.ask(target, history, scene_of((Text("on"),)))


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("name", sorted(HOUSES))
def test_law_what_a_closed_stream_leaves_is_taken(theatre: Theatre, name: str, awaited: bool) -> None:
    """The partial of a stream that was left in the middle goes back to its own house, and to another."""
    target, asked = Target(name, 2), user("one")
    left = theatre.ask(
        target, (asked,), scene_of(interleaved(name, 91), 8), Manner(awaited=awaited, stop_after=6)
    ).reply
    history = (asked, *kept(left), user("go on"))
    theatre.ask(target, history, scene_of((Text("on"),)), Manner(awaited=awaited))
    theatre.ask(Target("messages with a budget", 1), history, scene_of((Text("on"),)), Manner(awaited=awaited))


@pytest.mark.parametrize("name", sorted(name for name, house in HOUSES.items() if house.returns == "seals"))
def test_no_stage_takes_the_seals_of_another(theatre: Theatre, name: str) -> None:
    """That every law here can fail: without the planner's knowledge of who made a seal, it is refused elsewhere."""
    said = turn_of(theatre.ask(Target(name, 0), (user("one"),), scene_of(interleaved(name, 94))).reply)
    history = (user("one"), _of_nobody(said), results(said))
    theatre.ask(Target(name, 0), history, scene_of((Text("on"),)))
    with pytest.raises(Refused):
        theatre.ask(Target(name, 1), history, scene_of((Text("on"),)))


def _of_nobody(message: Message) -> Message:
    """The turn as somebody would bring it who does not know where it is from."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, (Thought, Text, ToolCall)):
            seals = tuple(msgspec.structs.replace(seal, origin=None) for seal in part.seals)
            part = msgspec.structs.replace(part, seals=seals)
        parts.append(msgspec.structs.replace(part, origin=None) if isinstance(part, Thought) else part)
    return msgspec.structs.replace(message, parts=tuple(parts))
