"""The command line, by requirement: what is shown to whom, and what the process says when it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides.cli.app import main
from asides.values.usage import Usage
from asides_stage.stage import OpenStage, Raw, Say, Stage
from tests.cli.children import MODEL, Ended, asides, at, here, run_process, show_at_terminal

THOUGHT = "canary thought"
SEAL = "c2VhbC1vZi10aGUtcHJvdmlkZXI"


def ask(capsys: pytest.CaptureFixture[str], stage: Stage, *arguments: str) -> Ended:
    return here(capsys, "ask", *at(stage), "--no-stdin", *arguments, "?")


# --- FT-59 ----------------------------------------------------------------------------------------------------------


def test_FT_59_the_answer_is_on_stdout_and_thinking_dim_on_stderr(stage: OpenStage) -> None:
    theatre = stage(Say(thinking=THOUGHT, text="42"))
    assert run_process("ask", *at(theatre), "-t", "?") == (0, "42\n", f"{THOUGHT}\n")
    shown = show_at_terminal("ask", *at(theatre), "-t", "?")
    assert shown.code == 0
    assert f"\x1b[2m{THOUGHT}\x1b[0m\r\n\r\n42\r\n" in shown.text


def test_FT_59_thinking_is_asked_for_and_turned_off_by_an_option(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    theatre = stage(Say(text="42"))
    for level in ("high", "off"):
        ask(capsys, theatre, "--thinking", level)
    ask(capsys, theatre)
    assert [request.json.get("reasoning_effort") for request in theatre.requests] == ["high", "none", None]


def test_FT_59_schema_and_files_go_along(stage: OpenStage, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"title": "N", "type": "object"}')
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    theatre = stage(Say(text="{}"))
    ask(capsys, theatre, "--schema", str(tmp_path / "schema.json"), "-f", str(tmp_path / "image.png"))
    body: dict[str, Any] = theatre.requests[0].json
    assert body["response_format"]["json_schema"]["schema"] == {"title": "N", "type": "object"}
    assert [part["type"] for part in body["messages"][0]["content"]] == ["image_url", "text"]


@pytest.mark.parametrize(
    ("scene", "code"),
    [
        (Say(text="42"), 0),
        (Say(thinking=THOUGHT, stop="length"), 7),
        (Say(refusal="No."), 8),
        (Raw(text="data: {not json}\n\n"), 6),
    ],
)
def test_FT_59_the_exit_code_says_how_it_went(
    scene: Say | Raw, code: int, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(capsys, stage(scene), "--retries", "0")[0] == code


# --- FT-24: the gate ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-S2")
@pytest.mark.parametrize(
    ("settings", "options", "shown"),
    [
        ("", [], False),
        ("", ["-t"], True),
        ("show_reasoning_thinking = true", [], True),
        ("show_reasoning_thinking = true", ["--hide-thinking"], False),
        ("show_reasoning_thinking = false", ["-t"], True),
        ('show_reasoning_thinking = true\nreasoning_allowed_models = ["other-*"]', [], False),
        ('show_reasoning_thinking = true\nreasoning_allowed_models = ["other-*", "STAGED"]', [], True),
        ('show_reasoning_thinking = true\nreasoning_allowed_models = ["openai-compatible:*"]', [], True),
        ('reasoning_allowed_models = ["other-*"]', ["-t"], False),
        ("reasoning_allowed_models = []", ["-t"], False),
    ],
)
def test_FT_24_S4_REQ_003_1_S4_REQ_003_3_thinking_is_shown_when_wanted_and_of_allowed_models(
    settings: str,
    options: list[str],
    shown: bool,
    stage: OpenStage,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    file = tmp_path / "asides.toml"
    file.write_text(settings)
    monkeypatch.setenv("ASIDES_CONFIG", str(file))
    theatre = stage(Say(thinking=THOUGHT, text="42"))
    code, out, err = ask(capsys, theatre, *options)
    assert (code, out) == (0, "42\n")
    assert (THOUGHT in err) is shown
    gated = "allowed_models" in settings and not shown
    assert ("reasoning_allowed_models does not name it" in err) is gated
    told = json.loads(ask(capsys, theatre, "--json", *options)[1])
    assert told["thinking"] == (None if gated else THOUGHT)
    assert ("thinking_withheld" in [warning["code"] for warning in told["warnings"]]) is gated
    assert told["text"] == "42"


def test_S4_REQ_003_2_json_that_looks_like_reasoning_stays_the_answer(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = '{"reasoning": "because", "thinking": "hm", "n": 42}'
    theatre = stage(Say(text=answer, piece=3))
    assert ask(capsys, theatre) == (0, f"{answer}\n", "")
    assert ask(capsys, theatre, "-t") == (0, f"{answer}\n", "")


# --- pains ----------------------------------------------------------------------------------------------------------


def test_pain_G4_thinking_can_be_seen_and_stdout_stays_clean(stage: OpenStage) -> None:
    theatre = stage(Say(thinking=THOUGHT, text="42", usage=Usage(1, 9, 8, None, 10)))
    piped = asides("ask", *at(theatre), "-t", "--usage", "--elapsed", "?")
    assert piped.out == "42\n"
    thought, tokens, seconds = piped.err.splitlines()
    assert thought == THOUGHT
    assert tokens == "tokens: 1 in, 9 out (8 thinking), 10 total"
    assert seconds.startswith("time: thinking ")


def test_pain_G4_json_keeps_the_two_apart(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(ask(capsys, stage(Say(thinking=THOUGHT, text="42")), "--json")[1])
    assert (told["text"], told["thinking"]) == ("42", THOUGHT)
    assert (told["thinking_type"], told["thinking_source"]) == ("raw", "field")


@pytest.mark.parametrize(("stop", "why"), [("length", "used up its tokens"), ("stop", "the model stopped")])
def test_pain_E1_an_answer_that_is_missing_is_said_and_never_made_of_thinking(
    stop: Any, why: str, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ask(capsys, stage(Say(thinking=THOUGHT, stop=stop)))
    assert (code, out) == (7, "")
    assert why in err
    assert "--thinking" in err
    assert THOUGHT not in err


def test_pain_A3_thinking_that_the_provider_hides_is_said_to_be_hidden(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    details = [{"type": "reasoning.encrypted", "data": SEAL, "id": "r1", "index": 0}]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"reasoning_details": details}}]},
        {"choices": [{"index": 0, "delta": {"content": "42"}, "finish_reason": "stop"}]},
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 1,
                "completion_tokens": 1300,
                "total_tokens": 1301,
                "completion_tokens_details": {"reasoning_tokens": 1234},
            },
        },
    ]
    theatre = stage(Raw(text="".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"))
    assert ask(capsys, theatre, "-t") == (0, "42\n", "(thinking hidden by the provider, 1234 tokens)\n")
    assert ask(capsys, theatre) == (0, "42\n", "")
    out = ask(capsys, theatre, "--json")[1]
    told = json.loads(out)
    assert (told["thinking"], told["thinking_type"]) == (None, "hidden")
    assert SEAL not in out


def test_M5_no_key_question_or_thought_is_in_what_goes_wrong(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "sk-verysecretkey")
    cut = 'data: {"choices":[{"index":0,"delta":{"reasoning_content":"' + THOUGHT + '"}}]}\n\n'
    theatre = stage(Raw(text=cut), Raw(text="data: {nonsense " + THOUGHT + "}\n\n"))
    for _ in range(2):
        code = main(["ask", "-m", MODEL, "--base-url", theatre.url, "--retries", "0", "--no-stdin", "PRIVATE"])
        out, err = capsys.readouterr()
        assert code in (5, 6)
        for secret in ("verysecret", "PRIVATE", THOUGHT):
            assert secret not in out + err
