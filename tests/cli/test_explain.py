"""`asides explain`: the exact request, without a key and without sending it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.cli.app import main
from asides.local import server_pool as shared
from asides_stage.stage import OpenStage, Say
from tests.cli.children import asides, at, here, load_saved, piped
from tests.local.processes import needs_engine

KEY = "gsk_verysecretkey"


def test_explain_shows_the_exact_request_and_no_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["explain", "-m", "groq:qwen/qwen3-32b", "--thinking", "off", "--max-tokens", "9", "--no-stdin", "Why?"]
    assert main(arguments) == 0
    assert "No key was found; set GROQ_API_KEY." in capsys.readouterr().out
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "POST https://api.groq.com/openai/v1/chat/completions\n" in out
    assert "Authorization: Bearer ***\n" in out
    assert KEY not in out
    assert main([*arguments, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["body"]["messages"] == [{"role": "user", "content": "Why?"}]
    assert fields["body"]["stream"] is True
    assert fields["headers"]["Authorization"] == "Bearer ***"
    assert main([*arguments, "--json", "--no-stream"]) == 0
    assert not json.loads(capsys.readouterr().out)["body"].get("stream")


def test_explain_raises_the_errors_of_ask(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "-m", "deepseek:deepseek-reasoner", "--thinking", "off", "--no-stdin", "?"]
    assert main(arguments) == 2
    assert "--on-conflict adjust" in capsys.readouterr().err
    assert main([*arguments, "--on-conflict", "adjust"]) == 0
    assert "thinking_cannot_stop" in capsys.readouterr().out


def test_explain_names_the_passes_of_the_plan_that_changed_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "-m", "deepseek:deepseek-reasoner", "--thinking", "off", "--no-stdin"]
    arguments += ["--on-conflict", "adjust"]
    assert main([*arguments, "--json", "?"]) == 0
    passes = json.loads(capsys.readouterr().out)["passes"]
    assert passes == {"check_settings": "the settings have to agree with the model's rule"}
    assert main([*arguments, "?"]) == 0
    out = capsys.readouterr().out
    assert (
        "What the plan changed, and why:\n  check_settings: the settings have to agree with the model's rule\n" in out
    )


def test_explain_takes_the_tools_of_ask(capsys: pytest.CaptureFixture[str], stage: OpenStage, tools: Path) -> None:
    server = stage()
    named = ("--no-stdin", "--json", "--tools", f"{tools}:look", "?")
    fields = json.loads(here(capsys, "explain", *at(server), *named).out)
    assert [tool["function"]["name"] for tool in fields["body"]["tools"]] == ["look"]
    asides("ask", *at(server), *named)
    assert server.requests[0].json["tools"] == fields["body"]["tools"]


def test_explain_shows_the_next_question_of_a_saved_conversation_and_writes_nothing(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(thinking="the canary sings", text="A."))
    assert piped(capsys, monkeypatch, "a?\n", "chat", *at(server), "--conversation", "work", "-s", "be brief").code == 0
    before = load_saved(state, "work")
    words = ("explain", "--base-url", server.url, "--conversation", "work", "--json", "--no-stdin", "b?")
    fields = json.loads(here(capsys, *words).out)
    assert [message["content"] for message in fields["body"]["messages"]] == ["be brief", "a?", "A.", "b?"]
    assert [(decision["action"], decision["what"]) for decision in fields["decisions"]] == [("drop", "thought")]
    assert load_saved(state, "work") == before
    assert len(server.requests) == 1
    missing = here(capsys, "explain", *at(server), "--conversation", "play", "--no-stdin", "b?")
    assert missing.code == 2
    assert "no conversation is called 'play'" in missing.err


@needs_engine
def test_explain_starts_no_engine(capsys: pytest.CaptureFixture[str]) -> None:
    before = shared.list_running()
    done = here(capsys, "explain", "--no-stdin", "Hi")
    assert done.code == 0
    assert done.out.startswith("local:tiny\n")
    assert done.err.startswith("asking local:tiny, a very small model;")
    assert shared.list_running() == before


@pytest.mark.parametrize("model", ["openai:gpt-5", "gemini:gemini-2.5-pro", "anthropic:claude-opus-4-7", "groq:x"])
@pytest.mark.parametrize("shown", [(), ("-t",), ("-t", "--thinking", "low"), ("-t", "--thinking", "off")])
def test_explain_shows_the_request_that_ask_sends_where_thinking_is_shown(
    capsys: pytest.CaptureFixture[str], stage: OpenStage, model: str, shown: tuple[str, ...]
) -> None:
    server = stage()
    words = ("-m", model, "--base-url", server.url, "--on-conflict", "adjust", *shown, "--no-stdin", "Why?")
    body = json.loads(here(capsys, "explain", "--json", *words).out)["body"]
    assert here(capsys, "ask", *words).code == 0
    assert server.requests[0].json == body


def test_explain_demands_no_key_of_a_server_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("explain", "-m", "openai:gpt-5", "--no-stdin", "?")
    assert "No key was found" in here(capsys, *words).out
    assert "No key was found" not in here(capsys, *words, "--base-url", "http://127.0.0.1:9/v1").out
