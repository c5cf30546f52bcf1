"""`asides decode` and `asides separate`: bytes and text that are already here."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from asides.cli.app import main
from tests.cli.children import Ended, environment, here, read_some, started

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


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stdin: str | bytes, *arguments: str
) -> Ended:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
    return here(capsys, *arguments)


# --- decode ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [WHOLE, f"{STREAM}data: [DONE]\n\n"])
@pytest.mark.parametrize("framing", [[], ["--stream"], ["--whole"]])
def test_a_recording_is_taken_apart(
    body: str, framing: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, monkeypatch, body, "decode", *framing) == (0, "42\n", "")
    assert run(capsys, monkeypatch, body, "decode", *framing, "-t") == (0, "42\n", "plan A\n")
    code, out, err = run(capsys, monkeypatch, body, "decode", *framing, "--json")
    told = json.loads(out)
    assert (code, err, told["text"], told["thinking"], told["outcome"]) == (0, "", "42", "plan A", "answered")


def test_a_file_is_read_and_usage_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = tmp_path / "reply.json"
    recording.write_text(WHOLE)
    assert main(["decode", "--usage", str(recording)]) == 0
    assert capsys.readouterr() == ("42\n", "tokens: input 2, output 9, of it thinking 7, total 11\n")
    assert main(["decode", str(tmp_path / "nowhere")]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err


def test_the_dialect_may_stand_before_the_file_as_in_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tmp_path / "reply.json"
    recording.write_text(WHOLE)
    assert main(["decode", "openai_chat", str(recording)]) == 0
    assert capsys.readouterr().out == "42\n"
    assert run(capsys, monkeypatch, WHOLE, "decode", "openai_chat") == (0, "42\n", "")
    assert main(["decode", "morse", str(recording)]) == 2
    assert "'morse' is neither a dialect nor a provider" in capsys.readouterr().err
    assert main(["decode", "openai_chat", str(recording), "--dialect", "openai_chat"]) == 2
    assert "told twice" in capsys.readouterr().err


def test_the_provider_decides_how_it_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = WHOLE.replace('"42"', '"<think>in tags</think>42"').replace('"plan A"', "null")
    inlines = ("--provider", "vllm", "-m", "qwen3-8b")
    assert run(capsys, monkeypatch, body, "decode", *inlines, "-t") == (0, "42\n", "in tags\n")
    never = ("--provider", "openai", "-m", "gpt-4o")
    assert run(capsys, monkeypatch, body, "decode", *never, "-t")[1] == "<think>in tags</think>42\n"


def test_errors_are_those_of_a_live_call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    body = '{"error": {"message": "slow down", "code": "rate_limit"}}'
    code, out, err = run(capsys, monkeypatch, body, "decode", "--status", "429")
    assert (code, out) == (4, "")
    assert "slow down" in err
    assert run(capsys, monkeypatch, '{"detail": "?"}', "decode", "--status", "401")[0] == 3
    code, out, err = run(capsys, monkeypatch, STREAM.rpartition("data:")[0], "decode")
    assert (code, out) == (5, "42\n"), "what came is shown"
    code, out, _ = run(capsys, monkeypatch, "<html>", "decode", "--json")
    assert (code, json.loads(out)["error"]["type"]) == (6, "ProtocolError")
    assert run(capsys, monkeypatch, "", "decode", "--dialect", "klingon")[0] == 2


# --- separate -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "out", "err"),
    [
        ("<think>plan</think>42", [], "42\n", ""),
        ("<think>plan</think>42", ["-t"], "42\n", "plan\n"),
        ("<think>a</think>b<think>c</think>d", ["-t"], "bd\n", "a\nc\n"),
        ("plan</think>42", ["-t"], "42\n", "plan\n"),
        ("plan</think>42", ["--starts-inside", "no"], "plan</think>42\n", ""),
        ("plan", ["-t", "--starts-inside"], "", "plan\nwarning: the text ends in the middle of the thinking\n"),
        ("a <think>b</think>", ["--position", "anywhere"], "a \n", ""),
        ("[[a]]b((c))d", ["--tags", "[[", "]]", "--tags", "((", "))"], "bd\n", ""),
        ("<think>cut", ["-q"], "", ""),
    ],
)
def test_a_text_is_taken_apart(
    text: str,
    options: list[str],
    out: str,
    err: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(capsys, monkeypatch, text, "separate", *options) == (0, out, err)


def test_separate_tells_json_and_refuses_blank_tags(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, _ = run(capsys, monkeypatch, "<think>é", "separate", "--json")
    assert json.loads(out) == {"text": "", "thinking": "é", "truncated": True}
    code, _, err = run(capsys, monkeypatch, "", "separate", "--tags", " ", "x")
    assert code == 2
    assert "both not blank" in err


def test_bytes_that_are_no_text_become_marks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, monkeypatch, b"<think>a</think>b\xffc", "separate")[1] == "b\ufffdc\n"


def test_in_a_pipe_the_answer_comes_as_soon_as_it_is_certain() -> None:
    with started("separate", stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.write("<think>plan</think>first caf\u00e9".encode()[:-1])
        child.stdin.flush()
        seen = read_some(child, b"first caf")
        out, _ = child.communicate("\u00e9".encode()[1:] + b" last", timeout=10)
    assert (seen + out).decode() == "first caf\u00e9 last\n"
    assert child.returncode == 0


@pytest.mark.parametrize("arguments", [["--help"], ["separate"]])
def test_nothing_heavy_is_loaded_for_little_work(arguments: list[str]) -> None:
    report = (
        "import sys; from asides.cli.app import main; main(sys.argv[1:]); "
        "sys.exit(' '.join({'urllib3', 'aiohttp', 'rich', 'ssl', 'asyncio', 'asides.settings'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", report, *arguments],
        input=b"<think>a</think>b",
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert done.stderr == b"\n", "what sys.exit prints of an empty list"
    assert done.stdout.endswith(b"b\n") or b"exit codes" in done.stdout
