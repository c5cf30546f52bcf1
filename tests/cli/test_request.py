"""The model and the options of a call; without a model, the embedded one answers or the choice is listed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from asides.cli.app import main
from asides_stage.stage import OpenStage, Say
from tests.cli.children import MODEL, asides, ask, at_terminal, here, only_body, show_at_terminal
from tests.local.processes import needs_engine


def test_every_option_reaches_the_request(stage: OpenStage, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    schema = tmp_path / "answer.json"
    schema.write_text('{"title": "Answer", "type": "object", "properties": {"n": {"type": "integer"}}}')
    server = stage(Say(text="{}"))
    options = (
        "-s be brief|--thinking low|--max-tokens 50|--temperature 0.5|--top-p 0.9|--stop END|--stop ###|--seed 7"
        f'|--extra {{"mine": [1]}}|--schema {schema}'
    )
    words = [word for option in options.split("|") for word in option.split(" ", 1)]
    assert ask(capsys, server, "-q", *words, "--", "-1", "or", "--seed?")[0] == 0
    body = only_body(server)
    assert body["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "-1 or --seed?"}]
    assert body["reasoning_effort"] == "low"
    assert body["max_tokens"] == 50
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.5, 0.9, 7)
    assert body["stop"] == ["END", "###"]
    assert body["mine"] == [1]
    assert body["response_format"]["json_schema"]["name"] == "Answer"


def test_the_model_may_come_from_the_settings(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_MODEL", MODEL)
    server = stage(Say(text="ok"))
    assert main(["ask", "--no-stdin", "--base-url", server.url, "?"]) == 0
    assert capsys.readouterr().out == "ok\n"
    assert only_body(server)["model"] == "staged"


def test_a_key_on_the_command_line_is_used_and_advised_against(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(text="ok"), key="verysecret")
    code, out, err = ask(capsys, server, "--api-key", "verysecret", "?")
    assert (code, out) == (0, "ok\n")
    assert "OPENAI_COMPATIBLE_API_KEY" in err
    assert "verysecret" not in err
    assert ask(capsys, server, "-q", "--api-key", "another", "?")[0] == 3


def test_without_a_model_the_keys_at_hand_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk_verysecretkey")
    assert main(["ask", "--no-stdin", "?"]) == 2
    err = capsys.readouterr().err
    assert "asides config set model groq:" in err
    assert "There are keys" not in err
    assert "local:tiny needs no key" in err
    assert "verysecret" not in err


@pytest.mark.parametrize(
    ("variables", "suggested"),
    [
        (("TOGETHER_API_KEY",), ["together:openai/gpt-oss-120b"]),
        (("NVIDIA_API_KEY", "GROQ_API_KEY"), ["groq:openai/gpt-oss-120b", "nvidia:openai/gpt-oss-120b"]),
        (("XAI_API_KEY", "GEMINI_API_KEY"), ["google:gemini-3.8-flash", "xai:grok-4.7"]),
        (("ASIDES_STAGE",), ["openai:", "anthropic:", "google:", "deepseek:", "mistral:"]),
    ],
)
def test_without_a_model_a_few_names_can_be_copied(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: tuple[str, ...],
    suggested: list[str],
) -> None:
    for name in variables:
        monkeypatch.setenv(name, "1" if name == "ASIDES_STAGE" else "key-0123456789")
    assert main(["ask", "--no-stdin", "?"]) == 2
    err = capsys.readouterr().err
    lines = re.findall(r"^  asides config set model (\S+)$", err, re.MULTILINE)
    assert len(lines) == len(suggested)
    assert all(line.startswith(start) for line, start in zip(lines, suggested, strict=True)), lines
    assert "asking local:tiny" not in err


_NOTE = "asking local:tiny, a very small model; for a real one: -m PROVIDER:MODEL (`asides providers` lists them)"


@needs_engine
@pytest.mark.engine
def test_without_any_setup_the_embedded_model_answers_and_a_note_says_so() -> None:
    done = asides("ask", "-t", "--usage", "What is 23 * 47?")
    assert done.code == 0
    assert "1081" in done.out
    assert len(done.out.splitlines()) == 1
    note, *thinking, usage = done.err.splitlines()
    assert note.startswith(_NOTE)
    assert thinking[0] == "I have to work out 23 times 47."
    assert thinking[-1] == "So 23 x 47 = 1081."
    assert usage.startswith("tokens: ")


@needs_engine
@pytest.mark.engine
def test_at_a_terminal_the_line_and_the_thinking_are_dim_and_the_answer_is_not() -> None:
    shown = show_at_terminal("ask", "-t", "--plain", "What is 2 + 3?")
    assert shown.code == 0
    assert f"\x1b[2m{_NOTE}" in shown.text
    assert "\x1b[2mThe user wants the sum" in shown.text.replace("\x1b[0m\x1b[2m", "")
    assert shown.screen[-2:] == ["2 + 3 = **5**", ""]


@needs_engine
@pytest.mark.engine
def test_a_chat_with_the_embedded_model_remembers() -> None:
    done = asides("chat", "-q", stdin="What is 12 + 30?\nAnd times 2?\n")
    assert done.code == 0
    assert ["42" in done.out.splitlines()[0], "84" in done.out.splitlines()[1]] == [True, True]
    assert done.err == ""


@needs_engine
@pytest.mark.engine
def test_ctrl_c_in_a_chat_stops_an_answer_and_not_the_server() -> None:
    with at_terminal("chat", "-t", "--extra", '{"ignore_eos": true}', "--max-tokens", "1900") as keyboard:
        keyboard.wait_for("> ")
        keyboard.type("What is 47 + 85?\n")
        keyboard.wait_for(" carry")
        keyboard.interrupt_for("> ", seconds=5.0)
        keyboard.type("What is 12 + 30?\n")
        keyboard.wait_for(" write")
        keyboard.interrupt_for("> ", seconds=5.0)
        keyboard.type("/quit\n")
        assert keyboard.end() == 0


def test_with_keys_at_hand_the_choice_is_listed_and_not_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk_verysecretkey")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-verysecretkey")
    done = here(capsys, "ask", "--no-stdin", "Hi")
    assert (done.code, done.out) == (2, "")
    assert "asides config set model deepseek:" in done.err
    assert "asides config set model groq:" in done.err
    assert "write -m PROVIDER:MODEL, or run one of the lines above once." in done.err
    assert "verysecret" not in done.err
    assert "`asides models -m PROVIDER`" in done.err


def test_a_key_that_opens_several_endpoints_is_named_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "DEEPSEEK", "MISTRAL", "XAI", "GROQ"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-verysecretkey")
    err = here(capsys, "ask", "--no-stdin", "Hi").err
    for name in ("openai", "anthropic", "google", "groq"):
        assert len(re.findall(rf"\b{name}\b(?!/)", err)) == 1, err
    assert "openai-chat" not in err


def test_with_your_own_providers_the_choice_is_listed_and_not_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "asides.toml").write_text('[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.setenv("ASIDES_CONFIG", str(tmp_path / "asides.toml"))
    done = here(capsys, "ask", "--no-stdin", "Hi")
    assert (done.code, done.out) == (2, "")
    assert "Your settings define mine." in done.err


@pytest.mark.parametrize("package", ["xllamacpp", "asides_tiny_model"])
def test_without_the_engine_or_the_model_the_error_says_how_to_install_them(
    package: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    done = here(capsys, "ask", "--no-stdin", "Hi")
    assert (done.code, done.out) == (2, "")
    assert "No provider's key is set" in done.err
    assert "local:tiny needs no key: pip install 'asides[local]'." in done.err


def test_a_named_model_is_asked_without_a_note_about_the_embedded_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_MODEL", "groq:openai/gpt-oss-20b")
    done = here(capsys, "explain", "--no-stdin", "Hi")
    assert done.out.startswith("groq:openai/gpt-oss-20b\n")
    assert done.err == ""
