"""Nobody named: the embedded model answers where nothing else is set up, and says so; otherwise nothing is guessed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from asides.local import server_pool as server_pool
from tests.cli.children import asides, at_terminal, here
from tests.local.processes import needs_engine

_SAID = "asking local:tiny, a very small model; for a real one: -m PROVIDER:MODEL (`asides providers` lists them)"


@needs_engine
@pytest.mark.engine
def test_with_nothing_set_up_the_embedded_model_answers_and_a_line_says_so() -> None:
    done = asides("ask", "-t", "--usage", "What is 23 * 47?")
    assert done.code == 0
    assert "1081" in done.out
    assert len(done.out.splitlines()) == 1
    said, *thinking, usage = done.err.splitlines()
    assert said.startswith(_SAID)
    assert thinking[0] == "I have to work out 23 times 47."
    assert thinking[-1] == "So 23 x 47 = 1081."
    assert usage.startswith("tokens: input ")


@needs_engine
@pytest.mark.engine
def test_at_a_terminal_the_line_and_the_thinking_are_dim_and_the_answer_is_not() -> None:
    with at_terminal("ask", "-t", "What is 2 + 3?") as keyboard:
        assert keyboard.end() == 0
    assert f"\x1b[2m{_SAID}" in keyboard.text
    assert "\x1b[2mThe user wants the sum" in keyboard.text.replace("\x1b[0m\x1b[2m", "")
    assert keyboard.screen[-2:] == ["2 + 3 = **5**", ""]


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
        keyboard.interrupt()
        keyboard.wait_for("> ")
        keyboard.type("What is 12 + 30?\n")
        keyboard.wait_for(" write")
        keyboard.interrupt()
        keyboard.wait_for("> ")
        keyboard.type("/quit\n")
        assert keyboard.end() == 0


@needs_engine
def test_explaining_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = server_pool.running()
    done = here(capsys, "explain", "--no-stdin", "Hi")
    assert done.code == 0
    assert done.out.startswith("local:tiny\n")
    assert done.err.startswith(_SAID)
    assert server_pool.running() == before


def test_with_keys_at_hand_the_choice_is_listed_and_not_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk_verysecretkey")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-verysecretkey")
    done = here(capsys, "ask", "--no-stdin", "Hi")
    assert (done.code, done.out) == (2, "")
    assert "There are keys for deepseek, groq" in done.err
    assert "verysecret" not in done.err
    assert "`asides models -m PROVIDER`" in done.err


def test_with_rows_of_your_own_the_choice_is_listed_and_not_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "asides.toml").write_text('[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.setenv("ASIDES_CONFIG", str(tmp_path / "asides.toml"))
    done = here(capsys, "ask", "--no-stdin", "Hi")
    assert (done.code, done.out) == (2, "")
    assert "There are rows of yours: mine." in done.err


def test_without_the_wheel_it_is_said_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    done = here(capsys, "ask", "--no-stdin", "Hi")
    assert (done.code, done.out) == (2, "")
    assert "No provider's key is in the environment" in done.err
    assert "local:tiny needs no key: pip install 'asides[local]'." in done.err


def test_a_model_that_is_named_is_asked_without_a_word_of_the_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_MODEL", "groq:openai/gpt-oss-20b")
    done = here(capsys, "explain", "--no-stdin", "Hi")
    assert done.out.startswith("groq:openai/gpt-oss-20b\n")
    assert done.err == ""
