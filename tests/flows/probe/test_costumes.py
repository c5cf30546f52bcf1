"""The probe against servers in costumes, over real sockets: what it finds, and whether its row, pasted, separates."""

from __future__ import annotations

import asyncio
import tomllib
from typing import Any

import msgspec
import pytest

import asides
from asides.providers.user_rows import read_rows
from tests.flows.probe.costumes import ANSWER, THOUGHT, Costume, in_field, in_tags, make_chat, refuse, wearing
from tests.flows.probe.wardrobe import COSTUMES, MORE, ONE, STOPS
from tests.loopback import Server

BY_NAME = {costume.name: costume for costume in COSTUMES}
KEY = "sesame-key"

# For each costume: facts of the row's quirks, of its rule, and when thinking goes back.
EXPECTED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "toggle": (
        {"thinking_in": ("reasoning_content",), "ask_by": "thinking_toggle"},
        {"thinking": "optional", "default": "on"},
        "tool_turns",
    ),
    "reasoning object, off by default": (
        {"thinking_in": ("reasoning",), "ask_by": "reasoning_object"},
        {"models": "maker/thinker:free", "thinking": "optional", "default": "off"},
        "tool_turns",
    ),
    "template": ({"tags": ("think",), "ask_by": "template"}, {"thinking": "optional", "default": "on"}, "never"),
    "starts inside": (
        {"tags": ("think",), "ask_by": "template"},
        {"thinking": "optional", "default": "on", "starts_inside": True, "template_key": "thinking"},
        "never",
    ),
    "scratchpad, strict": (
        {"tags": (("<scratchpad>", "</scratchpad>"),), "ask_by": "nothing"},
        {"thinking": "always", "default": "on"},
        "never",
    ),
    "unknown field, think": (
        {"thinking_in": ("inner_voice",), "ask_by": "think"},
        {"thinking": "optional", "default": "off"},
        "tool_turns",
    ),
    "snapshots": (
        {"thinking_in": ("reasoning_content",), "ask_by": "enable_thinking", "snapshots": True},
        {"thinking": "optional", "default": "on"},
        "tool_turns",
    ),
    "harmony": (
        {"tags": ("harmony",), "ask_by": "reasoning_effort"},
        {"thinking": "always", "default": "on", "efforts": ("low", "medium", "high"), "off_as_effort": False},
        "never",
    ),
    "fragments": (
        {"tags": ("think",), "fragmented_tags": True, "ask_by": "nothing"},
        {"thinking": "always", "default": "on"},
        "never",
    ),
    "mirror": (
        {"thinking_in": ("reasoning", "reasoning_content"), "ask_by": "reasoning_effort"},
        {"thinking": "optional", "default": "on"},
        "tool_turns",
    ),
    "field and tags": (
        {"thinking_in": ("reasoning_content",), "tags": ("think",), "ask_by": "template"},
        {"thinking": "optional", "default": "on"},
        "tool_turns",
    ),
    "parts": (
        {"ask_by": "reasoning_effort", "replay_as": "content_list"},
        {"thinking": "optional", "default": "off", "efforts": ("high",)},
        "tool_turns",
    ),
    "newer limits": (
        {
            "thinking_in": ("reasoning_content",),
            "ask_by": "thinking_toggle",
            "output_limit": "max_completion_tokens",
            "stream_usage": False,
            "output_excludes_thinking": True,
        },
        {"thinking": "optional", "default": "on"},
        "tool_turns",
    ),
    "only streams": ({"thinking_in": ("reasoning_content",)}, {"thinking": "always"}, "tool_turns"),
    "wants thinking back": (
        {"thinking_in": ("reasoning_content",), "ask_by": "thinking_toggle"},
        {"thinking": "optional", "default": "on"},
        "tool_turns",
    ),
    "refuses thinking back": ({"thinking_in": ("reasoning",)}, {"thinking": "always"}, "never"),
    "messages": (
        {"auth": "x-api-key", "path": "/messages"},
        {"thinking": "optional", "default": "off", "forms": ("enabled", "disabled")},
        "all",
    ),
    "ollama": (
        {"thinking_in": ("thinking",), "ask_by": "think"},
        {"thinking": "optional", "default": "on", "efforts": ("low", "medium", "high", "max")},
        "tool_turns",
    ),
    "gemini": ({"ask_by": "thinking_budget"}, {"thinking": "optional", "default": "on"}, "sealed"),
    "cohere": ({"ask_by": "thinking_toggle"}, {"thinking": "optional", "default": "on"}, "tool_turns"),
    "responses": ({"ask_by": "reasoning_effort"}, {"thinking": "optional", "default": "on"}, "all"),
    "no prefix, api-key": (
        {"tags": (("[REASONING]", "[/REASONING]"),), "ask_by": "thinking_toggle", "auth": "api-key"},
        {"thinking": "optional", "default": "on"},
        "never",
    ),
}


