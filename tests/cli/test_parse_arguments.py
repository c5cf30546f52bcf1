"""Options that are not known, and what was meant; a model as the first word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.cli.parse_arguments import format_list
from asides_stage.stage import OpenStage, Say
from tests.cli.children import MODEL, asides, here, only_body


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ask --thinkng high hi", "`asides ask` has no option --thinkng; did you mean --thinking?"),
        ("ask hi --show-thinkng", "`asides ask` has no option --show-thinkng; did you mean --show-thinking?"),
        ("ask --max_tokens=5 hi", "`asides ask` has no option --max_tokens; did you mean --max-tokens?"),
        ("ask --reasoning-effort low hi", "`asides ask` has no option --reasoning-effort; did you mean --thinking?"),
        ("ask --bas x hi", "`asides ask` has no option --bas; did you mean --base-url?"),
        ("ask --refresh hi", "`asides ask` has no option --refresh; it belongs to `asides models`"),
        ("ask --version", "`asides ask` has no option --version; `asides --version` shows the version"),
        ("ask --xyzzy hi", "`asides ask` has no option --xyzzy"),
        ("ask -z hi", "`asides ask` has no option -z; words that begin with - come after --"),
        ("stage --prot 1", "`asides stage` has no option --prot; did you mean --port?"),
        ("gateway", "`asides gateway` needs an action: key, usage, export or import"),
        ("store", "`asides store` needs an action: migrate or check"),
        ("providers a b", "unexpected arguments: b"),
        ("chat vllm:qwen3", "unexpected arguments: vllm:qwen3; for a model, write -m vllm:qwen3"),
    ],
)
def test_an_unknown_option_says_what_was_meant(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = words.split(maxsplit=1)[0]
    expected = f"asides: {message}\nTry `asides {name} --help`.\n"
    assert here(capsys, *words.split()) == (2, "", expected)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("history delete x", "rm"),
        ("history remove x", "rm"),
        ("history lst", "list"),
        ("history find x", "search"),
        ("keys rm openai", "remove"),
        ("keys delete openai", "remove"),
        ("keys sett openai", "set"),
        ("config remove model", "unset"),
        ("completion bsh", "bash"),
        ("ask --on-conflict adjst hi", "adjust"),
    ],
)
def test_an_unknown_action_or_choice_says_what_was_meant(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = here(capsys, *words.split())
    assert (code, out) == (2, "")
    assert f"; did you mean {meant}?\n" in err


def test_an_action_that_is_near_nothing_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    err = here(capsys, "history", "xyzzy").err
    assert "did you mean" not in err
    assert "search" in err


def test_a_key_among_the_words_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    done = here(capsys, "providers", "openai", key)
    assert (done.code, key in done.err) == (2, False)


# --- lists of the help ------------------------------------------------------------------------------------------------


def test_texts_begin_at_the_column_and_continue_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "34")
    entries = [("ask", "one two three four five six"), ("chat", "short")]
    assert format_list(entries, 6) == "  ask    one two three four five\n         six\n  chat   short\n"


def test_a_very_narrow_terminal_still_gets_every_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "5")
    assert format_list([("ask", "one two three four five six")]).split() == "ask one two three four five six".split()


# --- a model as the first word ----------------------------------------------------------------------------------------


def ask_words(stage: OpenStage, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str, str]:
    """The model and the question that are sent, and stderr."""
    server = stage(Say(text="ok"))
    done = here(capsys, "ask", "--no-stdin", "--base-url", server.url, *words)
    assert (done.code, done.out) == (0, "ok\n"), done.err
    body = only_body(server)
    return body["model"], body["messages"][-1]["content"], done.err


def test_a_first_word_that_is_plainly_a_model_is_the_model(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    model, question, err = ask_words(stage, capsys, "vllm:qwen3-8b", "Why", "so?")
    assert (model, question) == ("qwen3-8b", "Why so?")
    assert err.startswith("asking vllm:qwen3-8b, as the first word says; put -- before it")
    assert ask_words(stage, capsys, "-q", "vllm:qwen3-8b", "Why?") == ("qwen3-8b", "Why?", "")


@pytest.mark.parametrize(
    "words",
    [
        ["-m", MODEL, "vllm:qwen3-8b", "is", "what?"],
        ["-m", MODEL, "--", "vllm:qwen3-8b", "is", "what?"],
    ],
)
def test_with_an_option_the_first_word_belongs_to_the_question(
    words: list[str], stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask_words(stage, capsys, *words) == ("staged", "vllm:qwen3-8b is what?", "")


@pytest.mark.parametrize(
    "words",
    [
        ["--", "vllm:qwen3-8b", "is", "what?"],
        ["vllm:qwen3-8b is what?"],
        ["nobody:qwen3-8b", "is", "what?"],
        ["google:what", "is", "it?"],
        ["vllm:qwen3-8b"],
    ],
)
def test_a_question_that_begins_so_stays_a_question(
    words: list[str],
    stage: OpenStage,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASIDES_MODEL", MODEL)
    model, question, err = ask_words(stage, capsys, *words)
    shown = [word for word in words if word != "--"]
    assert (model, question) == ("staged", " ".join(shown))
    is_told = words in (["google:what", "is", "it?"], ["vllm:qwen3-8b"])
    assert (f"{words[0]} is taken as part of the question; for a model, write -m {words[0]}" in err) == is_told


def test_a_row_of_the_user_counts_too_and_explain_does_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "asides.toml").write_text('[providers.mine]\nbase_url = "http://127.0.0.1:1"\n')
    monkeypatch.setenv("ASIDES_CONFIG", str(tmp_path / "asides.toml"))
    done = here(capsys, "explain", "--no-stdin", "--json", "mine:big-1", "hi")
    assert json.loads(done.out)["model"] == "mine:big-1"


def test_the_issue_in_one_line() -> None:
    done = asides("explain", "anthropic:claude-opus-5-5", "hi")
    assert done.code == 0
    assert done.out.startswith("anthropic:claude-opus-5-5\n")
