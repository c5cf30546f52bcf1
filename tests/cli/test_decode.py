"""`asides decode`: recorded responses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.cli.app import main
from tests.cli.children import (
    piped,
)

WHOLE = json.dumps(
    {
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "42", "reasoning_content": "plan A"},
            }
        ],
        "usage": {
            "prompt_tokens": 2,
            "completion_tokens": 9,
            "total_tokens": 11,
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
    }
)


STREAM = "".join(
    f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': reason}]})}\n\n"
    for delta, reason in (({"reasoning_content": "plan A"}, None), ({"content": "42"}, None), ({}, "stop"))
)


@pytest.mark.parametrize("body", [WHOLE, f"{STREAM}data: [DONE]\n\n"])
@pytest.mark.parametrize("framing", [[], ["--stream"], ["--whole"]])
def test_a_recording_is_split_into_answer_and_thinking(
    body: str, framing: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert piped(capsys, monkeypatch, body, "decode", *framing) == (0, "42\n", "")
    assert piped(capsys, monkeypatch, body, "decode", *framing, "-t") == (0, "42\n", "plan A\n")
    code, out, err = piped(capsys, monkeypatch, body, "decode", *framing, "--json")
    fields = json.loads(out)
    assert (code, err, fields["text"], fields["thinking"], fields["outcome"]) == (0, "", "42", "plan A", "answered")


def test_a_file_is_read_and_its_usage_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = tmp_path / "reply.json"
    recording.write_text(WHOLE)
    assert main(["decode", "--usage", str(recording)]) == 0
    assert capsys.readouterr() == ("42\n", "tokens: 2 in, 9 out (7 thinking), 11 total\n")
    assert main(["decode", str(tmp_path / "nowhere")]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err


def test_the_dialect_may_come_before_the_file_as_in_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tmp_path / "reply.json"
    recording.write_text(WHOLE)
    assert main(["decode", "openai_chat", str(recording)]) == 0
    assert capsys.readouterr().out == "42\n"
    assert piped(capsys, monkeypatch, WHOLE, "decode", "openai_chat") == (0, "42\n", "")
    assert main(["decode", "morse", str(recording)]) == 2
    assert "'morse' is neither a dialect nor a provider" in capsys.readouterr().err
    assert main(["decode", "openai_chat", str(recording), "--dialect", "openai_chat"]) == 2
    assert "given twice" in capsys.readouterr().err


def test_the_provider_decides_how_a_recording_is_decoded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = WHOLE.replace('"42"', '"<think>in tags</think>42"').replace('"plan A"', "null")
    inlines = ("--provider", "vllm", "-m", "qwen3-8b")
    assert piped(capsys, monkeypatch, body, "decode", *inlines, "-t") == (0, "42\n", "in tags\n")
    never = ("--provider", "openai", "-m", "gpt-4o")
    assert piped(capsys, monkeypatch, body, "decode", *never, "-t")[1] == "<think>in tags</think>42\n"


def test_errors_are_those_of_a_live_call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    body = '{"error": {"message": "slow down", "code": "rate_limit"}}'
    code, out, err = piped(capsys, monkeypatch, body, "decode", "--status", "429")
    assert (code, out) == (4, "")
    assert "slow down" in err
    assert piped(capsys, monkeypatch, '{"detail": "?"}', "decode", "--status", "401")[0] == 3
    code, out, err = piped(capsys, monkeypatch, STREAM.rpartition("data:")[0], "decode")
    assert (code, out) == (5, "42\n"), "the answer so far is shown"
    code, out, _ = piped(capsys, monkeypatch, "<html>", "decode", "--json")
    assert (code, json.loads(out)["error"]["type"]) == (6, "ProtocolError")
    assert piped(capsys, monkeypatch, "", "decode", "--dialect", "klingon")[0] == 2


MESSAGE = json.dumps({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "42"}]})


def test_the_dialect_is_recognised_from_the_bytes_and_named_in_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = MESSAGE.replace("}]}", '}], "stop_reason": "end_turn"}')
    assert piped(capsys, monkeypatch, body, "decode") == (0, "42\n", "")
    assert json.loads(piped(capsys, monkeypatch, body, "decode", "--json").out)["dialect"] == "anthropic"
    assert json.loads(piped(capsys, monkeypatch, WHOLE, "decode", "--json").out)["dialect"] == "openai_chat"
    line = '{"model":"m","message":{"role":"assistant","content":"4"},"done":false}\n'
    stream = line + line.replace('"4"', '"2"').replace("false", 'true,"done_reason":"stop"')
    assert piped(capsys, monkeypatch, stream, "decode") == (0, "42\n", "")


def test_bytes_of_no_dialect_say_which_were_tried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = piped(capsys, monkeypatch, '{"answer": "42"}', "decode")
    assert (code, out) == (6, "")
    for name in ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock", "ollama", "cohere"):
        assert f"{name}: no `" in err