def base_of(costume: Costume, server: Server) -> str:
    """The address that somebody would have for this server."""
    root = f"http://127.0.0.1:{server.port}"
    for prefix in ("/api/v1", "/openai"):
        if costume.path.startswith(prefix):
            return root + prefix
    return root


def probe(costume: Costume, server: Server, **options: Any) -> asides.ProbeReport:
    return asides.probe(base_of(costume, server), api_key=KEY if costume.key_header else None, **options)


def paste(report: asides.ProbeReport) -> asides.Provider:
    """The row as a settings file has it."""
    (row,) = read_rows(tomllib.loads(report.to_text())["providers"], "asides.toml", ())
    return row


def test_every_costume_has_expectations() -> None:
    assert EXPECTED.keys() == BY_NAME.keys()
    assert len(EXPECTED) >= 20


@pytest.mark.parametrize("name", BY_NAME)
def test_the_probe_finds_how_a_costume_thinks(name: str) -> None:
    costume = BY_NAME[name]
    quirks, rule, replay = EXPECTED[name]
    with wearing(costume) as server:
        report = probe(costume, server)
        row = paste(report)
        assert row == report.row
        found = msgspec.structs.asdict(row.quirks)
        assert {field: found[field] for field in quirks} == quirks
        facts = msgspec.structs.asdict(row.models[0])
        assert {field: facts[field] for field in rule} == rule
        assert row.replay[0].when == replay
        _check_pasted(costume, row, report, rule.get("thinking") == "optional")


def _check_pasted(costume: Costume, row: asides.Provider, report: asides.ProbeReport, stops: bool) -> None:
    """Ask through the pasted row, whole and streamed: the answer is the answer, and thinking is apart."""
    with asides.Client(providers=[row], api_key=KEY if costume.key_header else None) as client:
        for stream in (True,) if costume.name == "only streams" else (False, True):
            on = client.ask(f"{row.name}:{report.model}", "What is 47 + 85?", thinking="high", stream=stream)
            assert (on.text, on.thinking and on.thinking.text.strip()) == (ANSWER, THOUGHT)
            default = client.ask(f"{row.name}:{report.model}", "What is 47 + 85?", stream=stream)
            assert default.text == ANSWER
            if stops:
                off = client.ask(f"{row.name}:{report.model}", "What is 47 + 85?", thinking="off", stream=stream)
                assert (off.text, off.thinking.text) == (ANSWER, "")


@pytest.mark.parametrize("costume", MORE, ids=lambda costume: costume.name)
def test_the_row_of_more_costumes_separates(costume: Costume) -> None:
    with wearing(costume) as server:
        report = probe(costume, server)
        row = paste(report)
        assert (row.models[0].thinking == "optional") is (costume.name in STOPS)
        _check_pasted(costume, row, report, costume.name in STOPS)


def test_a_switch_that_no_row_can_say_is_named_for_extra() -> None:
    costume = Costume(
        "true or false",
        make_chat(in_field("reasoning_content")),
        models=ONE,
        thinks=lambda body: body.get("thinking") is True,
    )
    with wearing(costume) as server:
        report = probe(costume, server)
        switch = report.find("switch")
        assert switch is not None
        assert 'extra={"thinking":true} does' in switch.text
        row = paste(report)
        with asides.Client(providers=[row]) as client:
            reply = client.ask(f"{row.name}:{report.model}", "What is 47 + 85?", extra={"thinking": True})
    assert (reply.text, reply.thinking and reply.thinking.text) == (ANSWER, THOUGHT)


@pytest.mark.parametrize("name", [name for name, costume in BY_NAME.items() if costume.path.endswith("completions")])
def test_a_chat_server_gets_at_most_twelve_requests(name: str) -> None:
    with wearing(BY_NAME[name]) as server:
        report = probe(BY_NAME[name], server)
        assert report.requests == len(server.heard) <= 12


