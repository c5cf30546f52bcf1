"""`asides doctor`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.cli.app import main
from asides.providers.find import find_target
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Origin, Seal, Thought
from tests.cli.children import here, piped

CLAUDE = "anthropic:claude-sonnet-4-5"
UNSIGNED: list[Any] = [
    {"role": "user", "content": "What is it?", "note": "mine"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "canary-plan", "signature": ""},
            {"type": "text", "text": "It is 42."},
        ],
    },
]
REPAIRED = [UNSIGNED[0], {"role": "assistant", "content": [{"type": "text", "text": "It is 42."}]}]


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    path = tmp_path / "history.json"
    path.write_text(json.dumps(UNSIGNED), encoding="utf-8")
    return path


def test_it_names_part_rule_date_source_and_repair(stuck: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(stuck), "--to", CLAUDE]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert out == (
        f"{stuck} (anthropic) to {CLAUDE}: not sound, one thing would be refused\n"
        "messages[1].content[0]: refused (thinking_signature_missing)\n"
        "  the thought has no signature, as after a reply that broke off\n"
        "  repair: it is left out\n"
        "  since 2026-04-03: justlovemaki/AIClient2API#437\n"
        "Write the repaired history with --fix FILE.\n"
    )
    assert "canary" not in out


def test_the_findings_are_json_for_machines(stuck: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(stuck), "--to", CLAUDE, "--json"]) == 1
    out, _ = capsys.readouterr()
    fields = json.loads(out)
    assert {name: fields[name] for name in ("file", "fixed", "model", "format", "sound", "notes")} == {
        "file": str(stuck),
        "fixed": None,
        "model": CLAUDE,
        "format": "anthropic",
        "sound": False,
        "notes": [],
    }
    (finding,) = fields["findings"]
    assert (finding["path"], finding["message"], finding["part"]) == ("messages[1].content[0]", 1, 0)
    assert (finding["kind"], finding["effect"]) == ("thinking_signature_missing", "refused")
    assert "repaired" not in fields
    assert "canary" not in out


def test_the_repaired_file_is_private_and_sound(
    stuck: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repaired = tmp_path / "repaired.json"
    assert main(["doctor", str(stuck), "--to", CLAUDE, "--fix", str(repaired)]) == 0
    assert capsys.readouterr().out.endswith(f"written: {repaired}\n")
    assert json.loads(repaired.read_text()) == REPAIRED
    assert json.loads(stuck.read_text()) == UNSIGNED
    if os.name == "posix":
        assert stat.S_IMODE(repaired.stat().st_mode) == 0o600
    assert main(["doctor", str(repaired), "--to", CLAUDE]) == 0
    assert capsys.readouterr().out == f"{repaired} (anthropic) to {CLAUDE}: sound\n"


def test_the_input_is_kept_when_it_is_replaced(stuck: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = stuck.read_bytes()
    assert main(["doctor", str(stuck), "--to", CLAUDE, "--fix", str(stuck)]) == 0
    original = stuck.with_name("history.json.orig")
    assert original.read_bytes() == before
    assert json.loads(stuck.read_text()) == REPAIRED
    # A sound file is not written again, and a second original is never lost.
    assert main(["doctor", str(stuck), "--to", CLAUDE, "--fix", str(stuck)]) == 0
    assert original.read_bytes() == before
    stuck.write_bytes(before)
    capsys.readouterr()
    assert main(["doctor", str(stuck), "--to", CLAUDE, "--fix", str(stuck)]) == 2
    assert "exists, and the input would be kept there" in capsys.readouterr().err
    assert stuck.read_bytes() == before


def test_a_sound_file_is_copied_byte_for_byte(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.json", tmp_path / "b.json"
    path.write_text('[ {"role":"user",\n"content":"hi","n":1.50} ]\n\n')
    assert main(["doctor", str(path), "--to", CLAUDE, "--fix", str(copy)]) == 0
    assert copy.read_bytes() == path.read_bytes()


def test_a_pipe_goes_in_and_out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.dumps(UNSIGNED)
    code, out, err = piped(capsys, monkeypatch, document, "doctor", "-", "--to", CLAUDE, "--fix", "-")
    assert (code, json.loads(out)) == (0, REPAIRED)
    assert "standard input (anthropic)" in err
    assert "thinking_signature_missing" in err


def test_other_keys_and_the_look_of_the_file_stay(tmp_path: Path) -> None:
    path, repaired = tmp_path / "request.json", tmp_path / "repaired.json"
    request = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 900,
        "messages": UNSIGNED,
        "metadata": {"user_id": "x"},
        "z": 1,
    }
    path.write_text(json.dumps(request, indent=4))
    assert main(["doctor", str(path), "--to", CLAUDE, "--fix", str(repaired)]) == 0
    written = json.loads(repaired.read_text())
    assert written == {**request, "messages": REPAIRED}
    assert list(written) == list(request)
    assert repaired.read_text().startswith('{\n  "model"')


def test_a_session_file_stays_one(tmp_path: Path) -> None:
    path, repaired = tmp_path / "session.jsonl", tmp_path / "repaired.jsonl"
    lines = [
        {"type": "summary", "summary": "about"},
        {"type": "user", "uuid": "1", "message": UNSIGNED[0]},
        {"type": "assistant", "uuid": "2", "message": {"id": "msg_1", **UNSIGNED[1]}},
        {"type": "assistant", "uuid": "3", "message": {"id": "msg_2", "role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}]}},
        {"type": "note"},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["doctor", str(path), "--to", CLAUDE, "--thinking", "off", "--fix", str(repaired)]) == 0
    written = [json.loads(line) for line in repaired.read_text().splitlines()]
    assert [line["type"] for line in written] == ["summary", "user", "assistant", "assistant", "user", "note"]
    assert written[2]["message"] == {"id": "msg_1", **REPAIRED[1]}
    assert written[4]["message"]["content"][0]["tool_use_id"] == "toolu_1"


def test_a_saved_conversation_is_repaired_and_loads(tmp_path: Path) -> None:
    path, repaired = tmp_path / "chat.json", tmp_path / "repaired.json"
    here = find_target(CLAUDE).origin
    elsewhere = Origin("openai", "https://api.openai.com/v1", "gpt-5")
    messages = [
        Message("user", "What is it?"),
        Message("assistant", (
            Thought("kept", "summary", "block", here, (Seal("signature", "c2lnbmVk", here),), "thinking"),
            Thought("foreign", "raw", "responses_raw", elsewhere, (Seal("encrypted", "x", elsewhere),), "summary"),
            ToolCall("toolu_1", "look_up", {"n": 1}),
        )),
        Message("tool", (ToolResult("toolu_9", "42"),)),
        Message("user", "And?"),
    ]  # fmt: skip
    chat = asides.Conversation(messages=messages, keep_thinking=True)
    chat.save(path)
    assert main(["doctor", str(path), "--to", CLAUDE, "--fix", str(repaired)]) == 0
    loaded = asides.Conversation.load(repaired).messages
    assert [type(part).__name__ for message in loaded for part in message.parts] == [
        "Text",
        "Thought",
        "ToolCall",
        "ToolResult",
        "Text",
    ]
    assert loaded[1].parts[0] == messages[1].parts[0]
    result = loaded[2].parts[0]
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == ("toolu_1", True)
    assert isinstance(loaded[0].parts[0], Text)
    assert main(["doctor", str(repaired), "--to", CLAUDE]) == 0


@pytest.mark.parametrize(
    ("content", "words", "told"),
    [
        ("", [], "the file is empty"),
        ("not json", [], "neither JSON nor one JSON object in each line"),
        ('{"a": 1}', [], "no list of messages"),
        ("[]", [], "the conversation is empty"),
        ("[1, 2]", [], "messages[0] is a number, not a message"),
        ('"text"', [], "there is no conversation in text"),
        ('[{"role": "king", "content": "x"}]', ["--format", "openai"], "the role 'king' is not known"),
        ('[{"role": "user", "content": "x"}]', ["--to", "nobody:m"], "nobody"),
        ('[{"role": "user", "content": "x"}]', ["--from", "nobody:m"], "nobody"),
        ('[{"role": "user", "content": "x"}]', ["--thinking", "very"], "thinking='very' is not known"),
        ('{"asides": 99, "messages": [{"role": "user"}]}', [], "saved by a later asides"),
        ('{"role": "user", "content": "x"}', [], "this is a single message"),
    ],
)
def test_a_bad_file_or_option_gets_a_clear_error(
    content: str, words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    assert main(["doctor", str(path), "--to", CLAUDE, *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.count("\n") == 1


def test_a_missing_file_a_missing_model_and_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(tmp_path / "nowhere.json"), "--to", CLAUDE]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err
    assert main(["doctor", "file.json"]) == 2
    assert "--to" in capsys.readouterr().err
    path = tmp_path / "a.json"
    path.write_text('[{"role": "user", "content": "x"}]')
    assert main(["doctor", str(path), "--to", CLAUDE, "--fix", str(tmp_path / "no" / "folder.json")]) == 2
    assert "cannot be saved to" in capsys.readouterr().err


def test_what_the_model_only_ignores_is_told_and_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chat.json"
    plain = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "reasoning_content": "plan"},
        {"role": "user", "content": "c"},
    ]
    path.write_text(json.dumps(plain))
    assert main(["doctor", str(path), "--to", "deepseek:deepseek-reasoner"]) == 0
    out = capsys.readouterr().out
    assert "sound\nmessages[1].reasoning_content: ignored\n  the thought does not go back: replay rule" in out
    assert main(["doctor", str(path), "--to", "deepseek:deepseek-reasoner", "-q"]) == 0
    assert "ignored" not in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_replaced_by_a_file(stuck: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["doctor", str(stuck), "--to", CLAUDE, "--fix", str(pipe)]) == 2
    assert "a device or a pipe" in capsys.readouterr().err
    assert pipe.is_fifo()


def test_a_file_in_utf_16_comes_out_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.json"
    for history in (REPAIRED, UNSIGNED):
        path.write_text(json.dumps(history), encoding="utf-16")
        assert main(["doctor", str(path), "--to", CLAUDE, "--fix", "-"]) == 0
        assert json.loads(capsys.readouterr().out) == REPAIRED


def test_names_of_the_file_forge_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "\x1b[2J\x9b31m\u202eevil\nforged: sound"
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": "{"}}
    path = tmp_path / "history.json"
    history = [{"role": "user", "content": "x"}, {"role": "assistant", name: "", "tool_calls": [call]}]
    path.write_text(json.dumps(history), encoding="utf-8")
    for model in ("groq:qwen3", "deepseek:deepseek-reasoner", CLAUDE):
        assert main(["doctor", str(path), "--to", model]) == 1
        out, err = capsys.readouterr()
        assert "\\x1b[2J\\x9b31m\\u202eevil\\x0aforged" in out
        assert not [line for line in (out + err).splitlines() if line.startswith("forged") or not line.isprintable()]
        found = asides.diagnose(history, model)
        assert all(finding.detail.isprintable() for finding in found.findings)


def test_without_a_file_the_servers_are_checked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, postgres_url: str, redis_url: str
) -> None:
    monkeypatch.setenv("ASIDES_STATE", "/state")
    assert here(capsys, "doctor") == (0, "store: none is set; SQLite files in /state are used\n", "")
    monkeypatch.setenv("ASIDES_STORE", postgres_url)
    monkeypatch.setenv("ASIDES_GATEWAY_REDIS", redis_url)
    code, out, err = here(capsys, "doctor")
    assert (code, err) == (0, "")
    assert [line.partition(":")[0] for line in out.splitlines()] == ["store", "gateway.redis"]
    assert "problem" not in out
    monkeypatch.setenv("ASIDES_GATEWAY_REDIS", "redis://:hunter2@127.0.0.1:1/0")
    code, out, err = here(capsys, "doctor", "-q")
    assert (code, err) == (1, "")
    assert out.startswith("gateway.redis: problem: Redis at 127.0.0.1:1/0 cannot be used")
    code, out, _ = here(capsys, "doctor", "--json")
    found = json.loads(out)
    assert (code, found["sound"], [each["is_sound"] for each in found["servers"]]) == (1, False, [True, False])
    assert "hunter2" not in out
    code, _, err = here(capsys, "doctor", "--to", CLAUDE)
    assert (code, err) == (2, "asides: there is no history. Name its file; `-` reads standard input.\n")
