"""The next turn: what a reply leaves in the history goes back as the row's replay rule says, seals byte for byte, calls
with their results, thinking never as text.

Pure. Not here: the same over sockets (sockets).
"""

from __future__ import annotations

import msgspec

from asides.providers.endpoint import CHAT, RESPONSES
from asides.testing.conformance.case import CALLING, CANARY, PLAIN, Case, Sample, Sent
from asides.testing.conformance.check_requests import QUESTION
from asides.testing.conformance.report import Broken, NotHere, expect
from asides.testing.conformance.response_bodies import Decoded
from asides.testing.stage.rules import RequestRules, RulesByDialect
from asides.values.events import Event, ThoughtSealed
from asides.values.messages import Message, Prompt, Text, ToolCall, ToolResult, user
from asides.values.reply import Reply
from asides.values.thinking import Origin, Seal, Thinking, Thought

RESULT = "It is blue."
_FOREIGN_SEAL = "Zm9yZWlnbi1zZWFs"
_ASKED = msgspec.structs.replace(QUESTION, thinking=Thinking(effort="medium"))


def behind(reply: Reply) -> tuple[Message, ...]:
    """What follows a reply: the results of its calls, or the next question."""
    if reply.tool_calls:
        return (Message("tool", tuple(ToolResult(call.id, RESULT, call.name) for call in reply.tool_calls)),)
    return (user("And why?"),)


def _next(case: Case, reply: Reply, asked: Prompt = QUESTION) -> Sent:
    message = reply.to_message()
    if message is None:
        raise Broken("a message for history", "none", "give the reply a part: a text, a thought or a call.")
    history = (*asked.messages, message, *behind(reply))
    return case.encode(msgspec.structs.replace(asked, messages=history))


def the_next_turn_follows_the_replay_rule(case: Case) -> None:
    """Thinking goes back where the row's rule says so and nowhere else, and never inside the text of the answer."""
    for sample in (PLAIN, CALLING):
        reply = case.decode(case.body_of(sample, stream=True)).reply
        sent = _next(case, reply)
        kept = any(decision.action == "keep" and decision.what == "thought" for decision in sent.plan.decisions)
        goes_back = CANARY.encode() in sent.request.body
        expect(
            kept or not goes_back,
            expected=f"no thinking of {sample.name} in the next request, as the replay rule says "
            f"({case.row.replay_rule(case.model).when})",
            came="it stands there",
            to_do="send only what plan() left in the prompt; do not keep thinking anywhere else.",
        )
        if kept and not goes_back and not sent.told("messages"):
            expect(
                _is_sealed_only(case, reply),
                expected=f"the thinking of {sample.name} in the next request, as the replay rule says "
                f"({case.row.replay_rule(case.model).when})",
                came="it is not there, and not a word",
                to_do="spell the Thought parts of messages in encode(), or take the ReplayRule out of the row.",
            )
        _check_text(case, sent, sample)


def _is_sealed_only(case: Case, reply: Reply) -> bool:
    """Whether this dialect takes thoughts back only with a seal, which these have not."""
    house = RulesByDialect().of(case.dialect.name)
    return house is not None and not reply.seals


def _check_text(case: Case, sent: Sent, sample: Sample) -> None:
    if case.target.facts.replay_as == "tags":
        return  # this host wants it back the way it gives it
    said = [message.text for message in case.serve(sent).prompt.messages if message.role == "assistant"]
    expect(
        "".join(said) == sample.text,
        expected=f"the answer of {sample.name} to go back as it came",
        came="thinking inside it"
        if CANARY in "".join(said)
        else f"{len(''.join(said))} characters, of {len(sample.text)}",
        to_do="keep Text and Thought apart in encode(), and read them apart in read().",
    )


def foreign_thinking_stays_behind(case: Case) -> None:
    """What another provider's model thought, and the seals it put on it, are not in the request at all."""
    elsewhere = Origin("somebody-else", "https://elsewhere.example/v1", "other-model")
    thought = Thought(CANARY, "raw", "field", elsewhere, (Seal("signature", _FOREIGN_SEAL, elsewhere),))
    turn = Message("assistant", (thought, Text("It is up.", (Seal("signature", _FOREIGN_SEAL, elsewhere),))))
    sent = case.encode(msgspec.structs.replace(QUESTION, messages=(user("Where?"), turn, user("Why?"))))
    body = sent.request.body.decode()
    for what, secret in (("thinking", CANARY), ("seal", _FOREIGN_SEAL)):
        expect(
            secret not in body,
            expected=f"no {what} of another provider in the request",
            came="it stands there",
            to_do="send only what plan() left in the prompt.",
        )
    said = [message.text for message in case.serve(sent).prompt.messages if message.role == "assistant"]
    expect(said == ["It is up."], expected="the answer to go along", came=f"{said}", to_do="spell Text parts.")


