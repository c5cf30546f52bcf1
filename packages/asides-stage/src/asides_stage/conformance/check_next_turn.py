"""Checks of the next turn: thinking goes back as the row's replay rule says, seals byte for byte, calls with results.

Pure.
"""

from __future__ import annotations

import msgspec

from asides.providers.endpoint import CHAT, RESPONSES
from asides.values.events import Event, ThoughtSealed
from asides.values.messages import Message, Prompt, user
from asides.values.parts import Text, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Origin, Seal, Thinking, Thought
from asides_stage.conformance.case import CALLING, CANARY, PLAIN, Case, Sample, Sent
from asides_stage.conformance.check_requests import ask_question, expect_accepted
from asides_stage.conformance.report import CheckFailed, CheckSkipped, expect
from asides_stage.conformance.response_bodies import Decoded
from asides_stage.stage.rules import RequestRules, RulesByDialect

RESULT = "It is blue."
_FOREIGN_SEAL = "Zm9yZWlnbi1zZWFs"


def follow_up(reply: Reply) -> tuple[Message, ...]:
    """Return the messages after a reply: the results of its calls, or the next question."""
    if reply.tool_calls:
        return (Message("tool", tuple(ToolResult(call.id, RESULT, call.name) for call in reply.tool_calls)),)
    return (user("And why?"),)


def _ask_for_thinking(case: Case) -> Prompt:
    return msgspec.structs.replace(ask_question(case), thinking=Thinking(effort="medium"))


def _encode_next_turn(case: Case, reply: Reply, asked: Prompt | None = None) -> Sent:
    asked = ask_question(case) if asked is None else asked
    message = reply.to_message()
    if message is None:
        raise CheckFailed("a message for history", "none", "give the reply a part: a text, a thought or a call.")
    history = (*asked.messages, message, *follow_up(reply))
    return case.encode(msgspec.structs.replace(asked, messages=history))


def the_next_turn_follows_the_replay_rule(case: Case) -> None:
    """Thinking goes back only where the row's replay rule says so, and never inside the text of the answer."""
    for sample in (PLAIN, CALLING):
        reply = case.decode(case.write_sample(sample, stream=True)).reply
        sent = _encode_next_turn(case, reply)
        is_planned = any(decision.action == "keep" and decision.what == "thought" for decision in sent.plan.decisions)
        goes_back = CANARY.encode() in sent.request.body
        expect(
            is_planned or not goes_back,
            expected=f"no thinking of {sample.name} in the next request, as the replay rule says "
            f"({case.row.replay_rule(case.model).when})",
            actual="the request contains it",
            to_do="send only what plan() left in the prompt; store no thinking elsewhere.",
        )
        if is_planned and not goes_back and not sent.has_notice("messages"):
            expect(
                _needs_seal(case, reply),
                expected=f"the thinking of {sample.name} in the next request, as the replay rule says "
                f"({case.row.replay_rule(case.model).when})",
                actual="it is not there, and no notice says why",
                to_do="write the Thought parts of messages in encode(), or remove the ReplayRule from the row.",
            )
        _check_text(case, sent, sample)


def _needs_seal(case: Case, reply: Reply) -> bool:
    """Return whether this dialect accepts thoughts only with a seal, and the thoughts of the reply have none."""
    rules = RulesByDialect().find(case.dialect.name)
    return rules is not None and not reply.seals


def _check_text(case: Case, sent: Sent, sample: Sample) -> None:
    if case.target.facts.replay_as == "tags":
        return  # this host takes thinking back inside the text, in tags
    answers = [message.text for message in case.read(sent).prompt.messages if message.role == "assistant"]
    expect(
        "".join(answers) == sample.text,
        expected=f"the answer of {sample.name} to go back unchanged",
        actual="thinking inside it"
        if CANARY in "".join(answers)
        else f"{len(''.join(answers))} characters, of {len(sample.text)}",
        to_do="write Text and Thought separately in encode(), and read them separately in read().",
    )


def foreign_thinking_is_not_sent(case: Case) -> None:
    """The thinking and the seals of another provider's model are not in the request."""
    elsewhere = Origin("another-host", "https://elsewhere.example/v1", "other-model")
    thought = Thought(CANARY, "raw", "field", elsewhere, (Seal("signature", _FOREIGN_SEAL, elsewhere),))
    turn = Message("assistant", (thought, Text("It is up.", (Seal("signature", _FOREIGN_SEAL, elsewhere),))))
    sent = case.encode(msgspec.structs.replace(ask_question(case), messages=(user("Where?"), turn, user("Why?"))))
    body = sent.request.body.decode()
    for what, secret in (("thinking", CANARY), ("seal", _FOREIGN_SEAL)):
        expect(
            secret not in body,
            expected=f"no {what} of another provider in the request",
            actual="the request contains it",
            to_do="send only what plan() left in the prompt.",
        )
    answers = [message.text for message in case.read(sent).prompt.messages if message.role == "assistant"]
    expect(
        answers == ["It is up."],
        expected="the answer in the request",
        actual=f"{answers}",
        to_do="write Text parts in encode().",
    )


