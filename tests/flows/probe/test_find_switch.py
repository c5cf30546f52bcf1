"""The search for a switch: how many requests it takes, and what it concludes from refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from asides.flows.probe.find_switch import SwitchSearch
from asides.flows.probe.knowledge import Knowledge
from asides.flows.probe.observe import observe
from asides.flows.probe.plan_probe import build_probe
from asides.flows.probe.trial_sender import TrialSender
from asides.flows.probe.trials import Setup
from asides.flows.steps import Head, Open, Read
from asides.providers.switches.table import list_switches

Body = dict[str, Any]


def reply(thinks: bool) -> bytes:
    message = {"content": "132", **({"reasoning": "a plan"} if thinks else {})}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


def search(thinks: Callable[[Body], bool | str], wish: Any = "off") -> tuple[Knowledge, list[Body]]:
    """Run the search; a text that `thinks` returns is a refusal."""
    sender = TrialSender(build_probe("http://127.0.0.1:9", {"extent": "thorough"}))
    sender.known.setup = Setup("openai_chat", "http://127.0.0.1:9/v1", "m")
    sender.known.baseline = observe(Head(200, {}), reply(thinks({}) is True), "openai_chat")
    flow = SwitchSearch(sender, sender.known, wish).run()
    sent: list[Body] = []
    value: Any = None
    rest = b""
    while True:
        try:
            step = flow.send(value)
        except StopIteration:
            return sender.known, sent
        value = None
        if isinstance(step, Open):
            body = json.loads(step.request.body)
            sent.append(body)
            outcome = thinks(body)
            refused = isinstance(outcome, str)
            rest = json.dumps({"error": {"message": outcome}}).encode() if refused else reply(bool(outcome))
            value = Head(400 if refused else 200, {})
        elif isinstance(step, Read):
            value, rest = rest, b""


@pytest.mark.parametrize("switch", list_switches("openai_chat", "off"), ids=lambda switch: switch.name)
def test_one_switch_of_seven_is_found_with_four_requests(switch: Any) -> None:
    def thinks(body: Body) -> bool:
        return not all(_holds(body.get(name), value) for name, value in switch.ask("off").items())

    known, sent = search(thinks)
    assert known.switch is not None
    assert known.switch.name == switch.name
    assert len(sent) <= 4


def _holds(given: Any, wanted: Any) -> bool:
    return wanted.items() <= given.items() if isinstance(wanted, dict) and isinstance(given, dict) else given == wanted


def test_a_server_that_cannot_stop_is_asked_twice() -> None:
    known, sent = search(lambda _: True)
    assert (known.switch, known.cannot_switch, len(sent)) == (None, True, 2)


def test_a_switch_that_no_row_knows_is_named() -> None:
    known, _ = search(lambda body: body.get("enable_reasoning") is not False)
    assert known.switch is not None
    assert (known.switch.name, known.switch.quirks) == ("enable_reasoning", {})


def test_what_is_refused_by_name_is_left_out() -> None:
    def thinks(body: Body) -> bool | str:
        if "think" in body:
            return "Unknown name 'think'"
        return body.get("reasoning_effort") != "none"

    known, sent = search(thinks)
    assert known.switch is not None
    assert known.switch.name == "reasoning_effort"
    assert known.tried["think"].startswith("refused: 400: Unknown name")
    assert len(sent) <= 6


def test_refusals_without_a_name_are_tried_one_by_one() -> None:
    def thinks(body: Body) -> bool | str:
        asked = body.keys() - {"model", "messages", "max_tokens"}
        return "bad request" if len(asked) > 1 else body.get("enable_thinking") is not False

    known, _ = search(thinks)
    assert known.switch is not None
    assert known.switch.name == "enable_thinking"


def test_efforts_in_a_refusal_are_kept() -> None:
    def thinks(body: Body) -> bool | str:
        return "reasoning_effort must be one of 'low', 'high'" if "reasoning_effort" in body else True

    known, _ = search(thinks)
    assert known.efforts == ("low", "high")
    assert known.effort_counts is True


def test_thinking_is_turned_on() -> None:
    known, _ = search(lambda body: (body.get("chat_template_kwargs") or {}).get("thinking") is True, "on")
    assert known.switch is not None
    assert (known.switch.name, known.switch_wish) == ("chat_template_kwargs.thinking", "on")
