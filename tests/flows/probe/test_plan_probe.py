"""The options of a probe, and its plan without a request."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.dialects import DIALECTS
from asides.flows.probe.plan_probe import build_probe, preview
from asides.values.errors import ConfigError


@pytest.mark.parametrize(
    ("address", "options", "words"),
    [
        ("", {}, "address"),
        ("ftp://x", {}, "http"),
        ("http://user:pw@127.0.0.1", {}, "password"),
        ("http://127.0.0.1", {"max_requests": 0}, "max_requests"),
        ("http://127.0.0.1", {"max_tokens": True}, "max_tokens"),
        ("http://127.0.0.1", {"timeout": -1}, "timeout"),
        ("http://127.0.0.1", {"extent": "vast"}, "extent"),
        ("http://127.0.0.1", {"dialect": "latin"}, "dialect"),
        ("http://127.0.0.1", {"name": "a:b"}, "name"),
        ("http://127.0.0.1", {"key_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"),
    ],
)
def test_wrong_options_are_refused_before_a_byte_is_sent(address: str, options: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        asides.probe(address, **options)


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="probe\\(\\) has no option 'effort'"):
        asides.probe("http://127.0.0.1:1", effort="high")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("given", "address", "name"),
    [
        ("localhost:8000", "http://localhost:8000", "probed"),
        ("127.0.0.1:1/v1/chat/completions", "http://127.0.0.1:1/v1", "probed"),
        ("https://api.acme.example/v1/", "https://api.acme.example/v1", "acme"),
        ("llm.acme.example", "https://llm.acme.example", "acme"),
        ("https://api.deepseek.com", "https://api.deepseek.com", "deepseek-probed"),
    ],
)
def test_addresses_and_names(given: str, address: str, name: str) -> None:
    call = build_probe(given, {})
    assert (call.base_url, call.name) == (address, name)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("extent", ["quick", "usual", "thorough"])
def test_the_plan_of_every_dialect_sends_nothing_and_keeps_its_limit(dialect: str, extent: Any) -> None:
    call = build_probe("http://127.0.0.1:9", {"dialect": dialect, "extent": extent, "api_key": "k-secret"})
    steps = preview(call)
    assert 2 < len(steps) <= call.most
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert all(step.outcome is None and step.url.startswith("http://127.0.0.1:9/") for step in steps)
    assert "k-secret" not in str(steps)


def test_the_plan_shows_what_a_probe_sends(stage: Any) -> None:
    """A server like the imagined one gets exactly the planned requests."""
    from tests.flows.probe.costumes import Costume, in_field, make_chat, read_template, wearing
    from tests.flows.probe.wardrobe import ONE

    place = in_field("reasoning_content")
    answer = make_chat(place, calls_tools=False)
    costume = Costume("imagined", answer, models=ONE, thinks=read_template("enable_thinking", True))
    with wearing(costume) as server:
        planned = preview(build_probe(server.url, {"model": "thinker-1"}))
        sent: list[asides.ProbeStep] = []
        asides.probe(server.url, model="thinker-1", on_progress=sent.append)
    asked = [step for step in sent if step.outcome is None]
    assert [(step.purpose, step.url) for step in planned] == [(step.purpose, step.url) for step in asked]
    same = [step.body for step in planned[:9]] == [step.body for step in asked[:9]]
    assert same