def a_call_and_its_result_go_back(case: Case) -> None:
    """Calls keep their names, arguments and order; their results go back under the ids that they came with."""
    for stream in (True, False):
        reply = case.decode(case.body_of(CALLING, stream=stream)).reply
        expect(
            reply.outcome == "tool_calls" and len({call.id for call in reply.tool_calls}) == len(CALLING.calls),
            expected=f"{len(CALLING.calls)} calls with ids of their own and the outcome 'tool_calls'",
            came=f"{len(reply.tool_calls)} calls and {reply.outcome!r}",
            to_do="emit ToolCallDelta with a block number for each call, and StopReason('tool_calls').",
        )
        served = case.serve(_next(case, reply)).prompt
        calls = [call for message in served.messages for call in message.tool_calls]
        results = [part for message in served.messages for part in message.parts if isinstance(part, ToolResult)]
        expect(
            [_call(call) for call in calls] == [_call(call) for call in CALLING.calls],
            expected="the calls in the next request, as they came",
            came=f"{len(calls)} calls, or others",
            to_do="spell ToolCall parts in encode(), and read them in read().",
        )
        expect(
            [result.call_id for result in results] == [call.id for call in calls],
            expected="a result for each call, under its id",
            came=f"{len(results)} results for {len(calls)} calls, or under other ids",
            to_do="spell ToolResult parts with their call_id.",
        )
        expect(
            all(RESULT in result.text for result in results),
            expected="the words of the results",
            came="others",
            to_do="spell ToolResult.content.",
        )


def _call(call: ToolCall) -> tuple[str, object]:
    return call.name, call.arguments


def seals_return(case: Case) -> None:
    """Every seal that a server puts on a reply is kept, byte for byte, and stands in the next request where the replay
    rule says so; a strict server accepts it.
    """
    house = RulesByDialect().of(case.dialect.name)
    found = False
    for sample in (PLAIN, CALLING):
        for stream in (True, False):
            given, decoded = _sealed(case, sample, house, stream=stream)
            found = found or bool(given)
            kept = [seal.value for seal in decoded.reply.seals]
            expect(
                kept == given,
                expected=f"the {len(given)} seals that the server put on {sample.name}, byte for byte",
                came=f"{len(kept)} seals" if len(kept) != len(given) else "others",
                to_do="emit ThoughtSealed(Seal(kind, value, origin), block) for each opaque token of the wire.",
            )
            sent = _next(case, decoded.reply, _ASKED)
            _check_returned(case, sent, sample)
            if house is not None and is_strict(case) and (refusal := house.refuse(case.arrived(sent))) is not None:
                raise refused(case, f"the turn behind {sample.name} to be accepted by a strict server", refusal)
    if not found:
        raise NotHere(
            "no server of this dialect seals its replies on the stage; where yours does, give the dialect house_rules()"
        )


def refused(case: Case, expected: str, refusal: str) -> Broken | NotHere:
    """What to make of a turn that the stage refuses. Its rules for chat completions go by the names of models and are
    their makers'; many serve the same models, and a row may know that its host takes the turn.
    """
    if case.dialect.name == CHAT:
        return NotHere(f"the maker of this model would refuse the turn ({refusal}); see that your host takes it")
    to_do = "send back what the provider demands; the ReplayRule of the row says what plan() keeps."
    return Broken(expected, f"it says: {refusal}", to_do)


def is_strict(case: Case) -> bool:
    """Whether the stage's rules for the dialect are those of this host: those for Responses are of hosts that hand out
    encrypted reasoning, and others take any turn.
    """
    return case.dialect.name != RESPONSES or case.target.quirks.encrypted_reasoning


def _sealed(case: Case, sample: Sample, house: RequestRules | None, *, stream: bool) -> tuple[list[str], Decoded]:
    """The values of the seals that a strict server puts on a sample, and the sample as it is then read."""
    events: list[Event] = sample.events(case.target)
    if house is not None:
        events = house.seal(events, case.arrived(case.encode(_ASKED)))
    given = [event.seal.value for event in events if isinstance(event, ThoughtSealed) and event.seal.value]
    return given, case.decode(case.write(events, stream=stream))


def _check_returned(case: Case, sent: Sent, sample: Sample) -> None:
    planned = [
        seal.value
        for message in sent.plan.prompt.messages
        for part in message.parts
        for seal in getattr(part, "seals", ())
        if seal.value
    ]
    body = sent.request.body
    missing = [value for value in planned if msgspec.json.encode(value)[1:-1] not in body]
    expect(
        not missing,
        expected=f"every seal of {sample.name} in the next request, since plan() keeps it "
        f"({case.row.replay_rule(case.model).when})",
        came=f"{len(missing)} of {len(planned)} are not there",
        to_do="spell the seals of Thought, Text and ToolCall parts in encode().",
    )
