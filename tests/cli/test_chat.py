"""`asides chat`: at a terminal with real keys, and with lines that are piped in."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from asides.testing.stage import Fail, OpenStage, Raw, Say, Stage
from tests.cli.children import Ended, at, at_terminal, here

PROMPT = "> "


def said(stage: Stage, number: int) -> list[tuple[str, Any]]:
    """Who said what, in the request of this number."""
    return [(message["role"], message["content"]) for message in stage.requests[number].json["messages"]]


def test_a_talk_at_a_terminal_goes_on_after_ctrl_c(stage: OpenStage) -> None:
    theatre = stage(
        Say(thinking="hush", text="First."),
        Say(text="one two three four", piece=4, hang_after=500),
        Say(thinking="shown now", text="Third."),
        Say(text="Fresh."),
    )
    with at_terminal("chat", *at(theatre)) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type("question one\n")
        keyboard.wait_for("First.")
        keyboard.wait_for(PROMPT)
        keyboard.type("question two\n")
        keyboard.wait_for("\none")
        keyboard.interrupt()
        keyboard.wait_for("what was shown of the answer is kept")
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
    assert theatre.wait_until(lambda: theatre.closed_early == 1)
    assert said(theatre, 1) == [("user", "question one"), ("assistant", "First."), ("user", "question two")]
    cut = said(theatre, 2)[3][1]
    assert "one two three four".startswith(cut)
    assert cut.startswith("one")
    assert said(theatre, 2) == [
        *said(theatre, 1),
        ("assistant", cut),
        ("user", "question three"),
    ]
    assert theatre.requests[2].json["reasoning_effort"] == "low"
    assert "reasoning_effort" not in theatre.requests[1].json
    assert said(theatre, 3) == [("user", "/path")]
    assert "hush" not in keyboard.text
    assert "shown now" in keyboard.text


def chat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: Stage, lines: str, *more: str
) -> Ended:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode()), "utf-8"))
    return here(capsys, "chat", *at(stage), *more)


@pytest.mark.requirement("FT-59")
def test_piped_lines_are_questions_and_stdout_has_the_answers_alone(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theatre = stage(Say(text="A."), Say(text="B."))
    ended = chat(capsys, monkeypatch, theatre, "a?\n\nb?\n/quit\nnever\n", "-s", "be brief", "--no-stream")
    assert ended == (0, "A.\nB.\n", "")
    assert said(theatre, 1) == [("system", "be brief"), ("user", "a?"), ("assistant", "A."), ("user", "b?")]
    assert len(theatre.requests) == 2


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
    theatre = stage(scene)
    ended, _, err = chat(capsys, monkeypatch, theatre, "a?\nb?\n", "--retries", "0")
    assert ended == code
    assert len(theatre.requests) == 1
    assert err.splitlines()[0].startswith("asides: ") or "not kept" in err


HALVES: tuple[dict[str, Any], ...] = (
    {"reasoning_content": "t"},
    {"content": "par"},
    {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at'}}]},
)


def test_a_broken_turn_leaves_a_talk_that_can_be_sent(stage: OpenStage) -> None:
    """A thought is dropped with its question; half an answer is kept, as text, and half a call is not."""
    theatre = stage(
        Say(thinking="only a thought", stop="length"),
        Fail(status=400, message="no"),
        Raw(text="".join(f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n" for delta in HALVES)),
        Say(text="Good."),
    )
    with at_terminal("chat", *at(theatre), "--retries", "0") as keyboard:
        for question, told in (("a?", "not kept"), ("b?", "not kept"), ("c?", "is kept"), ("d?", "Good.")):
            keyboard.wait_for(PROMPT)
            keyboard.type(f"{question}\n")
            keyboard.wait_for(told)
        keyboard.wait_for(PROMPT)
        keyboard.type("/exit\n")
        assert keyboard.end() == 0
    assert said(theatre, 3) == [("user", "c?"), ("assistant", "par"), ("user", "d?")]
    assert theatre.requests[3].json["messages"][1].keys() == {"role", "content"}


def test_commands_say_what_they_did_and_bad_ones_change_nothing(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theatre = stage(Say(text="A."))
    lines = "/help\n/thinking sideways\n/show maybe\n/model nobody:x\n/dance\n/model\n/etc/passwd?\n"
    code, out, err = chat(capsys, monkeypatch, theatre, lines)
    assert (code, out) == (0, "A.\n")
    assert "/thinking LEVEL" in err
    assert "thinking='sideways' is not known" in err
    assert "write /show on or /show off." in err
    assert "no provider is called 'nobody'" in err
    assert "no command is called /dance" in err
    assert err.splitlines()[-1] == "openai-compatible:staged"
    assert said(theatre, 0) == [("user", "/etc/passwd?")]
    assert "reasoning_effort" not in theatre.requests[0].json


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
    assert said(second, 0)[-1] == ("user", "c?")
    assert "authorization" not in second.requests[0].headers