@pytest.mark.parametrize("name", ["toggle", "starts inside", "messages", "ollama"])
def test_the_async_twin_finds_the_same(name: str) -> None:
    costume = BY_NAME[name]
    with wearing(costume) as server:
        ours = probe(costume, server)
        theirs = asyncio.run(asides.aio.probe(base_of(costume, server), api_key=KEY if costume.key_header else None))
        assert theirs == ours


def test_the_next_turn_goes_through_where_thinking_is_wanted_back() -> None:
    """The row of a server that refuses turns without their thinking makes an agent's second turn pass."""
    costume = BY_NAME["wants thinking back"]
    with wearing(costume) as server:
        report = probe(costume, server)
        finding = report.find("replay")
        assert finding is not None
        assert finding.value == {"kept": True, "left_out": False, "required": True}
        row = paste(report)

        def get_weather(location: str) -> str:
            """Get the current weather."""
            return f"sunny in {location}"

        with asides.Client(providers=[row]) as client:
            agent = asides.Agent(f"{row.name}:{report.model}", tools=[get_weather], client=client)
            assert agent.run("What is the weather in Paris?").output == ANSWER


def test_a_server_that_names_one_unknown_field_at_a_time_is_understood() -> None:
    known = {"model", "messages", "max_tokens", "stream", "tools", "stream_options", "reasoning_effort"}

    def check(body: dict[str, Any]) -> None:
        for name in body:
            if name not in known:
                raise refuse(400, f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
        if body.get("reasoning_effort", "low") not in ("low", "high"):
            raise refuse(400, "Invalid value for 'reasoning_effort'. Supported values are: 'low' and 'high'.")

    costume = Costume("one by one", make_chat(in_field("reasoning")), models=ONE, check=check)
    with wearing(costume) as server:
        row = probe(costume, server).row
    assert row is not None
    assert row.models[0].efforts == ("low", "high")
    assert row.quirks.thinking_in == ("reasoning",)


def test_an_effort_that_changes_the_amount_is_seen_though_nothing_checks_it() -> None:
    def place(thought: str, text: str) -> dict[str, Any]:
        return {"reasoning_content": thought, "content": text}

    def answer(costume: Costume, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        times = 5 if body.get("reasoning_effort") == "high" else 1
        return make_chat(lambda thought, text: place(thought * times, text))(costume, path, body)

    costume = Costume("amounts", answer, models=ONE)
    with wearing(costume) as server:
        report = probe(costume, server)
    effort = report.find("effort")
    assert effort is not None
    assert effort.value == {"read": True, "efforts": None}
    assert report.row is not None
    assert report.row.quirks.ask_by == "reasoning_effort"


def test_a_template_that_opens_the_tag_only_while_it_thinks_waits_for_the_close() -> None:
    """It does not think by default, so only some replies begin inside a tag: the row says "auto"."""
    costume = Costume(
        "half inside",
        make_chat(in_tags("", "</think>")),
        models=ONE,
        thinks=lambda body: bool((body.get("chat_template_kwargs") or {}).get("enable_thinking", False)),
    )
    with wearing(costume) as server:
        report = probe(costume, server)
        row = paste(report)
        assert row.models[0].starts_inside == "auto"
        _check_pasted(costume, row, report, stops=True)


def test_what_the_server_says_about_the_model_is_reported() -> None:
    with wearing(BY_NAME["ollama"]) as server:
        finding = probe(BY_NAME["ollama"], server).find("model")
    assert finding is not None
    assert finding.value["capabilities"] == ["completion", "thinking"]
    assert "the server says: completion, thinking" in finding.text


def test_thinking_where_no_row_can_read_it_is_reported() -> None:
    def answer(costume: Costume, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        kind, content = make_chat(in_field("nothing"))(costume._replace(thinks=lambda _: False), path, body)
        return kind, content.replace(b'"index": 0,', b'"index": 0, "reasoning_trace": "a plan of mine",')

    costume = Costume("beside", answer, models=ONE)
    with wearing(costume) as server:
        finding = probe(costume, server).find("where")
    assert finding is not None
    assert "choices[0].reasoning_trace" in finding.text
