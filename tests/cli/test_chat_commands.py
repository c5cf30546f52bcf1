"""The slash commands of `asides chat`: what they change, and that a bad one changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from asides_stage.stage import Fail, OpenStage, Say, Stage
from tests.cli.children import Ended, at, at_terminal, dialogue, here, load_saved, piped

PROMPT = "> "


def chat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: Stage, lines: str, *more: str
) -> Ended:
    return piped(capsys, monkeypatch, lines, "chat", *at(stage), *more)


def test_a_near_miss_of_a_command_is_not_sent(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."))
    code, out, err = chat(capsys, monkeypatch, server, "/modle x\n/HELP\n/hlep\n")
    assert (code, out) == (0, "")
    assert "no command is called /modle; did you mean /model?" in err
    assert "no command is called /hlep; did you mean /help?" in err
    for command in ("edit", "file", "model", "thinking", "show", "reset", "keep", "list", "delete", "help", "quit"):
        assert f"/{command}" in err
    assert server.requests == []


def test_a_file_goes_with_the_next_question_and_only_with_that(
    stage: OpenStage, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my notes.txt").write_text("remember the milk", "utf-8")
    (tmp_path / "more.txt").write_text("and eggs", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    server = stage(Say(text="A."), Say(text="B."))
    lines = f"/file {tmp_path}/my notes.txt\n/file '~/more.txt'\n/file\n/file {tmp_path}/none\na?\nb?\n/file\n"
    code, out, err = chat(capsys, monkeypatch, server, lines)
    assert (code, out) == (0, "A.\nB.\n")
    assert "2 files for the next question." in err
    assert f"the file {tmp_path}/none cannot be read" in err
    assert err.endswith("no files for the next question.\n")
    first = dialogue(server, 0)[0][1]
    assert "remember the milk" in first
    assert "and eggs" in first
    assert first.endswith("a?")
    assert dialogue(server, 1)[-1] == ("user", "b?")


def test_a_model_is_checked_at_once_and_a_bad_one_changes_nothing(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."))
    lines = "/model nobody:x\n/model gpt\n/model deepseek\n/model deepseek:deepseek-flash\n/model\na?\n"
    code, out, err = chat(capsys, monkeypatch, server, lines)
    assert (code, out) == (0, "A.\n")
    assert "unknown provider 'nobody'" in err
    assert "'gpt' is a model without a provider" in err
    assert "'deepseek' names a provider and no model" in err
    assert "DeepSeek needs an API key: set DEEPSEEK_API_KEY" in err
    assert err.splitlines()[-1] == "openai-compatible:staged"
    assert server.requests[0].json["model"] == "staged"


def test_a_model_that_cannot_think_as_asked_before_is_asked_with_its_default(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    server = stage(Say(text="A."))
    lines = "/thinking low\n/model openai-chat:gpt-4o\n/model\n"
    code, _, err = chat(capsys, monkeypatch, server, lines)
    assert code == 0
    assert "(openai-chat:gpt-4o from here on; thinking is back to its default)" in err
    assert err.splitlines()[-1] == "openai-chat:gpt-4o"


def test_a_model_that_the_provider_does_not_know_gives_way_to_the_one_before(stage: OpenStage) -> None:
    server = stage(Fail(status=404, message="no such model"), Say(text="Good."))
    with at_terminal("chat", *at(server), "--retries", "0") as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type("/model openai-compatible:missing\n")
        keyboard.wait_for("openai-compatible:missing from here on")
        keyboard.wait_for(PROMPT)
        keyboard.type("a?\n")
        keyboard.wait_for("(back to openai-compatible:staged)")
        keyboard.wait_for(PROMPT)
        keyboard.type("b?\n")
        keyboard.wait_for("Good.")
        keyboard.wait_for(PROMPT)
        keyboard.type("/quit\n")
        assert keyboard.end() == 0
    assert [request.json["model"] for request in server.requests] == ["missing", "staged"]


def test_the_next_model_has_to_allow_the_options_of_the_chat(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    server = stage(Say(text="A."))
    lines = "/model openai:gpt-5\n/model\n"
    code, _, err = chat(capsys, monkeypatch, server, lines, "--temperature", "0.5")
    assert code == 0
    assert "temperature" in err
    assert err.splitlines()[-1] == "openai-compatible:staged"


def test_clear_begins_a_new_conversation_and_keeps_a_saved_one(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."), Say(text="B."))
    lines = "a?\n/save sums\n/clear\n/retry\n/usage\nb?\n/clear\n"
    code, out, err = chat(capsys, monkeypatch, server, lines)
    assert (code, out) == (0, "A.\nB.\n")
    assert load_saved(state, "sums") == [("user", "a?"), ("assistant", "A.")]
    assert "there is no question to ask again." in err
    assert "'sums' stays saved" in err
    assert "tokens: not reported" in err or "tokens: 0" in err, err
    assert dialogue(server, 1) == [("user", "b?")]
    assert len(server.requests) == 2


@pytest.mark.parametrize("typed", ["/delte sums", "/undi", "/clera", "/rest", "/delet"])
def test_a_mistyped_command_suggests_none_where_the_nearest_one_destroys(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    err = chat(capsys, monkeypatch, stage(), f"{typed}\n").err
    assert "did you mean" not in err
    assert "/help lists them" in err


def test_a_model_that_thinks_only_when_asked_says_what_to_write_in_a_chat(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_model = ("-m", "anthropic:claude-haiku-4-5", "--base-url", stage(Say(text="A."), Say(text="B.")).url, "-t")
    chatted = piped(capsys, monkeypatch, "a?\n", "chat", *at_model)
    assert chatted.err.startswith("(claude-haiku-4-5 thinks only when asked; write /thinking low)\n")
    assert "asked; add --thinking low)\n" in here(capsys, "ask", *at_model, "--no-stdin", "a?").err
