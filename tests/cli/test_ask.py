"""`asides ask`, mostly as a process of its own that talks to a stage over a socket."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from asides.cli.app import main
from asides.testing.stage import Fail, Garbage, OpenStage, Raw, Say, Stage
from asides.values.messages import ToolCall
from asides.values.usage import Usage
from tests.cli.children import MODEL, Ended, asides, at, here, read_some, started

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def ask(capsys: pytest.CaptureFixture[str], stage: Stage, *arguments: str) -> Ended:
    return here(capsys, "ask", *at(stage), "--no-stdin", *arguments)


def sent(stage: Stage) -> dict[str, Any]:
    """The body of the only request."""
    (request,) = stage.requests
    return dict(request.json)


# --- what goes where ------------------------------------------------------------------------------------------------


def test_the_answer_is_on_stdout_alone_and_stderr_is_empty(stage: OpenStage) -> None:
    done = asides("ask", *at(stage(Say(thinking="canary", text="Forty-two."))), "What", "is", "it?")
    assert done == (0, "Forty-two.\n", "")


def test_an_answer_that_ends_its_line_gets_no_second_end(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, stage(Say(text="a\nb\n")), "?") == (0, "a\nb\n", "")


def test_thinking_is_shown_on_stderr_without_colours_where_nobody_sees_them(stage: OpenStage) -> None:
    done = asides("ask", *at(stage(Say(thinking="plan A", text="42"))), "-t", "?")
    assert done == (0, "42\n", "plan A\n")


def test_what_is_piped_in_goes_behind_the_words(stage: OpenStage) -> None:
    theatre = stage(Say(text="ok"))
    done = asides("ask", *at(theatre), "Sum", "up:", stdin="first\nsecond\n")
    assert done == (0, "ok\n", "")
    assert sent(theatre)["messages"] == [{"role": "user", "content": "Sum up:\n\nfirst\nsecond"}]


def test_what_is_piped_in_can_be_the_whole_question(stage: OpenStage) -> None:
    theatre = stage(Say(text="ok"))
    assert asides("ask", *at(theatre), "--no-stream", stdin="Why?\n").out == "ok\n"
    assert sent(theatre)["messages"] == [{"role": "user", "content": "Why?"}]
    assert sent(theatre).get("stream", False) is False


def test_json_has_every_field_apart(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    call = ToolCall("c1", "look", {"at": 1})
    scene = Say(thinking="plan", text="42", tool_calls=(call,), usage=Usage(3, 9, 5, 1, 12), model="m-1")
    code, out, err = ask(capsys, stage(scene), "--json", "?")
    told = json.loads(out)
    assert told.pop("elapsed").keys() == {"thinking", "first_word", "total"}
    assert told == {
        "text": "42",
        "thinking": "plan",
        "thinking_type": "raw",
        "thinking_source": "field",
        "tool_calls": [{"id": "c1", "name": "look", "arguments": {"at": 1}, "raw_arguments": None}],
        "refusal": None,
        "usage": {"input": 3, "output": 9, "thinking": 5, "cached": 1, "total": 12, "origin": "reported"},
        "outcome": "tool_calls",
        "stop": {"reason": "tool_calls", "raw": "tool_calls"},
        "model": "m-1",
        "complete": True,
        "warnings": [],
    }
    assert out.count("\n") == 1
    assert (code, err) == (0, "")


def test_whole_and_streamed_print_the_same(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    theatre = stage(Say(thinking="plan", text="forty-two"))
    assert ask(capsys, theatre, "-t", "?") == ask(capsys, theatre, "-t", "--no-stream", "?")
    assert [request.json.get("stream", False) for request in theatre.requests] == [True, False]


def test_figures_come_on_request_and_say_what_was_not_reported(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    theatre = stage(Say(thinking="a b", text="c", usage=Usage(3, 9, 5, 2, 12)), Say(text="c", usage=Usage()))
    _, _, err = ask(capsys, theatre, "--usage", "--elapsed", "?")
    tokens, time = err.splitlines()
    assert tokens == "tokens: input 3 (2 cached), output 9, of it thinking 5, total 12"
    assert time.startswith("time: thinking 0.")
    assert ask(capsys, theatre, "--usage", "?")[2] == "tokens: not reported\n"


def test_warnings_are_lines_on_stderr_and_quiet_leaves_them_out(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    theatre = stage(Say(text="42"))
    code, out, err = ask(capsys, theatre, "--thinking", "high", "?")
    assert (code, out) == (0, "42\n")
    assert err.startswith("warning: unknown_model: ")
    assert err.count("\n") == 1
    assert ask(capsys, theatre, "--thinking", "high", "-q", "?") == (0, "42\n", "")


def test_what_the_answer_lacks_is_said_though_it_is_no_failure(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    theatre = stage(Say(text="half", stop="length"), Say(tool_calls=(ToolCall("c1", "look", {}),)))
    told = "the answer was cut off at the limit of tokens; raise --max-tokens.\n"
    assert ask(capsys, theatre, "?") == (0, "half\n", told)
    assert ask(capsys, theatre, "?") == (0, "", "the model called tools (look); --json has the calls.\n")


# --- what is sent ---------------------------------------------------------------------------------------------------


def test_every_option_reaches_the_request(stage: OpenStage, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    schema = tmp_path / "answer.json"
    schema.write_text('{"title": "Answer", "type": "object", "properties": {"n": {"type": "integer"}}}')
    theatre = stage(Say(text="{}"))
    options = (
        "-s be brief|--thinking low|--max-tokens 50|--temperature 0.5|--top-p 0.9|--stop END|--stop ###|--seed 7"
        f'|--extra {{"mine": [1]}}|--schema {schema}'
    )
    words = [word for option in options.split("|") for word in option.split(" ", 1)]
    assert ask(capsys, theatre, "-q", *words, "--", "-1", "or", "--seed?")[0] == 0
    body = sent(theatre)
    assert body["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "-1 or --seed?"}]
    assert body["reasoning_effort"] == "low"
    assert body["max_tokens"] == 50
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.5, 0.9, 7)
    assert body["stop"] == ["END", "###"]
    assert body["mine"] == [1]
    assert body["response_format"]["json_schema"]["name"] == "Answer"


def test_files_become_parts(stage: OpenStage, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7\n\xff")
    (tmp_path / "c.txt").write_text("the text\n")
    theatre = stage(Say(text="ok"))
    files = [word for name in ("a.png", "b.pdf", "c.txt") for word in ("-f", str(tmp_path / name))]
    assert ask(capsys, theatre, *files, "-f", "https://example.com/d.jpg", "What?")[0] == 0
    parts = sent(theatre)["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["image_url", "file", "text", "image_url", "text"]
    assert parts[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert parts[1]["file"]["filename"] == "b.pdf"
    assert parts[2]["text"] == '<file name="c.txt">\nthe text\n</file>'
    assert parts[3]["image_url"]["url"] == "https://example.com/d.jpg"
    assert parts[4]["text"] == "What?"


def test_a_text_file_and_a_question_are_one_text(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "c.txt").write_text("the text")
    theatre = stage(Say(text="ok"))
    ask(capsys, theatre, "-f", str(tmp_path / "c.txt"), "What?")
    assert sent(theatre)["messages"][0]["content"] == '<file name="c.txt">\nthe text\n</file>\n\nWhat?'


def test_the_model_may_come_from_the_settings(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_MODEL", MODEL)
    theatre = stage(Say(text="ok"))
    assert main(["ask", "--no-stdin", "--base-url", theatre.url, "?"]) == 0
    assert capsys.readouterr().out == "ok\n"
    assert sent(theatre)["model"] == "staged"


# --- what goes wrong ------------------------------------------------------------------------------------------------

SSE = 'data: {{"choices":[{{"index":0,"delta":{{"content":"{}"}}}}]}}\n\n'


@pytest.mark.parametrize(
    ("scene", "code", "out", "told"),
    [
        (Fail(status=401, message="Incorrect API key provided: sk-abcdefghijk"), 3, "", "check the API key"),
        (Fail(status=404, message="no such model"), 6, "", "check the model name"),
        (Fail(status=429, message="slow down"), 4, "", "slow down"),
        (Fail(status=402, message="no credit"), 4, "", "no credit"),
        (Fail(status=503, message="busy"), 4, "", "busy"),
        (Fail(status=400, message="bad field"), 6, "", "bad field"),
        (Fail(status=400, message="blocked", kind="content_filter"), 8, "", "change the request"),
        (Garbage(), 6, "", "openai-compatible"),
        (Raw(text=SSE.format("Forty")), 5, "Forty\n", "before"),
        (Say(text="Forty-two and more", piece=5, cut_after=600), 5, None, ""),
        (
            Say(thinking="hm", stop="length", usage=Usage(1, 9, 8, None, 10)),
            7,
            "",
            "used up its tokens (8) while thinking",
        ),
        (Say(thinking="hm", stop="stop"), 7, "", "the model stopped after thinking"),
        (Say(refusal="I will not."), 8, "", "the model refused: I will not."),
        (Say(text="So", stop="content_filter"), 8, "So\n", "filter stopped"),
    ],
)
def test_each_failure_has_its_code_and_one_clear_line(
    scene: Any, code: int, out: str | None, told: str, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, printed, err = ask(capsys, stage(scene), "--retries", "0", "SECRET QUESTION")
    assert ended == code, err
    assert printed == out if out is not None else printed.endswith("\n")
    assert told in err
    assert err.startswith("asides: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "SECRET QUESTION" not in err
    assert "abcdefghijk" not in err


def test_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        code = main(["ask", "-m", MODEL, "--base-url", address, "--no-stdin", "--retries", "0", "?"])
    out, err = capsys.readouterr()
    assert (code, out) == (5, "")
    assert "connection refused" in err
    assert "base_url=" not in err, "options are named as the shell knows them"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["-m", "nobody:x", "?"], 2, "no provider is called 'nobody'"),
        (["-m", "gpt-5", "?"], 2, "a model without a provider"),
        (["-m", "groq:m", "?"], 3, "set GROQ_API_KEY"),
        (["--base-url", "http://127.0.0.1:9", "?"], 2, "no model is named"),
        (["-m", "groq:m"], 2, "there is nothing to ask"),
        (["-m", "groq:m", "--thinking", "hgh", "?"], 2, "thinking='hgh' is not known"),
        (["-m", "groq:m", "--extra", "[1]", "?"], 2, "has to be a JSON object"),
        (["-m", "groq:m", "--extra", "{", "?"], 2, "does not read as JSON"),
        (["-m", "groq:m", "--schema", "nowhere.json", "?"], 2, "cannot be read: No such file"),
        (["-m", "groq:m", "-f", "nowhere.png", "?"], 2, "cannot be read: No such file"),
        (["-m", "groq:m", "--retries", "many", "?"], 2, "invalid int value"),
        (["--nonsense", "?"], 2, "--nonsense"),
    ],
)
def test_what_is_wrong_on_this_side_is_said_before_anything_is_sent(
    arguments: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "--no-stdin", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.startswith("asides: ")


def test_without_a_model_the_keys_at_hand_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk_verysecretkey")
    assert main(["ask", "--no-stdin", "?"]) == 2
    err = capsys.readouterr().err
    assert "There are keys for groq." in err
    assert "local:tiny needs no key" in err
    assert "verysecret" not in err


def test_a_key_on_the_command_line_is_used_and_advised_against(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    theatre = stage(Say(text="ok"), key="verysecret")
    code, out, err = ask(capsys, theatre, "--api-key", "verysecret", "?")
    assert (code, out) == (0, "ok\n")
    assert "OPENAI_COMPATIBLE_API_KEY" in err
    assert "verysecret" not in err
    assert ask(capsys, theatre, "-q", "--api-key", "another", "?")[0] == 3


def test_json_tells_errors_too_with_what_came(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    theatre = stage(Raw(text=SSE.format("Forty")), Fail(status=429, message="slow down", retry_after=70))
    code, out, _ = ask(capsys, theatre, "--json", "--retries", "0", "?")
    told = json.loads(out)
    assert (code, told["text"], told["complete"], told["outcome"]) == (5, "Forty", False, None)
    assert told["error"]["type"] == "ConnectionLost"
    code, out, _ = ask(capsys, theatre, "--json", "--retries", "0", "?")
    error = json.loads(out)["error"]
    assert (code, error["type"], error["status"], error["retry_after"]) == (4, "RateLimited", 429, 70)
    assert main(["ask", "--json", "--no-stdin", "-m", "nobody:x", "?"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "UnknownProvider"


def test_a_bug_shows_no_traceback_unless_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("SECRET QUESTION")

    monkeypatch.setattr("asides.cli.ask.read_asked", break_down)
    assert main(["ask", "?"]) == 1
    assert capsys.readouterr().err == (
        "asides: unexpected RuntimeError: this is a bug of asides. ASIDES_DEBUG=1 shows where it happened.\n"
    )
    monkeypatch.setenv("ASIDES_DEBUG", "1")
    assert main(["ask", "?"]) == 1
    assert "Traceback" in capsys.readouterr().err


# --- ends -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_what_came_and_closes_the_connection(
    number: signal.Signals, code: int, stage: OpenStage
) -> None:
    theatre = stage(Say(text="one two three", piece=4, hang_after=500))
    with started("ask", *at(theatre), "?") as child:
        seen = read_some(child, b"one")
        child.send_signal(number)
        rest, err = child.communicate(timeout=10)
    assert child.returncode == code
    assert (seen + rest).decode().startswith("one")
    assert (seen + rest).endswith(b"\n")
    assert b"Traceback" not in err
    assert err == (b"asides: stopped; the answer is not whole.\n" if number == signal.SIGINT else b"")
    assert theatre.wait_until(lambda: theatre.closed_early == 1)


def test_a_reader_that_goes_away_ends_it_quietly(stage: OpenStage) -> None:
    theatre = stage(Say(text="word " * 2000, piece=5, pause=0.001))
    with started("ask", *at(theatre), "?") as child:
        read_some(child, b"word")
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        err = child.stderr.read()
        assert child.wait(10) == 141
    assert err == b""
    assert theatre.wait_until(lambda: theatre.closed_early == 1)
