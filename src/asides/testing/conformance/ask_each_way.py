"""Asking for thinking: what was asked reaches the wire in a form that the dialect reads, or it is said why not.

Not here: what comes back (laws), and earlier turns (turns).
"""

from __future__ import annotations

import msgspec

from asides.providers.endpoint import CHAT
from asides.providers.provider import AskBy
from asides.testing.conformance.case import Case, Sent
from asides.testing.conformance.report import NotHere, expect
from asides.values.errors import InvalidThinking, Unsupported
from asides.values.messages import Prompt, Sampling, user
from asides.values.model_info import ModelInfo
from asides.values.thinking import EFFORTS, Thinking
from asides.values.tools import Tool

TOOLS = (
    Tool(
        "look_up",
        "Looks things up.",
        {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    ),
)
QUESTION = Prompt((user("What is it?"),), system="Be brief.", tools=TOOLS, max_tokens=8000)
_BUDGET = 2000
_TEMPERATURE = 0.25
# The fields of each way to ask that a row can name (providers/provider.py: AskBy); one of them has to be there.
_FIELDS: dict[AskBy, tuple[str, ...]] = {
    "reasoning_effort": ("reasoning_effort",),
    "reasoning_object": ("reasoning",),
    "thinking_toggle": ("thinking",),
    "thinking_toggle_and_effort": ("thinking",),
    "enable_thinking": ("enable_thinking", "thinking_budget"),
    "template": ("chat_template_kwargs",),
    "template_and_effort": ("chat_template_kwargs",),
    "prompt_mode": ("prompt_mode", "reasoning_effort"),
    "thinking_budget": ("thinkingBudget",),
    "thinking_level": ("thinkingLevel",),
    "think": ("think",),
    "max_reasoning_effort": ("maxReasoningEffort",),
    "reasoning_config": ("reasoning_config",),
}


def _asking(case: Case, thinking: Thinking) -> Sent:
    return case.encode(msgspec.structs.replace(QUESTION, thinking=thinking))


def _is_refused(case: Case, thinking: Thinking, because: str) -> None:
    try:
        case.encode(msgspec.structs.replace(QUESTION, thinking=thinking), "raise")
    except InvalidThinking:
        return
    expect(
        False,
        expected=f"InvalidThinking, since the row says that this model {because}",
        came="a request",
        to_do="see plan/check.py.",
    )


def a_request_is_read_by_the_server_half(case: Case) -> None:
    """The question, the system prompt, the tools and the model arrive, and whether it is to be streamed; a temperature
    does, or it is said that it does not; the same prompt gives the same bytes, and no key is in them.
    """
    sent = _asking(case, Thinking())
    expect(
        sent.request.body == _asking(case, Thinking()).request.body,
        expected="the same bytes for the same prompt",
        came="others",
        to_do="let encode() depend on nothing but the prompt and the target: no clock, no random ids.",
    )
    served = case.serve(sent)
    prompt = served.prompt
    heard = (prompt.messages[-1].text, prompt.system, [tool.name for tool in prompt.tools], served.model)
    meant = (QUESTION.messages[0].text, QUESTION.system, [tool.name for tool in TOOLS], case.model)
    for what, came, expected in zip(("question", "system prompt", "tools", "model"), heard, meant, strict=True):
        expect(
            came == expected,
            expected=f"the {what} {expected!r} to arrive",
            came=repr(came),
            to_do="compare what encode() writes with what read() reads.",
        )
    _arrives_as_a_stream_or_whole(case)
    warm = case.encode(msgspec.structs.replace(QUESTION, sampling=Sampling(temperature=_TEMPERATURE)))
    expect(
        str(_TEMPERATURE).encode() in warm.request.body or warm.told("temperature"),
        expected=f"the temperature {_TEMPERATURE} in the request, or a notice that it is not sent",
        came="neither",
        to_do="see dialects/dropped_settings.py: known_sampling.",
    )
    carried = {name.lower() for name in sent.request.headers} & {"authorization", "x-api-key", "api-key"}
    expect(
        not carried,
        expected="a request without its credential, which the shell adds",
        came=f"a header {', '.join(carried)}",
        to_do="name the header in HttpRequest.credential_header (dialects/bodies.py: post).",
    )


def _arrives_as_a_stream_or_whole(case: Case) -> None:
    if case.target.quirks.transport != "direct":
        return  # A cloud has it in its address.
    for stream in (False, True):
        came = case.serve(case.encode(msgspec.structs.replace(QUESTION, stream=stream))).stream
        expect(
            came is stream,
            expected=f"a reply to be asked for {'as a stream' if stream else 'in one piece'}",
            came="the other",
            to_do="write Prompt.stream into the request, and read it there.",
        )


def thinking_can_be_asked_for(case: Case) -> None:
    """`thinking="medium"` changes the request in a form that the dialect reads as a wish to think; or it is said why it
    does not; a model that cannot think refuses it before a byte is sent.
    """
    wish = Thinking(effort="medium")
    if case.rule.thinking == "never":
        _is_refused(case, wish, "does not think")
        return
    sent, silent = _asking(case, wish), _asking(case, Thinking())
    if _without_limit(sent) == _without_limit(silent):
        expect(
            sent.told("thinking"),
            expected="a request that asks for thinking, or a notice that says why it does not",
            came="the same request as without thinking=, and not a word",
            to_do="write the wish in encode(), or add a Notice with setting='thinking'.",
        )
        raise NotHere("this host cannot be told to think, and says so")
    asked = case.serve(sent).prompt.thinking
    expect(
        # Where a model has no efforts, asking to see its thinking is all that can be asked.
        asked.wanted or asked.summary is not None,
        expected="the server half to read that thinking is asked for",
        came=_wish(asked),
        to_do="let read() understand what encode() writes for thinking=; rows have Quirks(ask_by=…) for it.",
    )
    form = case.target.facts.ask_by
    # The first is what a row has that says nothing, in dialects too that know only one way.
    if form in _FIELDS and (form != "reasoning_effort" or case.dialect.name == CHAT):
        new = _names(sent.body) - _names(silent.body)
        expect(
            bool(new & set(_FIELDS[form])) or sent.told("thinking"),
            expected=f"a field {' or '.join(_FIELDS[form])}, since the row is asked by {form!r}",
            came=f"new fields {', '.join(sorted(new)) or 'none'}",
            to_do="spell the form that target.facts.ask_by names.",
        )


def thinking_can_be_switched_off(case: Case) -> None:
    """`thinking="off"` is read as off, or it is said why it cannot be."""
    off = Thinking(mode="off")
    if case.rule.thinking == "always":
        _is_refused(case, off, "cannot stop")
        return
    sent, silent = _asking(case, off), _asking(case, Thinking())
    if _without_limit(sent) == _without_limit(silent):
        if case.rule.thinking == "never" or case.rule.default == "off":
            raise NotHere("this model does not think unless it is asked to")
        expect(
            sent.told("thinking"),
            expected="a request that switches thinking off, or a notice that says why it does not",
            came="the same request as without thinking=, and not a word",
            to_do="write the switch in encode(), or add a Notice with setting='thinking'.",
        )
        raise NotHere("this host cannot be told not to think, and says so")
    asked = case.serve(sent).prompt.thinking
    expect(
        # Some can only be told to think as little as they can, and that is told.
        not asked.wanted or sent.told("thinking"),
        expected="the server half to read that no thinking is asked for",
        came=_wish(asked),
        to_do="let read() understand what encode() writes for thinking='off'.",
    )


def an_amount_is_sent_or_told(case: Case) -> None:
    """Every effort, and a budget, arrive as they were asked; where another is sent, a notice says which."""
    if case.rule.thinking == "never":
        raise NotHere("this model does not think")
    for effort in EFFORTS:
        sent = _asking(case, Thinking(effort=effort))
        came = case.serve(sent).prompt.thinking.effort
        expect(
            came == effort or sent.told("thinking"),
            expected=f"the effort {effort!r} to arrive, or a notice that says what was sent instead",
            came=f"{came!r}, and not a word",
            to_do="add Notice('effort_mapped', …, 'thinking', asked, sent) where another effort is sent.",
        )
    sent = _asking(case, Thinking(budget=_BUDGET))
    budget = case.serve(sent).prompt.thinking.budget
    expect(
        budget == _BUDGET or sent.told("thinking"),
        expected=f"a budget of {_BUDGET} tokens to arrive, or a notice that says what was sent instead",
        came=f"{budget}, and not a word",
        to_do="add a Notice with setting='thinking' where a budget is not sent.",
    )


def models_can_be_listed(case: Case) -> None:
    """A list of models that the server half writes is read by the client half; or there is none."""
    try:
        request = case.dialect.models_request(case.target)
    except Unsupported as problem:
        raise NotHere(f"there is no list: {problem}") from None
    expect(
        request.method == "GET" and not request.body,
        expected="a GET without a body",
        came=f"{request.method} with {len(request.body)} bytes",
        to_do="see dialects/model_lists.py: list_request.",
    )
    names = ["one", "other/two:3"]
    page = case.dialect.read_models(case.dialect.write_models([ModelInfo(name) for name in names], {}))
    listed = [model.id for model in page.models]
    expect(
        listed == names,
        expected=f"the models {names} that write_models() wrote",
        came=f"{listed}",
        to_do="let read_models() read what write_models() writes.",
    )


def _names(document: object) -> set[str]:
    """The names of all fields, wherever they stand."""
    match document:
        case dict():
            return {str(name) for name in document}.union(*map(_names, document.values()))
        case list():
            return set[str]().union(*map(_names, document))
        case _:
            return set()


def _without_limit(sent: Sent) -> object:
    """The body without how long the reply may be, which a wish to think may change."""
    body = sent.body
    return {name: value for name, value in body.items() if "max" not in name} if isinstance(body, dict) else body


def _wish(thinking: Thinking) -> str:
    return f"mode {thinking.mode}, effort {thinking.effort}, budget {thinking.budget}"
