"""Aliases and templates of asides.toml on the command line: what is sent, what wins, what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides_stage.stage import OpenStage, Say, Stage
from tests.cli.children import Ended, dialogue, here, only_body, piped

SETTINGS = """
[aliases]
fast = "openai-compatible:staged"

[templates.review]
model = "fast"
system = "You review {language} code."
prompt = "Review this:\\n{input}\\nBe {tone}. f'{name}' and {{x}} and {} stay."
params = { language = "Python", tone = "kind" }
temperature = 0.5
thinking = "low"
max_tokens = 100
stop = ["END"]

[templates.translate]
prompt = "Into {language}: {input}"

[templates.pirate]
system = "Talk like a pirate."

[templates.again]
prompt = "Again, please."

[templates.needs]
params = ["who"]
prompt = "Greet {who}, not {other}."
"""


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "named.toml").write_text(SETTINGS, "utf-8")
    monkeypatch.setenv("ASIDES_CONFIG", str(tmp_path / "named.toml"))


def run(capsys: pytest.CaptureFixture[str], server: Stage, *arguments: str) -> Ended:
    return here(capsys, "ask", "--base-url", server.url, "--no-stdin", *arguments)


def test_an_alias_names_a_model_wherever_one_is_named(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."), Say(text="B."), Say(text="C."))
    assert run(capsys, server, "-m", "fast", "a?").out == "A.\n"
    monkeypatch.setenv("ASIDES_MODEL", "fast")
    assert run(capsys, server, "b?").out == "B.\n"
    lines = "/model openai-compatible:other\n/model fast\nc?\n/model\n"
    code, out, err = piped(capsys, monkeypatch, lines, "chat", "--base-url", server.url)
    assert (code, out) == (0, "C.\n")
    assert err.splitlines()[-1] == "openai-compatible:staged"
    assert {request.json["model"] for request in server.requests} == {"staged"}
    assert json.loads(here(capsys, "explain", "--base-url", server.url, "--json", "--no-stdin", "?").out)["model"] == (
        "openai-compatible:staged"
    )


def test_a_template_is_filled_once_and_other_braces_stay(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(Say(text="Fine."))
    assert run(capsys, server, "-T", "review", "-p", "tone=fair {input}", "def f(): return {tone}").code == 0
    body = only_body(server)
    assert body["messages"] == [
        {"role": "system", "content": "You review Python code."},
        {
            "role": "user",
            "content": "Review this:\ndef f(): return {tone}\nBe fair {input}. f'{name}' and {{x}} and {} stay.",
        },
    ]
    assert (body["temperature"], body["stop"], body["reasoning_effort"]) == (0.5, ["END"], "low")


def test_the_command_line_wins_over_the_template(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(Say(text="Fine."))
    given = ("-s", "mine", "--temperature", "1", "--thinking", "high", "-m", "openai-compatible:other")
    assert run(capsys, server, "-T", "review", *given, "x").code == 0
    body = only_body(server)
    assert body["messages"][0]["content"] == "mine"
    assert (body["model"], body["temperature"], body["reasoning_effort"]) == ("other", 1.0, "high")


def test_piped_text_fills_the_input_and_a_template_without_one_comes_first(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(*(Say(text="Fine.") for _ in range(4)))
    address = ("-m", "fast", "--base-url", server.url)
    piped(capsys, monkeypatch, "cat\n", "ask", *address, "-T", "translate", "-p", "language=German")
    piped(capsys, monkeypatch, "more", "ask", *address, "-T", "again")
    run(capsys, server, "-m", "fast", "-T", "again")
    run(capsys, server, "-m", "fast", "-T", "pirate", "hello")
    assert [dialogue(server, number)[-1][1] for number in range(4)] == [
        "Into German: cat",
        "Again, please.\n\nmore",
        "Again, please.",
        "hello",
    ]
    assert dialogue(server, 3)[0] == ("system", "Talk like a pirate.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-T", "translate", "cat"), "the template needs a value for {language}. Add -p language=…"),
        (("-T", "translate", "-p", "language=German"), "the template needs a text for {input}"),
        (("-T", "needs"), "the template needs a value for {who}. Add -p who=…"),
        (("-T", "needs", "-p", "other=x"), "the template has no placeholder {other} for -p; it has: who."),
        (("-T", "needs", "-p", "who"), "-p who is not understood. Write -p NAME=VALUE."),
        (("-T", "needs", "-p", "who=a", "-p", "who=b"), "-p who is given twice"),
        (("-T", "reveiw", "x"), "no template is called 'reveiw'; did you mean review?"),
        (("-p", "who=a", "x"), "Name the template with -T NAME."),
        (("-T", "pirate"), "there is nothing to ask"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_sent(
    arguments: tuple[str, ...], message: str, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(text="Never."))
    code, out, err = run(capsys, server, "-m", "fast", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert server.requests == []


def test_in_a_chat_the_template_is_around_every_question(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="Katze."), Say(text="Hund."))
    options = ("-m", "fast", "--base-url", server.url, "-T", "translate", "-p", "language=German")
    assert piped(capsys, monkeypatch, "cat\ndog\n", "chat", *options).out == "Katze.\nHund.\n"
    assert dialogue(server, 1)[-1] == ("user", "Into German: dog")


def test_a_file_that_came_with_the_folder_names_no_model_and_writes_no_prompt(
    stage: OpenStage, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASIDES_CONFIG")
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / "asides.toml").write_text(SETTINGS, "utf-8")
    monkeypatch.chdir(folder)
    server = stage(Say(text="Never."))
    code, _, err = run(capsys, server, "-m", "fast", "x")
    assert code == 2
    assert "may not set aliases.fast, templates.review" in err
    assert "'fast' is a model without a provider" in err
    code, _, err = run(capsys, server, "-m", "openai-compatible:m", "-T", "review", "x")
    assert code == 2
    assert "the template 'review' comes from a file that is not trusted" in err
    assert server.requests == []