def a_call_and_its_result_go_back(case: Case) -> None:
    """Calls keep their names, arguments and order; their results go back under the ids of the calls."""
    if case.rule.tools is not True:
        raise CheckSkipped("this model takes no tools")
    for stream in (True, False):
        reply = case.decode(case.write_sample(CALLING, stream=stream)).reply
        expect(
            reply.outcome == "tool_calls" and len({call.id for call in reply.tool_calls}) == len(CALLING.calls),
            expected=f"{len(CALLING.calls)} calls with distinct ids and the outcome 'tool_calls'",
            actual=f"{len(reply.tool_calls)} calls and {reply.outcome!r}",
            to_do="emit ToolCallDelta with a block number for each call, and StopReason('tool_calls').",
        )
        sent = _encode_next_turn(case, reply)
        expect_accepted(case, sent, "the turn after two calls")
        served = case.read(sent).prompt
        calls = [call for message in served.messages for call in message.tool_calls]
        results = [part for message in served.messages for part in message.parts if isinstance(part, ToolResult)]
        expect(
            [(call.name, call.arguments) for call in calls] == [(call.name, call.arguments) for call in CALLING.calls],
            expected="the calls in the next request, unchanged",
            actual=f"{len(calls)} calls, or others",
            to_do="write ToolCall parts in encode(), and read them in read().",
        )
        expect(
            [result.call_id for result in results] == [call.id for call in calls],
            expected="a result for each call, under its id",
            actual=f"{len(results)} results for {len(calls)} calls, or under other ids",
            to_do="write ToolResult parts with their call_id.",
        )
        expect(
            all(RESULT in result.text for result in results),
            expected="the text of the results",
            actual="another text",
            to_do="write ToolResult.content.",
        )


def seals_return(case: Case) -> None:
    """Every seal that a server puts on a reply stays the same byte for byte, and is in the next request if the replay
    rule says so; a strict server accepts it.
    """
    rules = RulesByDialect().find(case.dialect.name)
    found = False
    for sample in (PLAIN, CALLING):
        for stream in (True, False):
            issued_seals, decoded = _seal_and_decode(case, sample, rules, stream=stream)
            found = found or bool(issued_seals)
            found_seals = [seal.value for seal in decoded.reply.seals]
            expect(
                found_seals == issued_seals,
                expected=f"the {len(issued_seals)} seals that the server put on {sample.name}, byte for byte",
                actual=f"{len(found_seals)} seals" if len(found_seals) != len(issued_seals) else "other values",
                to_do="emit ThoughtSealed(Seal(kind, value, origin), block) for each opaque token of the wire.",
            )
            sent = _encode_next_turn(case, decoded.reply, _ask_for_thinking(case))
            _check_returned(case, sent, sample)
            if rules is not None and is_strict(case) and (refusal := rules.refuse(case.receive(sent))) is not None:
                raise explain_refusal(case, f"a strict server to accept the turn after {sample.name}", refusal)
    if not found:
        raise CheckSkipped(
            "no server of this dialect seals its replies on the stage; if yours does, give the dialect a method "
            "request_rules(secret)"
        )


def explain_refusal(case: Case, expected: str, refusal: str) -> CheckFailed | CheckSkipped:
    """Return the outcome for a turn that the stage refuses. The chat rules of the stage follow the model's name and are
    those of its maker. Other hosts serve the same models, and a row may know that its host accepts the turn.
    """
    if case.dialect.name == CHAT:
        return CheckSkipped(
            f"the maker of this model would refuse the turn ({refusal}); check that your host accepts it"
        )
    to_do = "send back what the provider demands; the ReplayRule of the row says what plan() keeps."
    return CheckFailed(expected, f"it says: {refusal}", to_do)


def is_strict(case: Case) -> bool:
    """Return whether the stage's rules for the dialect apply to this host. Those for Responses apply only to hosts with
    encrypted reasoning.
    """
    return case.dialect.name != RESPONSES or case.target.quirks.encrypted_reasoning


def _seal_and_decode(
    case: Case, sample: Sample, rules: RequestRules | None, *, stream: bool
) -> tuple[list[str], Decoded]:
    """Return the values of the seals that a strict server puts on a sample, and the decoded sample."""
    events: list[Event] = sample.events(case.target)
    if rules is not None:
        events = rules.seal(events, case.receive(case.encode(_ask_for_thinking(case))))
    issued_seals = [event.seal.value for event in events if isinstance(event, ThoughtSealed) and event.seal.value]
    return issued_seals, case.decode(case.write(events, stream=stream))


def _check_returned(case: Case, sent: Sent, sample: Sample) -> None:
    planned = [
        seal.value
        for message in sent.plan.prompt.messages
        for part in message.parts
        for seal in part.seals
        if seal.value
    ]
    body = sent.request.body
    missing = [value for value in planned if msgspec.json.encode(value)[1:-1] not in body]
    expect(
        not missing,
        expected=f"every seal of {sample.name} in the next request, since plan() keeps it "
        f"({case.row.replay_rule(case.model).when})",
        actual=f"{len(missing)} of {len(planned)} are not there",
        to_do="write the seals of Thought, Text and ToolCall parts in encode().",
    )
