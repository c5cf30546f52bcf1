"""`asides chat`: at a terminal with real keys, and with piped lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides_stage.stage import Fail, OpenStage, Raw, Say, Stage
from tests.cli.children import Ended, at, at_terminal, dialogue, piped

PROMPT = "> "


def test_a_chat_at_a_terminal_continues_after_ctrl_c(stage: OpenStage) -> None:
    server = stage(
        Say(thinking="hush", text="First."),
        Say(text="one two three four", piece=4, hang_after=500),
        Say(thinking="shown now", text="Third."),
        Say(text="Fresh."),
    )
    with at_terminal("chat", *at(server)) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type("question one\n")
        keyboard.wait_for("First.")
        keyboard.wait_for(PROMPT)
        keyboard.type("question two\n")
        keyboard.wait_for("one ")
        keyboard.interrupt_for("the answer so far stays in the conversation", seconds=5.0)
        keyboard.wait_for(PROMPT)
        keyboard.type("/show on\n")
        keyboard.wait_for(PROMPT)
        keyboard.type("/thinking low\n")
        keyboard.wait_for(PROMPT)
        keyboard.type("question three\n")
        keyboard.wait_for("Third.")
        keyboard.wait_for(PROMPT)
        keyboard.interrupt_for("Ctrl-D or /quit leaves")
        keyboard.wait_for(PROMPT)
        keyboard.type("/reset\n")
        keyboard.wait_for(PROMPT)
        keyboard.type("//path\n")
        keyboard.wait_for("Fresh.")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        code = keyboard.end()
    assert code == 0
    assert server.wait_until(lambda: server.closed_early == 1)
    assert dialogue(server, 1) == [("user", "question one"), ("assistant", "First."), ("user", "question two")]
    cut = dialogue(server, 2)[3][1]
    assert "one two three four".startswith(cut)
    assert cut.startswith("one")
    assert dialogue(server, 2) == [
        *dialogue(server, 1),
        ("assistant", cut),
        ("user", "question three"),
    ]
    assert server.requests[2].json["reasoning_effort"] == "low"
    assert "reasoning_effort" not in server.requests[1].json
    assert dialogue(server, 3) == [("user", "/path")]
    assert "hush" not in keyboard.text
    assert "shown now" in keyboard.text


def chat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: Stage, lines: str, *more: str
) -> Ended:
    return piped(capsys, monkeypatch, lines, "chat", *at(stage), *more)


@pytest.mark.requirement("FT-59")
def test_piped_lines_are_questions_and_stdout_has_the_answers_alone(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."), Say(text="B."))
    ended = chat(capsys, monkeypatch, server, "a?\n\nb?\n/quit\nnever\n", "-s", "be brief", "--no-stream")
    assert ended == (0, "A.\nB.\n", "")
    assert dialogue(server, 1) == [("system", "be brief"), ("user", "a?"), ("assistant", "A."), ("user", "b?")]
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("scene", "code"),
    [
        (Fail(status=500, message="down"), 4),
        (Raw(text='data: {"choices":[{"index":0,"delta":{"content":"par"}}]}\n\n'), 5),
        (Say(thinking="hm", stop="length"), 7),
    ],
)
def test_without_a_person_the_first_failure_ends_it(
    scene: Any, code: int, stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(scene)
    ended, _, err = chat(capsys, monkeypatch, server, "a?\nb?\n", "--retries", "0")
    assert ended == code
    assert len(server.requests) == 1
    assert err.splitlines()[0].startswith("asides: ") or "dropped" in err


HALVES: tuple[dict[str, Any], ...] = (
    {"reasoning_content": "t"},
    {"content": "par"},
    {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at'}}]},
)


def test_a_broken_turn_leaves_a_conversation_that_can_be_sent(stage: OpenStage) -> None:
    """A thought is dropped with its question; half an answer stays, as text; half a call does not."""
    server = stage(
        Say(thinking="only a thought", stop="length"),
        Fail(status=400, message="no"),
        Raw(text="".join(f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n" for delta in HALVES)),
        Say(text="Good."),
    )
    with at_terminal("chat", *at(server), "--retries", "0") as keyboard:
        for question, answer in (("a?", "dropped"), ("b?", "dropped"), ("c?", "stays"), ("d?", "Good.")):
            keyboard.wait_for(PROMPT)
            keyboard.type(f"{question}\n")
            keyboard.wait_for(answer)
        keyboard.wait_for(PROMPT)
        keyboard.type("/exit\n")
        assert keyboard.end() == 0
    assert dialogue(server, 3) == [("user", "c?"), ("assistant", "par"), ("user", "d?")]
    assert server.requests[3].json["messages"][1].keys() == {"role", "content"}


def test_commands_say_what_they_did_and_bad_ones_change_nothing(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."))
    lines = "/help\n/thinking sideways\n/show maybe\n/model nobody:x\n/dance\n/model\n/etc/passwd?\n"
    code, out, err = chat(capsys, monkeypatch, server, lines)
    assert (code, out) == (0, "A.\n")
    assert "/thinking LEVEL" in err
    assert "thinking='sideways' is not known" in err
    assert "write /show on or /show off." in err
    assert "unknown provider 'nobody'" in err
    assert "no command is called /dance; /help lists them." in err
    assert err.splitlines()[-1] == "openai-compatible:staged"
    assert dialogue(server, 0) == [("user", "/etc/passwd?")]
    assert "reasoning_effort" not in server.requests[0].json


def test_another_provider_gets_neither_the_address_nor_the_key_of_the_first(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    second = stage(Say(text="B."))
    monkeypatch.setenv("VLLM_BASE_URL", second.url)
    first = stage(Say(text="A."), key="verysecret")
    lines = "a?\n/model openai-compatible:other\nb?\n/model vllm:m\nc?\n"
    code, out, _ = chat(capsys, monkeypatch, first, lines, "--api-key", "verysecret")
    assert (code, out) == (0, "A.\nA.\nB.\n")
    assert [request.json["model"] for request in first.requests] == ["staged", "other"]
    assert dialogue(second, 0)[-1] == ("user", "c?")
    assert "authorization" not in second.requests[0].headers


def test_a_question_is_asked_again_and_taken_back(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."), Say(text="B."), Say(text="B2."), Say(text="C."))
    lines = "a?\nb?\n/retry\n/undo\nc?\n/system be brief\n/system\n/usage\n/undo\n/undo\n/undo\n"
    code, out, err = chat(capsys, monkeypatch, server, lines, "--no-stream")
    assert (code, out) == (0, "A.\nB.\nB2.\nC.\n")
    first = [("user", "a?"), ("assistant", "A.")]
    assert dialogue(server, 2) == [*first, ("user", "b?")]
    assert dialogue(server, 3) == [*first, ("user", "c?")]
    assert "be brief" in err.splitlines()
    assert "tokens: " in err
    assert err.splitlines()[-1] == "asides: there is no question to remove."


@pytest.mark.parametrize("word", ["/cler", "/reste", "/delet", "/und"])
def test_a_mistyped_command_suggests_none_that_destroys(
    word: str, stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, err = chat(capsys, monkeypatch, stage(), f"{word}\n")
    assert not any(name in err for name in ("/clear", "/reset", "/delete", "/undo"))


@pytest.mark.parametrize("word", ["exit", "quit", "Exit"])
def test_a_bare_word_leaves_at_a_terminal(word: str, stage: OpenStage) -> None:
    with at_terminal("chat", *at(stage())) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type(f"{word}\n")
        assert keyboard.end() == 0


def test_a_chat_is_kept_unless_it_shall_not_be(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."), Say(text="B."), Say(text="C."))
    chat(capsys, monkeypatch, server, "a?\n")
    chat(capsys, monkeypatch, server, "b?\n", "--no-keep")
    chat(capsys, monkeypatch, server, "c?\n", "-c")
    assert dialogue(server, 2) == [("user", "a?"), ("assistant", "A."), ("user", "c?")]


def test_a_missing_key_is_told_before_the_first_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, out, err = piped(capsys, monkeypatch, "a?\n", "chat", "-m", "openai:gpt-5")
    assert (code, out) == (3, "")
    assert "OPENAI_API_KEY" in err


def test_a_bare_word_leaves_in_a_pipe_too(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."))
    assert chat(capsys, monkeypatch, server, "a?\nexit\nnever\n", "--no-keep") == (0, "A.\n", "")
    assert len(server.requests) == 1


@pytest.mark.parametrize("model", ["openai:gpt-5", "groq:llama", "anthropic:claude-sonnet-5-5"])
def test_a_server_on_this_machine_needs_no_key_as_with_ask(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    server = stage(Say(text="A."), Say(text="B."))
    ended = piped(capsys, monkeypatch, "a?\n", "chat", "-m", model, "--base-url", server.url)
    assert (ended.code, ended.out) == (0, "A.\n")


@pytest.mark.parametrize("provider", ["openai", "groq", "mistral"])
def test_a_missing_key_is_explained_as_ask_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    asked = piped(capsys, monkeypatch, "", "ask", "-m", f"{provider}:m", "a?")
    chatted = piped(capsys, monkeypatch, "a?\n", "chat", "-m", f"{provider}:m")
    assert (chatted.code, chatted.err) == (asked.code, asked.err)
    assert f"asides keys set {provider}" in chatted.err
    switched = piped(
        capsys,
        monkeypatch,
        f"/model {provider}:m\n",
        "chat",
        "-m",
        "openai-compatible:m",
        "--base-url",
        "http://127.0.0.1:9",
    )
    assert f"asides keys set {provider}" in switched.err
