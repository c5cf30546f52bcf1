"""`asides ask`, mostly as a separate process that asks a stage over a socket."""

from __future__ import annotations

import json
import socket
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from asides import explain
from asides.cli.app import main
from asides.cli.request import CallConfig
from asides.options import Options
from asides.providers.find import find_target
from asides.settings import load_settings
from asides.values.parts import ToolCall
from asides.values.usage import Usage
from asides_stage.stage import Fail, Garbage, OpenStage, Raw, Say
from tests.cli.children import MODEL, asides, ask, at, at_terminal, run_process


def test_the_answer_is_on_stdout_alone_and_stderr_is_empty(stage: OpenStage) -> None:
    done = asides("ask", *at(stage(Say(thinking="canary", text="Forty-two."))), "What", "is", "it?")
    assert done == (0, "Forty-two.\n", "")


def test_an_answer_that_ends_its_line_gets_no_second_end(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, stage(Say(text="a\nb\n")), "?") == (0, "a\nb\n", "")


def test_thinking_is_shown_on_stderr_without_colours_in_a_pipe(stage: OpenStage) -> None:
    done = asides("ask", *at(stage(Say(thinking="plan A", text="42"))), "-t", "?")
    assert done == (0, "42\n", "plan A\n")


def test_commentary_is_on_stderr_alone_and_in_a_field_of_its_own(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = Say(thinking="canary", commentary="I look it up.", text="42")
    assert asides("ask", *at(stage(scene)), "?") == (0, "42\n", "I look it up.\n")
    assert ask(capsys, stage(scene), "-q", "?") == (0, "42\n", "")
    code, out, err = ask(capsys, stage(scene), "--json", "?")
    fields = json.loads(out)
    assert (code, fields["text"], fields["commentary"], err) == (0, "42", "I look it up.", "")


def test_commentary_alone_is_no_answer(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, stage(Say(commentary="I look it up.")), "?")
    assert (code, out) == (7, "")
    assert "no answer: the model said what it was doing and stopped" in err


def test_json_has_separate_fields(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    call = ToolCall("c1", "look", {"at": 1})
    scene = Say(
        thinking="plan", text="42", tool_calls=(call,), usage=Usage(3, 9, 5, 1, 12, cost=Decimal("0.0042")), model="m-1"
    )
    code, out, err = ask(capsys, stage(scene), "--json", "?")
    fields = json.loads(out)
    assert fields.pop("elapsed").keys() == {"thinking", "first_word", "total"}
    assert fields.pop("timing").keys() == {"first_event", "first_thought", "first_word", "thinking", "total"}
    assert fields.pop("id")
    assert fields == {
        "text": "42",
        "commentary": "",
        "thinking": "plan",
        "thinking_type": "raw",
        "thinking_source": "field",
        "tool_calls": [{"id": "c1", "name": "look", "arguments": {"at": 1}, "raw_arguments": None}],
        "refusal": None,
        "usage": {
            "input": 3,
            "output": 9,
            "thinking": 5,
            "cached": 1,
            "total": 12,
            "origin": "reported",
            "cache_written": None,
            "cache_written_hour": None,
            "tool_requests": None,
            "tier": None,
            "cost": 0.0042,
        },
        "cost": {"amount": 0.0042, "currency": "USD", "thinking": None, "origin": "reported"},
        "outcome": "tool_calls",
        "stop": {"reason": "tool_calls", "raw": "tool_calls"},
        "model": "m-1",
        "complete": True,
        "warnings": [],
    }
    assert out.count("\n") == 1
    assert (code, err) == (0, "")


def test_json_has_the_checked_value_of_a_schema(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}', "utf-8")
    server = stage(Say(text='{"n": 42}'), Say(text='{"n": "many"}'))
    outputs = [json.loads(ask(capsys, server, "--schema", str(schema), "--json", "?")[1])["output"] for _ in range(2)]
    assert outputs == [{"n": 42}, None]


@pytest.mark.parametrize("form", [[], ["--no-stream"], ["--json"]])
def test_an_answer_that_does_not_fit_the_schema_is_printed_and_told(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    server = stage(Say(text='{"n": 42}'), Say(text='{"n": "many"}'), Say(text="forty-two"))
    fits, wrong, no_json = (ask(capsys, server, "--schema", "n int", *form, "?") for _ in range(3))
    assert (fits[0], wrong[0], no_json[0]) == (0, 7, 7)
    assert "many" in wrong[1]  # The answer is there all the same.
    assert wrong[2].startswith("asides: the answer does not fit --schema ($.n: ")
    assert "Ask again" in wrong[2]
    assert no_json[2].startswith("asides: the answer does not fit --schema (")
    assert fits[2] == ""


def test_whole_and_streamed_print_the_same(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(Say(thinking="plan", text="forty-two"))
    assert ask(capsys, server, "-t", "?") == ask(capsys, server, "-t", "--no-stream", "?")
    assert [request.json.get("stream", False) for request in server.requests] == [True, False]


def test_warnings_are_lines_on_stderr_and_quiet_leaves_them_out(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(text="42"))
    code, out, err = ask(capsys, server, "--thinking", "high", "?")
    assert (code, out) == (0, "42\n")
    assert err.startswith("warning: unknown_model: ")
    assert err.count("\n") == 1
    assert ask(capsys, server, "--thinking", "high", "-q", "?") == (0, "42\n", "")


def test_an_incomplete_answer_has_a_note_though_it_is_no_failure(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(text="half", stop="length"), Say(tool_calls=(ToolCall("c1", "look", {}),)))
    note = "the answer was cut off at the token limit; raise --max-tokens.\n"
    assert ask(capsys, server, "?") == (0, "half\n", note)
    assert ask(capsys, server, "?") == (0, "", "the model called tools (look); --json has the calls.\n")


SSE = 'data: {{"choices":[{{"index":0,"delta":{{"content":"{}"}}}}]}}\n\n'


@pytest.mark.parametrize(
    ("scene", "code", "out", "message"),
    [
        (Fail(status=401, message="Incorrect API key provided: sk-abcdefghijk"), 3, "", "Check the API key"),
        (Fail(status=404, message="no such model"), 6, "", "Check the model name"),
        (Fail(status=429, message="slow down"), 4, "", "slow down"),
        (Fail(status=402, message="no credit"), 4, "", "no credit"),
        (Fail(status=503, message="busy"), 4, "", "busy"),
        (Fail(status=400, message="bad field"), 6, "", "bad field"),
        (Fail(status=400, message="blocked", kind="content_filter"), 8, "", "Change the request"),
        (Garbage(), 6, "", "openai-compatible"),
        (Raw(text=SSE.format("Forty")), 5, "Forty\n", "before"),
        (Say(text="Forty-two and more", piece=5, cut_after=600), 5, None, ""),
        (
            Say(thinking="hm", stop="length", usage=Usage(1, 9, 8, None, 10)),
            7,
            "",
            "used up its tokens (8) while thinking; raise --max-tokens or ask for less --thinking, or add --recover.",
        ),
        (Say(thinking="hm", stop="stop"), 7, "", "ask again, or ask for less --thinking, or add --recover."),
        (Say(refusal="I will not."), 8, "", "the model refused: I will not."),
        (Say(refusal="No.\nasides: \x1b[2Jdone\u202e"), 8, "", "the model refused: No. asides: \\x1b[2Jdone\\u202e"),
        (Say(text="So", stop="content_filter"), 8, "So\n", "filter stopped"),
    ],
)
def test_each_failure_has_its_code_and_one_clear_line(
    scene: Any, code: int, out: str | None, message: str, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, printed, err = ask(capsys, stage(scene), "--retries", "0", "SECRET QUESTION")
    assert ended == code, err
    assert printed == out if out is not None else printed.endswith("\n")
    assert message in err
    assert err.startswith("asides: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "SECRET QUESTION" not in err
    assert "abcdefghijk" not in err


def test_no_server_listens_at_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        code = main(["ask", "-m", MODEL, "--base-url", address, "--no-stdin", "--retries", "0", "?"])
    out, err = capsys.readouterr()
    assert (code, out) == (5, "")
    assert "connection refused" in err
    assert "base_url=" not in err, "options are named as the shell knows them"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-m", "nobody:x", "?"], 2, "unknown provider 'nobody'"),
        (["-m", "gpt-5", "?"], 2, "a model without a provider"),
        (["-m", "groq:m", "?"], 3, "set GROQ_API_KEY"),
        (["--base-url", "http://127.0.0.1:9", "?"], 2, "no model is named"),
        (["-m", "groq:m"], 2, "there is nothing to ask"),
        (["-m", "groq:m", "--thinking", "hgh", "?"], 2, "thinking='hgh' is not known"),
        (["-m", "groq:m", "--extra", "[1]", "?"], 2, "has to be a JSON object"),
        (["-m", "groq:m", "--extra", "{", "?"], 2, "is not valid JSON"),
        (["-m", "groq:m", "--schema", "nowhere.json", "?"], 2, "cannot be read: No such file"),
        (["-m", "groq:m", "-f", "nowhere.png", "?"], 2, "cannot be read: No such file"),
        (["-m", "groq:m", "--retries", "many", "?"], 2, "invalid int value"),
        (["--nonsense", "?"], 2, "--nonsense"),
    ],
)
def test_wrong_arguments_are_reported_before_anything_is_sent(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "--no-stdin", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("asides: ")


def test_json_has_the_error_and_what_arrived_before_it(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(Raw(text=SSE.format("Forty")), Fail(status=429, message="slow down", retry_after=70))
    code, out, _ = ask(capsys, server, "--json", "--retries", "0", "?")
    fields = json.loads(out)
    assert (code, fields["text"], fields["complete"], fields["outcome"]) == (5, "Forty", False, None)
    assert fields["error"]["type"] == "ConnectionLost"
    code, out, _ = ask(capsys, server, "--json", "--retries", "0", "?")
    error = json.loads(out)["error"]
    assert (code, error["type"], error["status"], error["retry_after"]) == (4, "RateLimited", 429, 70)
    assert main(["ask", "--json", "--no-stdin", "-m", "nobody:x", "?"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "UnknownProvider"


LOOK = Say(thinking="hm", text="Let me look.", tool_calls=(ToolCall("call_1", "look", {"at": "the sky"}),))


def test_the_json_of_a_run_without_an_end_has_its_steps(stage: OpenStage, tools: Path) -> None:
    done = asides("ask", *at(stage(LOOK)), "--tools", str(tools), "--max-turns", "2", "--json", "?")
    fields = json.loads(done.out)
    assert (done.code, fields["outcome"], fields["error"]["type"]) == (7, None, "TooManyTurns")
    assert [step["results"][0]["text"] for step in fields["steps"]] == ["blue", "blue"]
    assert fields["usage"]["output"] == sum(step["usage"]["output"] for step in fields["steps"])
    assert (fields["model"], fields["text"]) == ("staged", "Let me look.")
    assert "Raise --max-turns." in done.err
    assert "Limits" not in done.err


def test_the_json_of_a_run_that_fails_later_has_the_steps_before(stage: OpenStage, tools: Path) -> None:
    server = stage(LOOK, Fail(status=400))
    done = asides("ask", *at(server), "--tools", str(tools), "--retries", "0", "--json", "?")
    fields = json.loads(done.out)
    assert (done.code, fields["outcome"], fields["error"]["status"]) == (6, None, 400)
    assert [call["name"] for call in fields["steps"][0]["tool_calls"]] == ["look"]


def test_the_json_of_a_run_that_fails_at_once_has_only_an_error(stage: OpenStage, tools: Path) -> None:
    done = asides("ask", *at(stage(Fail(status=400))), "--tools", str(tools), "--retries", "0", "--json", "?")
    fields = json.loads(done.out)
    assert (done.code, fields["text"], fields["error"]["status"]) == (6, "", 400)
    assert not fields.get("steps")


def test_the_json_of_a_run_that_was_stopped_has_its_steps(stage: OpenStage, tools: Path, tmp_path: Path) -> None:
    nap = Say(tool_calls=(ToolCall("call_2", "nap", {"hours": 8}),))
    out = tmp_path / "out.json"
    with (
        out.open("wb") as file,
        at_terminal(
            "ask", *at(stage(LOOK, nap)), "--tools", str(tools), "--json", "?", stdout=file.fileno()
        ) as keyboard,
    ):
        keyboard.wait_for("nap(hours=8)")
        code = keyboard.interrupt_to_end()
    fields = json.loads(out.read_text(encoding="utf-8"))
    assert (code, fields["error"]["type"]) == (130, "Interrupted")
    assert fields["steps"][0]["results"][0]["text"] == "blue"


def test_recover_asks_again_and_says_so(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    starved, answer = Say(thinking="plan A", stop="length"), Say(thinking="plan B", text="42")
    theatre = stage(starved, answer, starved)
    code, out, err = ask(capsys, theatre, "-t", "--recover", "--thinking", "high", "--max-tokens", "50", "?")
    assert (code, out) == (0, "42\n")
    assert err.index("plan A") < err.index("plan B") < err.index("asked again with less thinking")
    assert [request.json["reasoning_effort"] for request in theatre.requests] == ["high", "medium"]
    assert ask(capsys, theatre, "--max-tokens", "50", "?").out == ""


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("First:\n\n```sh\nls\n```\n\nBetter:\n\n```python\nprint(1)\n```\nDone.", "print(1)\n"),
        ("~~~\na\n```\nb\n~~~\n", "a\n```\nb\n"),
        ("Cut off:\n```\nhalf\n", "half\n"),
        ("```\na\n```\n" * 3 + "````\nb\n```\n````", "b\n```\n"),
        ("no code", "no code\n"),
    ],
)
def test_extract_prints_the_code_alone(
    text: str, printed: str, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(capsys, stage(Say(text=text)), "-x", "-q", "?") == (0, printed, "")


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        ("openai:gpt-5", "reasoning", {"summary": "auto"}),
        ("google:gemini-3.6-pro", "generationConfig", {"thinkingConfig": {"includeThoughts": True}}),
        ("anthropic:claude-sonnet-5-5", "thinking", {"type": "adaptive", "display": "summarized"}),
    ],
)
def test_showing_thinking_asks_the_provider_to_show_it(model: str, field: str, value: object) -> None:
    """Nothing else changes: the amount of thinking stays the provider's default."""
    for shown in ("true", "false"):
        settings = load_settings({"ASIDES_SHOW_REASONING_THINKING": shown})
        options = CallConfig(find_target(model), Options(), settings).call_options
        body = explain(model, "?", settings=settings, **options).body
        assert body.get(field) == (value if shown == "true" else None)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("openai-chat:gpt-4o", "(gpt-4o does not think)\n"),
        ("deepseek:deepseek-chat", "(deepseek-chat thinks only when asked; add --thinking low)\n"),
        ("openai-compatible:unheard-of", ""),
        (
            "mistral:mistral-large",
            "(no thinking came, and it is not known whether mistral-large thinks unasked; add --thinking low)\n",
        ),
    ],
)
def test_why_no_thinking_is_shown_is_said_in_one_line(
    model: str, reason: str, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "ask",
        "-m",
        model,
        "--base-url",
        stage(Say(text="42")).url,
        "--api-key",
        "key",
        "--no-stdin",
        "-t",
        "?",
    ]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out == "42\n"
    assert "".join(line for line in err.splitlines(keepends=True) if line.startswith("(")) == reason


def test_quiet_prints_neither_the_warning_of_the_stage_nor_notes_on_thinking() -> None:
    for model in ("openai-chat:gpt-5", "openai:gpt-4.1"):
        loud = run_process("ask", "-t", "-m", model, "--no-stdin", "What is 2 + 3?", env={"ASIDES_STAGE": "1"})
        assert "ASIDES_STAGE is set" in loud.err
        assert len(loud.err.splitlines()) == 2, loud.err
        quiet = run_process("ask", "-q", "-t", "-m", model, "--no-stdin", "What is 2 + 3?", env={"ASIDES_STAGE": "1"})
        assert (quiet.code, quiet.err) == (0, "")
        assert quiet.out == loud.out


def test_extract_without_code_ends_the_line_and_refuses_json(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(capsys, stage(Say(text="no code")), "-x", "?").out == "no code\n"
    both = ask(capsys, stage(), "-x", "--json", "?")
    assert both.code == 2
    assert "-x" in both.err
