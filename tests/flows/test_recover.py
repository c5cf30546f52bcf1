"""A reply without an answer is recovered, over sockets: what is sent, what the caller gets, and when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec
import pytest

import asides
from asides.history.plan import plan
from asides.providers.find import find_target
from asides.testing.stage import Fail, Say, Stage
from asides.values.events import Event
from asides.values.fold import fold
from asides.values.reply import Reply

STARVED = Say(thinking="a long plan", stop="length", usage=asides.Usage(10, 20, 20, None, 30))
ENDED = Say(thinking="a plan, and then nothing", usage=asides.Usage(10, 20, 20, None, 30))
ANSWER = Say("It is 42.", thinking="quick", usage=asides.Usage(10, 7, 2, None, 17))

LADDER = asides.ModelRule(
    thinking="optional", efforts=("low", "medium", "high"), max_output=50_000, since="2026-11", source="here"
)


class Server:
    """A stage, and a client whose row leads to it."""

    def __init__(self, stage: Stage, rule: asides.ModelRule, quirks: asides.Quirks) -> None:
        self.stage = stage
        self.row = asides.Provider(name="mine", base_url=stage.url, key="optional", models=(rule,), quirks=quirks)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.json for request in self.stage.requests]

    def client(self, **options: Any) -> asides.Client:
        return asides.Client(providers=[self.row], settings=asides.Settings(), **options)

    def stream(self, **options: Any) -> tuple[list[Event], Reply]:
        stream = self.client().stream("mine:m", "?", **options)
        return list(stream), stream.reply

    def stream_async(self, **options: Any) -> tuple[list[Event], Reply]:
        async def run() -> tuple[list[Event], Reply]:
            client = asides.AsyncClient(providers=[self.row], settings=asides.Settings())
            async with client, client.stream("mine:m", "?", **options) as stream:
                return [event async for event in stream], stream.reply

        return asyncio.run(run())


Open: TypeAlias = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Open]:
    with ExitStack() as stack:

        def open_server(*script: Any, rule: asides.ModelRule = LADDER, **quirks: Any) -> Server:
            return Server(stack.enter_context(Stage(list(script))), rule, asides.Quirks(**quirks))

        yield open_server


def codes(reply: Reply) -> list[str]:
    return [notice.code for notice in reply.warnings]


def strip_ids(events: list[Event]) -> list[Event]:
    """The events without the ids of replies, which the stage makes at random."""

    def strip(event: Any) -> Any:
        if isinstance(event, asides.ReplyStarted):
            return msgspec.structs.replace(event, id=None)
        if isinstance(event, asides.ReplyEnded) and event.started is not None:
            return msgspec.structs.replace(event, started=msgspec.structs.replace(event.started, id=None))
        return event

    return [strip(event) for event in events]


# --- one stream, one reply --------------------------------------------------------------------------------------------


def test_the_events_of_all_attempts_are_one_stream_and_one_reply(serve: Open) -> None:
    server = serve(STARVED, STARVED, ANSWER)
    events, reply = server.stream(thinking="high", max_tokens=100, recover=True)
    assert fold(events) == reply
    assert [type(event) for event in events].count(asides.ReplyStarted) == 1
    assert [type(event) for event in events].count(asides.ReplyEnded) == 1
    assert isinstance(events[-1], asides.ReplyEnded)
    thinking = {event.block: event.text for event in events if isinstance(event, asides.ThinkingDelta)}
    assert list(thinking.values()) == ["a long plan", "a long plan", "quick"]
    assert "".join(event.text for event in events if isinstance(event, asides.TextDelta)) == reply.text == "It is 42."
    assert reply.thinking
    assert reply.thinking.text == "a long plan\n\na long plan\n\nquick"
    assert reply.outcome == "answered"
    assert reply.usage == asides.Usage(30, 47, 42, None, 77)
    assert reply.timing is not None
    assert reply.timing.first_thought is not None
    assert reply.timing.first_word is not None
    assert reply.timing.first_thought < reply.timing.first_word
    assert [(notice.code, notice.asked, notice.sent) for notice in reply.warnings] == [
        ("recover_less_effort", "high", "medium"),
        ("recover_more_tokens", "100", "4196"),
    ]
    assert [(body["reasoning_effort"], body["max_tokens"]) for body in server.bodies] == [
        ("high", 100),
        ("medium", 100),
        ("medium", 4196),
    ]


def test_async_does_the_same(serve: Open) -> None:
    options: dict[str, Any] = {"thinking": "high", "max_tokens": 100, "recover": True}
    one, other = serve(STARVED, STARVED, ANSWER), serve(STARVED, STARVED, ANSWER)
    (events, _), (async_events, reply) = one.stream(**options), other.stream_async(**options)
    ours, theirs = strip_ids(events), strip_ids(async_events)
    start = msgspec.structs.replace
    origin = reply.origin
    assert [start(event, origin=origin) if hasattr(event, "origin") else event for event in ours[:-1]] == theirs[:-1]
    assert one.bodies == other.bodies


def test_ask_gives_the_reply_of_the_stream(serve: Open) -> None:
    whole = serve(STARVED, ANSWER).client().ask("mine:m", "?", thinking="high", recover=True)
    _, streamed = serve(STARVED, ANSWER).stream(thinking="high", recover=True)
    for name in ("text", "usage", "warnings", "outcome"):
        assert getattr(whole, name) == getattr(streamed, name)
    assert [type(part) for part in whole.parts] == [asides.Thought, asides.Thought, asides.Text]


def test_thoughts_of_attempts_that_were_given_up_do_not_go_back(serve: Open) -> None:
    server = serve(STARVED, ANSWER)
    _, reply = server.stream(thinking="high", recover=True)
    assert [(part.text, part.replayable) for part in reply.parts if isinstance(part, asides.Thought)] == [
        ("a long plan", False),
        ("quick", True),
    ]
    row = msgspec.structs.replace(server.row, replay=(asides.ReplayRule(when="all"),))
    message = reply.to_message()
    assert message is not None
    planned = plan(asides.Prompt((asides.user("?"), message, asides.user("more"))), find_target("mine:m", rows=(row,)))
    sent = planned.prompt.messages[1].parts
    assert [part.text for part in sent if isinstance(part, (asides.Thought, asides.Text))] == ["quick", "It is 42."]


def test_off_by_default(serve: Open) -> None:
    server = serve(STARVED, ANSWER)
    _, reply = server.stream(thinking="high")
    assert (reply.outcome, reply.warnings, len(server.bodies)) == ("starved", (), 1)


def test_a_client_may_recover_and_a_call_may_not(serve: Open) -> None:
    server = serve(STARVED, ANSWER)
    reply = server.client(recover=True).ask("mine:m", "?", recover=False)
    assert (reply.outcome, len(server.bodies)) == ("starved", 1)


@pytest.mark.parametrize(
    "said",
    [
        Say("an answer that was cut", thinking="hm", stop="length"),
        Say(refusal="I will not."),
        Say("", thinking="hm", stop="content_filter"),
        Say("", thinking="hm", tool_calls=(asides.ToolCall("call_1", "look", {}),), stop="length"),
    ],
    ids=["answer", "refusal", "filter", "call"],
)
def test_other_outcomes_are_left_alone(serve: Open, said: Say) -> None:
    server = serve(said, ANSWER)
    _, reply = server.stream(recover=True)
    assert (len(server.bodies), reply.warnings) == (1, ())


def test_thinking_is_never_promoted(serve: Open) -> None:
    server = serve(STARVED, STARVED, STARVED, STARVED)
    events, reply = server.stream(thinking="high", max_tokens=100, recover=True)
    assert (reply.text, reply.outcome) == ("", "starved")
    assert codes(reply) == ["recover_less_effort", "recover_more_tokens", "not_recovered"]
    assert fold(events) == reply
    assert len(server.bodies) == 3


# --- the steps --------------------------------------------------------------------------------------------------------


def test_the_model_goes_on_from_its_thinking_with_a_prefix(serve: Open) -> None:
    server = serve(ENDED, Say("It is 42."), continues="prefix", replay_field="reasoning_content")
    events, reply = server.stream(recover=True)
    first, second = server.bodies
    assert second["messages"] == [
        *first["messages"],
        {"role": "assistant", "content": "", "reasoning_content": "a plan, and then nothing", "prefix": True},
    ]
    assert server.stage.requests[1].path == "/beta/chat/completions"
    assert (reply.text, codes(reply)) == ("It is 42.", ["recover_continue"])
    assert [part.replayable for part in reply.parts if isinstance(part, asides.Thought)] == [True]
    assert fold(events) == reply


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_a_server_that_repeats_the_beginning_is_not_heard_twice(serve: Open, piece: int) -> None:
    echo = Say("It is 42.", thinking="\na long plan\nof mine. And more.", piece=piece)
    begun = msgspec.structs.replace(STARVED, thinking="a long plan\nof mine.")
    server = serve(begun, echo, continues="final_message", ask_by="template_and_effort", tags=("think",))
    events, reply = server.stream(thinking="high", recover=True)
    body = server.bodies[1]
    assert body["messages"][-1]["content"] == "<think>\na long plan\nof mine.\n</think>\n\n"
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert reply.thinking
    assert reply.thinking.text == "a long plan\nof mine.\n\nAnd more."
    assert (reply.text, codes(reply)) == ("It is 42.", ["recover_continue"])
    assert fold(events) == reply


def test_a_model_with_tags_of_its_own_is_not_continued(serve: Open) -> None:
    server = serve(STARVED, ANSWER, continues="final_message", tags=("harmony", "think"))
    _, reply = server.stream(thinking="high", recover=True)
    assert codes(reply) == ["recover_less_effort"]


def test_more_tokens_end_at_the_limit_of_the_model_or_the_policy(serve: Open) -> None:
    for policy, sent in (({}, 50_000), ({"max_tokens": 30_000}, 30_000)):
        server = serve(STARVED, ANSWER)
        server.stream(max_tokens=20_000, recover={"steps": ["more_tokens"], **policy})
        assert [body["max_tokens"] for body in server.bodies] == [20_000, sent]
    server = serve(STARVED, ANSWER)
    _, reply = server.stream(max_tokens=50_000, recover={"steps": ["more_tokens"]})
    assert codes(reply) == ["not_recovered"]
    assert len(server.bodies) == 1


def test_a_step_may_be_named_twice(serve: Open) -> None:
    server = serve(STARVED, STARVED, ANSWER)
    server.stream(thinking="high", recover=asides.RecoverPolicy(steps=("less_effort", "less_effort")))
    assert [body["reasoning_effort"] for body in server.bodies] == ["high", "medium", "low"]


# --- limits and failures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "requests"),
    [
        (asides.RecoverPolicy(max_requests=1), 2),
        (asides.RecoverPolicy(max_total_tokens=61), 3),
        (asides.RecoverPolicy(max_total_tokens=31), 2),
        (asides.RecoverPolicy(max_total_tokens=30), 1),
        (asides.RecoverPolicy(max_cost=Decimal("0.03")), 3),
        (asides.RecoverPolicy(max_cost=Decimal("0.02")), 2),
        ({"max_cost": 0.01}, 1),
    ],
)
def test_limits_end_the_recovery(serve: Open, policy: Any, requests: int) -> None:
    usage = asides.Usage(10, 20, 20, None, 30, cost=Decimal("0.01"))
    starved = Say(events=(
        asides.ReplyStarted("m", "1"), asides.ThinkingDelta("plan", 0), asides.UsageReported(usage),
        asides.ReplyEnded(asides.StopReason("length")),
    ))  # fmt: skip
    server = serve(*[starved] * 5)
    _, reply = server.stream(thinking="high", max_tokens=100, recover=policy)
    assert len(server.bodies) == requests
    assert reply.warnings[-1].code == ("recover_stopped" if requests < 3 else "not_recovered")


def test_an_unknown_cost_allows_no_request(serve: Open) -> None:
    server = serve(STARVED, ANSWER)
    _, reply = server.stream(recover={"max_cost": 5})
    assert (codes(reply), len(server.bodies)) == (["recover_stopped"], 1)


def test_a_step_that_fails_costs_nothing_and_the_next_is_tried(serve: Open) -> None:
    server = serve(STARVED, Fail(400, "no such effort: SECRET"), ANSWER)
    _, reply = server.stream(thinking="high", max_tokens=100, recover=True)
    assert reply.text == "It is 42."
    assert codes(reply) == ["recover_less_effort", "recover_failed", "recover_more_tokens"]
    assert "SECRET" not in str(reply.warnings)
    assert server.bodies[-1]["reasoning_effort"] == "high"


def test_when_all_steps_fail_the_first_reply_stays(serve: Open) -> None:
    server = serve(STARVED, Fail(400), Fail(400))
    events, reply = server.stream(thinking="high", max_tokens=100, recover=True)
    assert reply.outcome == "starved"
    assert [part.replayable for part in reply.parts if isinstance(part, asides.Thought)] == [True]
    assert fold(events) == reply


def test_an_attempt_that_breaks_after_its_first_event_raises_with_all_that_came(serve: Open) -> None:
    server = serve(STARVED, msgspec.structs.replace(ANSWER, thinking="quick, quick, quick", piece=4, cut_after=500))
    stream = server.client().stream("mine:m", "?", thinking="high", recover=True, retries=0)
    with pytest.raises(asides.AsidesError) as raised:
        list(stream)
    for partial in (raised.value.partial, stream.partial):
        assert partial is not None
        assert partial.thinking
        assert partial.thinking.text.startswith("a long plan\n\nqui")
        assert not partial.complete


def test_a_stream_that_is_closed_in_a_later_attempt_keeps_all_thinking(serve: Open) -> None:
    server = serve(STARVED, ANSWER)
    with server.client().stream("mine:m", "?", thinking="high", recover=True) as stream:
        for event in stream:
            if isinstance(event, asides.ThinkingDelta) and event.text == "quick":
                break
    assert stream.partial is not None
    assert [(part.text, part.replayable) for part in stream.partial.parts if isinstance(part, asides.Thought)] == [
        ("a long plan", False),
        ("quick", True),
    ]


# --- typed answers ----------------------------------------------------------------------------------------------------


class City(msgspec.Struct):
    name: str
    people: int


CUT = Say('{"name": "Paris", "peo', thinking="hm", stop="length", usage=asides.Usage(10, 20, 20, None, 30))
CITY = Say('{"name": "Paris", "people": 2}', usage=asides.Usage(10, 7, 2, None, 17))


def test_a_typed_answer_that_was_cut_is_asked_for_again(serve: Open) -> None:
    server = serve(CUT, CITY)
    reply = server.client().ask("mine:m", "?", output=City, max_tokens=100, recover={"steps": ["more_tokens"]})
    assert reply.output == City("Paris", 2)
    assert reply.text == CITY.text
    assert (codes(reply), reply.usage.total) == (["recover_more_tokens"], 47)


def test_a_stream_delivers_a_typed_answer_once_it_is_whole(serve: Open) -> None:
    server = serve(CUT, CITY)
    events, reply = server.stream(output=City, max_tokens=100, recover={"steps": ["more_tokens"]})
    assert "".join(event.text for event in events if isinstance(event, asides.TextDelta)) == CITY.text
    assert fold(events) == reply
    assert reply.output == City("Paris", 2)


def test_a_cut_answer_that_is_not_recovered_stays(serve: Open) -> None:
    server = serve(CUT, Fail(400))
    _, reply = server.stream(output=City, max_tokens=100, recover={"steps": ["more_tokens"]})
    assert (reply.text, codes(reply)) == (CUT.text, ["recover_more_tokens", "recover_failed", "not_recovered"])


def test_the_partial_of_a_typed_stream_has_the_text_so_far(serve: Open) -> None:
    server = serve(msgspec.structs.replace(CITY, piece=3, thinking="hm", hang_after=700))
    with server.client().stream("mine:m", "?", output=City, recover=True, timeout=0.5, retries=0) as stream:
        with pytest.raises(asides.AsidesError):
            list(stream)
        assert stream.partial is not None
        assert stream.partial.text
        assert CITY.text.startswith(stream.partial.text)


def test_text_that_only_looks_cut_is_not_asked_again(serve: Open) -> None:
    server = serve(msgspec.structs.replace(CITY, stop="length"), ANSWER)
    _, reply = server.stream(output=City, recover=True)
    assert (reply.output, len(server.bodies)) == (City("Paris", 2), 1)


# --- agents, fallbacks, many questions, conversations -----------------------------------------------------------------


def look() -> str:
    """Look."""
    return "a cat"


_NO_SCHEMA = asides.ModelRule(thinking="never", max_output=50_000)
CALL = Say(tool_calls=(asides.ToolCall("call_1", "look", {}),), usage=asides.Usage(10, 5, 0, None, 15))


def test_a_step_of_an_agent_is_recovered_inside_the_run(serve: Open) -> None:
    server = serve(CALL, STARVED, ANSWER)
    result = asides.Agent("mine:m", tools=[look], client=server.client(), thinking="high", recover=True).run("?")
    assert result.output == "It is 42."
    assert [step.reply.outcome for step in result.steps] == ["tool_calls", "answered"]
    assert result.usage.total == 15 + 30 + 17
    assert "recover_less_effort" in [notice.code for notice in result.warnings]
    assert [message["role"] for message in server.bodies[2]["messages"]] == ["user", "assistant", "tool"]


def test_recovery_counts_in_the_limits_of_a_run(serve: Open) -> None:
    server = serve(CALL, STARVED, ANSWER)
    agent = asides.Agent(
        "mine:m", tools=[look], client=server.client(), thinking="high", recover=True, limits=asides.Limits(turns=2)
    )
    result = agent.run("?")
    assert (result.output, result.outcome, len(server.bodies)) == ("", "starved", 2)
    assert result.warnings[-1].code == "recover_stopped"


def test_a_recovered_step_is_a_turn_less_for_the_others(serve: Open) -> None:
    server = serve(STARVED, CALL, CALL, ANSWER)
    agent = asides.Agent(
        "mine:m", tools=[look], client=server.client(), thinking="high", recover=True, limits=asides.Limits(turns=3)
    )
    with pytest.raises(asides.TooManyTurns):
        agent.run("?")
    assert len(server.bodies) == 3


def test_tokens_of_a_run_limit_the_recovery(serve: Open) -> None:
    server = serve(STARVED, ANSWER)
    agent = asides.Agent("mine:m", client=server.client(), recover=True, limits=asides.Limits(tokens=30))
    assert (agent.run("?").output, len(server.bodies)) == ("", 1)


def test_a_typed_answer_of_an_agent_is_recovered(serve: Open) -> None:
    server = serve(CUT, CITY)
    agent = asides.Agent("mine:m", output=City, client=server.client(), max_tokens=100, recover=True)
    with agent.stream("?") as events:
        texts = [event.text for event in events if isinstance(event, asides.TextDelta)]
        assert events.result.output == City("Paris", 2)
    assert "".join(texts) == CITY.text
    assert len(server.bodies) == 2


def test_an_answer_that_is_a_call_and_was_cut_is_recovered(serve: Open) -> None:
    cut = asides.ToolCall("call_1", "final_answer", {}, raw_arguments='{"name": "Pa')
    whole = asides.ToolCall("call_2", "final_answer", {"name": "Paris", "people": 2})
    server = serve(
        Say(tool_calls=(cut,), stop="length"), Say(tool_calls=(whole,)), structured_output="nothing", rule=_NO_SCHEMA
    )
    agent = asides.Agent("mine:m", output=City, tools=[look], client=server.client(), max_tokens=100, recover=True)
    with agent.stream("?") as events:
        names = [event.name for event in events if isinstance(event, asides.ToolCallDelta) and event.name]
        result = events.result
    offered = [tool["function"]["name"] for tool in server.bodies[0]["tools"]]
    assert "final_answer" in offered, offered
    assert (result.output, names, len(server.bodies)) == (City("Paris", 2), ["final_answer"], 2)


def test_a_react_agent_is_recovered(serve: Open) -> None:
    server = serve(STARVED, Say("Thought: easy.\nFinal Answer: It is 42."))
    agent = asides.Agent("mine:m", tools=[look], mode="react", client=server.client(), thinking="high", recover=True)
    assert agent.run("?").output == "It is 42."


def test_the_model_that_answered_is_asked_again(serve: Open) -> None:
    failing, starving = serve(*[Fail(400)] * 3), serve(STARVED, ANSWER)
    rows = [failing.row, msgspec.structs.replace(starving.row, name="second")]
    client = asides.Client(providers=rows, settings=asides.Settings())
    reply = client.ask(["mine:m", "second:m"], "?", thinking="high", recover=True)
    assert reply.text == "It is 42."
    assert codes(reply) == ["fell_back", "recover_less_effort"]
    assert [len(server.bodies) for server in (failing, starving)] == [1, 2]


def test_many_questions_and_conversations_recover_too(serve: Open) -> None:
    server = serve(STARVED, ANSWER, STARVED, ANSWER, ANSWER)
    client = server.client(recover=True, thinking="high")
    [(_, reply)] = client.ask_many("mine:m", ["?"], concurrency=1)
    assert isinstance(reply, Reply)
    assert reply.text == "It is 42."
    chat = asides.Conversation("mine:m", client=client)
    assert chat.ask("?").text == "It is 42."
    assert [type(part) for part in chat.messages[-1].parts] == [asides.Thought, asides.Thought, asides.Text]
    chat.ask("and?")
    assert server.bodies[-1]["messages"][1] == {"role": "assistant", "content": "It is 42."}
