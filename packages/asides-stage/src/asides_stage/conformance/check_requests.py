"""Checks of the row and of its requests: what the caller asks for reaches the wire, or a notice says why not."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from asides.providers.endpoint import CHAT
from asides.providers.provider import ModelRule
from asides.providers.switches.table import list_field_names
from asides.values.errors import InvalidThinking, Unsupported
from asides.values.messages import Prompt, Sampling, user
from asides.values.model_info import ModelInfo
from asides.values.thinking import EFFORTS, Thinking
from asides.values.tools import Tool
from asides.wire.inline_tags.grammars import find_rules
from asides_stage.conformance.case import Case, Sent
from asides_stage.conformance.report import CheckSkipped, expect

TOOLS = (
    Tool(
        "look_up",
        "Looks things up.",
        {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    ),
)
_PLAIN = Prompt((user("What is it?"),), system="Be brief.", max_tokens=8000)
_QUESTION = msgspec.structs.replace(_PLAIN, tools=TOOLS)
_BUDGET = 2000
_TEMPERATURE = 0.25


def ask_question(case: Case) -> Prompt:
    """The prompt of most checks: with tools, where the model takes them."""
    return _QUESTION if case.rule.tools is True else _PLAIN


# --- the row ----------------------------------------------------------------------------------------------------------


def the_row_is_valid(case: Case) -> None:
    """The row has a name that people can write, a base_url that is a web address, and tags that exist."""
    row = case.row
    expect(
        bool(row.name) and row.name == row.name.strip().lower() and not set(row.name) & set(": /?"),
        expected="a name in lower case, without ':', '/', '?' and blanks",
        actual=repr(row.name),
        to_do="name the row as people write it in front of a model: my-host.",
    )
    address = urlsplit(row.base_url)
    expect(
        address.scheme in ("http", "https") and bool(address.netloc) and address.username is None,
        expected="a base_url that is a web address, without a user name",
        actual=row.base_url if address.username is None else "one with a user name",
        to_do='write base_url="https://host/path", or "" if only the user knows it.',
    )
    for tags in (row.quirks.tags or (), *(rule.tags or () for rule in row.models)):
        try:
            find_rules(tags)
        except ValueError as problem:
            expect(False, expected="tags that exist", actual=str(problem), to_do="see docs/inline-tags.md.")


def the_capability_is_declared(case: Case) -> None:
    """The row says whether its models think, and does not contradict itself."""
    for rule in case.row.models:
        for contradiction in _find_contradictions(rule):
            expect(
                False,
                expected=f"a rule for {rule.models!r} that does not contradict itself",
                actual=contradiction,
                to_do="correct the ModelRule; leave out what you do not know.",
            )
    declared = case.row.capabilities(case.model)
    if declared.thinking == "unknown":
        raise CheckSkipped(
            f"nothing is declared of {case.model}; a ModelRule(models=…, thinking=…) lets asides find contradictions "
            "before a byte is sent"
        )
    expect(
        declared.can_stop is not (declared.thinking == "always"),
        expected="a model that always thinks not to be one that can stop",
        actual=f"thinking {declared.thinking!r}, can_stop {declared.can_stop}",
        to_do="see Provider.capabilities.",
    )


def _find_contradictions(rule: ModelRule) -> list[str]:
    found: list[str] = []
    if rule.thinking == "never" and (rule.efforts or rule.budget or rule.default == "on"):
        found.append("thinking is 'never', but there are efforts, a budget or a default 'on'")
    if rule.thinking == "always" and rule.default == "off":
        found.append("thinking is 'always', but the default is 'off'")
    if rule.budget is not None and rule.budget[1] is not None and rule.budget[0] > rule.budget[1]:
        found.append(f"the least budget, {rule.budget[0]}, is above the most, {rule.budget[1]}")
    strange = [sent for _, sent in rule.effort_map if rule.efforts is not None and sent not in rule.efforts]
    if strange:
        found.append(f"effort_map sends {strange[0]!r}, which is not among the efforts")
    return found


# --- requests ---------------------------------------------------------------------------------------------------------


def a_request_is_read_by_the_server_half(case: Case) -> None:
    """The question, the system prompt, the tools, the model and the choice to stream arrive; a temperature arrives or a
    notice says that it is not sent; the same prompt gives the same bytes, without a key.
    """
    sent = _ask(case, Thinking())
    expect(
        sent.request.body == _ask(case, Thinking()).request.body,
        expected="the same bytes for the same prompt",
        actual="different bytes",
        to_do="let encode() depend only on the prompt and the target: no clock, no random ids.",
    )
    served = case.read(sent)
    prompt = served.prompt
    arrived = (prompt.messages[-1].text, prompt.system, [tool.name for tool in prompt.tools], served.model)
    question = ask_question(case)
    asked = (question.messages[0].text, question.system, [tool.name for tool in question.tools], case.model)
    for what, actual, expected in zip(("question", "system prompt", "tools", "model"), arrived, asked, strict=True):
        expect(
            actual == expected,
            expected=f"the {what} {expected!r} to arrive",
            actual=repr(actual),
            to_do="compare what encode() writes with what read() reads.",
        )
    _check_stream_choice(case)
    warm = case.encode(msgspec.structs.replace(ask_question(case), sampling=Sampling(temperature=_TEMPERATURE)))
    expect(
        str(_TEMPERATURE).encode() in warm.request.body or warm.has_notice("temperature"),
        expected=f"the temperature {_TEMPERATURE} in the request, or a notice that it is not sent",
        actual="neither",
        to_do="see known_sampling in dialects/unsupported_settings.py.",
    )
    key_headers = {name.lower() for name in sent.request.headers} & {"authorization", "x-api-key", "api-key"}
    expect(
        not key_headers,
        expected="a request without its key, which the transport adds",
        actual=f"a header {', '.join(key_headers)}",
        to_do="name the header in HttpRequest.credential_header, as post in dialects/http_body.py does.",
    )


def _check_stream_choice(case: Case) -> None:
    if case.target.quirks.transport != "direct":
        return  # A cloud has the choice in its address.
    for stream in (False, True):
        actual = case.read(case.encode(msgspec.structs.replace(ask_question(case), stream=stream))).stream
        expect(
            actual is stream,
            expected=f"a request for a reply {'as a stream' if stream else 'in one piece'}",
            actual="a request for the other form",
            to_do="write Prompt.stream into the request in encode(), and read it in read().",
        )


def thinking_can_be_asked_for(case: Case) -> None:
    """`thinking="medium"` changes the request so that the server half reads it as asking for thinking, or a notice says
    why not. A model that cannot think raises before a byte is sent.
    """
    thinking = Thinking(effort="medium")
    if case.rule.thinking == "never":
        _check_conflict_raises(case, thinking, "does not think")
        return
    sent, plain = _ask(case, thinking), _ask(case, Thinking())
    if _without_limits(sent) == _without_limits(plain):
        expect(
            sent.has_notice("thinking"),
            expected="a request that asks for thinking, or a notice that says why it does not",
            actual="the same request as without thinking=, and no notice",
            to_do="write prompt.thinking in encode(), or add a Notice with setting='thinking'.",
        )
        raise CheckSkipped("a request cannot ask this host for thinking, and a notice says so")
    arrived = case.read(sent).prompt.thinking
    expect(
        # A model without efforts can only be asked to show its thinking.
        arrived.wanted or arrived.summary is not None,
        expected="the server half to read that the request asks for thinking",
        actual=_describe(arrived),
        to_do="let read() understand what encode() writes for thinking=; a row has Quirks(ask_by=…) for it.",
    )
    form = case.target.facts.ask_by
    # "reasoning_effort" is the default of every row, also in dialects with one form only.
    names = list_field_names(form)
    if names and (form != "reasoning_effort" or case.dialect.name == CHAT):
        new = _list_names(sent.body) - _list_names(plain.body)
        expect(
            not new.isdisjoint(names) or sent.has_notice("thinking"),
            expected=f"a field {' or '.join(names)}, since the row has ask_by={form!r}",
            actual=f"new fields {', '.join(sorted(new)) or 'none'}",
            to_do="write the form that target.facts.ask_by names.",
        )


def thinking_can_be_switched_off(case: Case) -> None:
    """`thinking="off"` arrives as off, or a notice says why it cannot."""
    off = Thinking(mode="off")
    if case.rule.thinking == "always":
        _check_conflict_raises(case, off, "cannot stop")
        return
    # Without tools: beside them, some models do not think at all in some dialects.
    sent, plain = (case.encode(msgspec.structs.replace(_PLAIN, thinking=thinking)) for thinking in (off, Thinking()))
    if _without_limits(sent) == _without_limits(plain):
        if case.rule.thinking == "never" or case.rule.default == "off":
            raise CheckSkipped("this model does not think unless it is asked to")
        expect(
            sent.has_notice("thinking"),
            expected="a request that switches thinking off, or a notice that says why it does not",
            actual="the same request as without thinking=, and no notice",
            to_do="write the switch in encode(), or add a Notice with setting='thinking'.",
        )
        raise CheckSkipped("a request cannot switch thinking off at this host, and a notice says so")
    arrived = case.read(sent).prompt.thinking
    expect(
        # Some models can only be asked to think as little as possible, with a notice.
        not arrived.wanted or sent.has_notice("thinking"),
        expected="the server half to read that the request asks for no thinking",
        actual=_describe(arrived),
        to_do="let read() understand what encode() writes for thinking='off'.",
    )


def an_amount_is_sent_or_reported(case: Case) -> None:
    """Every effort and a budget arrive as requested, or a notice says what was sent instead."""
    if case.rule.thinking == "never":
        raise CheckSkipped("this model does not think")
    for effort in EFFORTS:
        sent = _ask(case, Thinking(effort=effort))
        expect_accepted(case, sent, f"the effort {effort!r}")
        arrived = case.read(sent).prompt.thinking.effort
        expect(
            arrived == effort or sent.has_notice("thinking"),
            expected=f"the effort {effort!r} to arrive, or a notice that says what was sent instead",
            actual=f"{arrived!r}, and no notice",
            to_do="add Notice('effort_mapped', …, 'thinking', asked, sent) if another effort is sent.",
        )
    sent = _ask(case, Thinking(budget=_BUDGET))
    expect_accepted(case, sent, f"a budget of {_BUDGET} tokens")
    budget = case.read(sent).prompt.thinking.budget
    expect(
        budget == _BUDGET or sent.has_notice("thinking"),
        expected=f"a budget of {_BUDGET} tokens to arrive, or a notice that says what was sent instead",
        actual=f"{budget}, and no notice",
        to_do="add a Notice with setting='thinking' if a budget is not sent.",
    )


def expect_accepted(case: Case, sent: Sent, what: str) -> None:
    """Check that a request keeps to the rules of its host."""
    for broken in case.find_broken_rules(sent):
        expect(
            False,
            expected=f"{what} to keep to the rules of the host",
            actual=f"{broken.text} ({broken.path or 'the whole request'})",
            to_do="send what the host accepts, or correct the ModelRule; the rules are in dialects/<name>/rules.",
        )


def models_can_be_listed(case: Case) -> None:
    """The client half reads the list of models that the server half writes, or there is no list."""
    try:
        request = case.dialect.models_request(case.target)
    except Unsupported as problem:
        raise CheckSkipped(f"there is no list of models: {problem}") from None
    expect(
        request.method == "GET" and not request.body,
        expected="a GET without a body",
        actual=f"{request.method} with {len(request.body)} bytes",
        to_do="see list_request in dialects/model_lists.py.",
    )
    names = ["one", "other/two:3"]
    page = case.dialect.read_models(case.dialect.write_models([ModelInfo(name) for name in names], {}))
    listed = [model.id for model in page.models]
    expect(
        listed == names,
        expected=f"the models {names} that write_models() wrote",
        actual=f"{listed}",
        to_do="let read_models() read what write_models() writes.",
    )


def _ask(case: Case, thinking: Thinking) -> Sent:
    return case.encode(msgspec.structs.replace(ask_question(case), thinking=thinking))


def _check_conflict_raises(case: Case, thinking: Thinking, because: str) -> None:
    try:
        case.encode(msgspec.structs.replace(ask_question(case), thinking=thinking), "raise")
    except InvalidThinking:
        return
    expect(
        False,
        expected=f"InvalidThinking, since the row says that this model {because}",
        actual="a request",
        to_do="see history/check.py.",
    )


def _list_names(document: object) -> set[str]:
    """Return the names of all fields, at any depth."""
    match document:
        case dict():
            return {str(name) for name in document}.union(*map(_list_names, document.values()))
        case list():
            return set[str]().union(*map(_list_names, document))
        case _:
            return set()


def _without_limits(sent: Sent) -> object:
    """Return the body without limits on the length of the reply, which thinking may change."""
    body = sent.body
    return {name: value for name, value in body.items() if "max" not in name} if isinstance(body, dict) else body


def _describe(thinking: Thinking) -> str:
    return f"mode {thinking.mode}, effort {thinking.effort}, budget {thinking.budget}"
