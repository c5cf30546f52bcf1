"""`asides ask --each`: many questions over sockets, stopped and resumed."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from asides.dialects.dialect import ServedRequest
from asides.values.usage import Usage
from asides_stage.stage import Fail, Hang, OpenStage, Say, Scene, Stage
from tests.cli.children import MODEL, asides, at, at_terminal, here, piped, started


def last_text(request: ServedRequest) -> str:
    return request.prompt.messages[-1].text


def parrot(request: ServedRequest) -> Scene:
    text = last_text(request)
    if "fail" in text:
        return Fail(status=400, message="not this one")
    if "hang" in text:
        return Hang()
    return Say(text=f"re {text}", thinking="canary")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return tmp_path / "questions.jsonl"


def write(path: Path, *rows: Any) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def answers(path: Path) -> dict[int, Any]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["index"]: row for row in rows}


def texts(path: Path) -> dict[int, str]:
    return {index: row["text"] for index, row in answers(path).items()}


def test_an_answer_that_does_not_fit_the_schema_failed_and_is_asked_again(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path, tmp_path: Path
) -> None:
    server, out = stage(Say(text='{"n": "many"}'), Say(text='{"n": 42}')), tmp_path / "answers.jsonl"
    write(questions, "a")
    run = ["ask", *at(server), "--schema", "n int", "--each", str(questions), "-o", str(out)]
    code, _, err = here(capsys, *run)
    assert (code, err.partition(". The first error: ")[0]) == (9, "0 answered, 1 failed")
    row = answers(out)[0]
    assert (row["text"], row["output"], row["outcome"]) == ('{"n": "many"}', None, None)
    assert row["error"]["type"] == "InvalidOutput"
    assert here(capsys, *run)[0] == 0
    assert [row["output"] for row in answers(out).values()] == [{"n": 42}]


def test_every_question_gets_a_row_and_nothing_is_asked_twice(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path, tmp_path: Path
) -> None:
    server, out = stage(parrot), tmp_path / "answers.jsonl"
    write(questions, "a", {"prompt": "b", "id": "two", "expected": 4}, {"messages": [{"role": "user", "content": "c"}]})
    run = ["ask", *at(server), "--each", str(questions), "-o", str(out)]
    assert here(capsys, *run) == (0, "", "3 answered.\n")
    assert texts(out) == {0: "re a", 1: "re b", 2: "re c"}
    row = answers(out)[1]
    assert (row["id"], row["row"], row["usage"]["origin"], row["model"]) == (
        "two",
        {"expected": 4},
        "reported",
        "staged",
    )
    assert answers(out)[0]["id"] is None
    assert answers(out)[0]["response_id"]
    assert "canary" not in out.read_text()
    written = out.read_bytes()
    assert here(capsys, *run) == (0, "", "0 answered, 3 answered before.\n")
    assert (len(server.requests), out.read_bytes()) == (3, written)


def test_usage_is_one_line_for_all_questions(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path
) -> None:
    usage = Usage(input=10, output=5, thinking=2, total=15)
    write(questions, "a", "b")
    _, _, errors = here(
        capsys, "ask", *at(stage(lambda _: Say(text="x", usage=usage))), "--each", str(questions), "--usage"
    )
    assert errors == "2 answered.\ntokens: 20 in, 10 out (4 thinking), 30 total\n"


def test_a_changed_question_and_a_failed_one_are_asked_again(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path, tmp_path: Path
) -> None:
    server, out = stage(parrot), tmp_path / "answers.jsonl"
    write(questions, {"prompt": "a", "id": 1}, {"prompt": "fail", "id": 2}, {"prompt": "c", "id": 3})
    run = ["ask", *at(server), "--each", str(questions), "-o", str(out)]
    code, printed, err = here(capsys, *run)
    assert (code, printed) == (9, "")
    assert err.startswith("2 answered, 1 failed. The first error: openai-compatible answered 400")
    assert err.endswith("Run the same command again to ask the rest.\n")
    error = answers(out)[1]["error"]
    assert (error["type"], error["status"]) == ("BadRequest", 400)
    write(questions, {"prompt": "a anew", "id": 1}, {"prompt": "good now", "id": 2}, {"prompt": "c", "id": 3})
    assert here(capsys, *run) == (0, "", "2 answered, 1 answered before.\n")
    assert texts(out) == {0: "re a anew", 1: "re good now", 2: "re c"}
    assert len(server.requests) == 5


def test_rows_on_stdout_are_json_lines_and_thinking_is_there_when_asked_for(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path
) -> None:
    write(questions, "a")
    run = ["ask", *at(stage(parrot)), "-q", "--each", str(questions)]
    code, out, err = here(capsys, *run)
    assert (code, json.loads(out)["text"], "thinking" in json.loads(out), err) == (0, "re a", False, "")
    assert json.loads(here(capsys, *run, "-t")[1])["thinking"] == "canary"


def test_questions_come_from_a_pipe_and_a_bad_row_ends_it_behind_the_others(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(parrot)
    run = ["ask", *at(server), "-q", "--each", "-"]
    done = piped(capsys, monkeypatch, '"a"\n"b"\n', *run)
    assert sorted(json.loads(line)["text"] for line in done.out.splitlines()) == ["re a", "re b"]
    broken = piped(capsys, monkeypatch, '"a"\nnonsense\n', *run)
    assert (broken.code, json.loads(broken.out)["text"]) == (2, "re a")
    assert "line 2 is not JSON" in broken.err


def test_a_row_has_its_own_model_and_options(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path
) -> None:
    server = stage(parrot)
    write(
        questions,
        {"prompt": "a", "system": "S", "model": "openai-compatible:other", "max_tokens": 7},
        {"prompt": "b", "temperature": 0.5},
    )
    code, _, _ = here(capsys, "ask", *at(server), "--system", "usual", "--each", str(questions), "--concurrency", "1")
    assert code == 0
    first, second = (request.json for request in server.requests)
    assert (first["model"], first["messages"][0]["content"], first["max_tokens"]) == ("other", "S", 7)
    assert (second["model"], second["messages"][0]["content"], second["temperature"]) == ("staged", "usual", 0.5)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--each", "Q", "words"], "without the words of a question"),
        (["--each", "Q", "-f", "Q"], "without -f"),
        (["--each", "Q", "--tools", "json"], "without --tools"),
        (["--each", "Q", "--mcp", "cat"], "without --mcp"),
        (["--each", "Q", "--confirm"], "without --confirm"),
        (["--each", "Q", "--max-turns", "3"], "without --max-turns"),
        (["--each", "Q", "--conversation", "x"], "without --conversation"),
        (["--each", "Q", "-c"], "without --continue"),
        (["--each", "Q", "--concurrency", "0"], "concurrency must be a number"),
        (["--each", "Q", "--thinking", "much"], "thinking='much' is not known"),
        (["--each", "nowhere.jsonl"], "cannot be read"),
        (["--each", "Q", "-o", "Q"], "is the file of the questions"),
        (["?", "-o", "x.jsonl"], "belong to --each"),
        (["?", "--concurrency", "3"], "belong to --each"),
    ],
)
def test_what_is_wrong_with_all_sends_nothing(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path, arguments: list[str], told: str
) -> None:
    write(questions, "a")
    server = stage(parrot)
    run = [str(questions) if word == "Q" else word for word in arguments]
    code, out, err = here(capsys, "ask", *at(server), "--no-stdin", *run)
    assert (code, out, server.requests) == (2, "", [])
    assert told in err


def test_a_bad_row_of_a_file_sends_nothing(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path
) -> None:
    write(questions, "a", {"promt": "b"})
    server = stage(parrot)
    code, _, err = here(capsys, "ask", *at(server), "--each", str(questions))
    assert (code, server.requests) == (2, [])
    assert "line 2 has a field 'promt'; did you mean prompt?" in err


def test_a_key_that_is_not_accepted_stops_it(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path, tmp_path: Path
) -> None:
    server, out = stage(Fail(status=401, message="wrong key")), tmp_path / "answers.jsonl"
    write(questions, *(f"question {number}" for number in range(50)))
    code, _, err = here(capsys, "ask", *at(server), "--each", str(questions), "-o", str(out), "--concurrency", "2")
    assert code == 3
    assert "wrong key" in err
    assert len(server.requests) < 6


def test_several_models_serve_it(stage: OpenStage, capsys: pytest.CaptureFixture[str], questions: Path) -> None:
    def answer(request: ServedRequest) -> Scene:
        return Fail(status=503) if request.model == "staged" else Say(text="here")

    write(questions, "a")
    server = stage(answer)
    run = ["ask", *at(server), "--retries", "0", "--fallback", "openai-compatible:other", "--each", str(questions)]
    code, out, err = here(capsys, *run)
    assert (code, json.loads(out)["text"]) == (0, "here")
    assert "warning: fell_back: openai-compatible:staged failed with Overloaded (503)" in err


def test_fallback_serves_one_question_and_explain_lists_it(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: ServedRequest) -> Scene:
        return Fail(status=503) if request.model == "staged" else Say(text="here", thinking="canary")

    more = ["--fallback", "openai-compatible:other", "--retries", "0", "--no-stdin", "?"]
    server = stage(answer)
    done = here(capsys, "ask", *at(server), *more)
    assert (done.code, done.out) == (0, "here\n")
    shown = here(capsys, "explain", *at(server), *more)
    assert "If it fails, these are asked: openai-compatible:other." in shown.out


def test_the_thinking_of_a_fallback_is_shown_only_if_the_settings_allow_it(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: ServedRequest) -> Scene:
        return Fail(status=503) if request.model == "staged" else Say(text="here", thinking="canary")

    monkeypatch.setenv("ASIDES_REASONING_ALLOWED_MODELS", "*staged")
    run = [
        "ask",
        *at(stage(answer)),
        "--fallback",
        "openai-compatible/other",
        "--retries",
        "0",
        "--no-stdin",
        "-t",
        "?",
    ]
    done = here(capsys, *run)
    assert (done.out, "canary" in done.err) == ("here\n", False)


def test_the_thinking_of_a_row_is_written_only_if_its_model_is_allowed(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, questions: Path
) -> None:
    monkeypatch.setenv("ASIDES_REASONING_ALLOWED_MODELS", "*staged")
    write(questions, "a", {"prompt": "b", "model": "openai-compatible:other"})
    done = here(capsys, "ask", *at(stage(parrot)), "-t", "--each", str(questions))
    rows = {row["index"]: row.get("thinking") for row in map(json.loads, done.out.splitlines())}
    assert rows == {0: "canary", 1: None}


def test_nothing_is_written_when_no_question_can_be_asked(
    capsys: pytest.CaptureFixture[str], questions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "answers.jsonl"
    write(questions, "a")
    code, _, err = here(capsys, "ask", "-m", "groq:m", "--each", str(questions), "-o", str(out))
    assert (code, out.exists()) == (3, False)
    assert "needs an API key" in err


def test_ctrl_c_leaves_whole_rows_and_the_same_command_goes_on(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    write(questions, "a", "b", "hang", "c", "d")
    with Stage(parrot) as server:
        run = ["ask", *at(server), "--each", str(questions), "-o", str(out), "--concurrency", "2"]
        with started(*run) as child:
            assert server.wait_until(lambda: len(server.requests) == 5, 20)
            assert child.stderr is not None
            while out.read_text().count("\n") < 4:
                time.sleep(0.01)
            child.send_signal(signal.SIGINT)
            err = child.stderr.read().decode()
            assert child.wait(10) == 130
    assert err == ("asides: stopped; 4 answered, 1 not asked. Run the same command again to ask the rest.\n")
    assert texts(out) == {0: "re a", 1: "re b", 3: "re c", 4: "re d"}
    with Stage(Say(text="at last")) as server:
        done = asides("ask", "-m", MODEL, "--base-url", server.url, "--each", str(questions), "-o", str(out))
        assert (done.code, done.err, len(server.requests)) == (0, "1 answered, 4 answered before.\n", 1)
    assert texts(out)[2] == "at last"


def test_a_killed_run_is_repaired(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    write(questions, "a", "b", "hang")
    with Stage(parrot) as server:
        with started("ask", *at(server), "--each", str(questions), "-o", str(out)) as child:
            assert server.wait_until(lambda: len(server.requests) == 3, 20)
            while not out.exists() or out.read_text().count("\n") < 2:
                time.sleep(0.01)
            child.kill()
            child.wait()
        with out.open("ab") as file:
            file.write(b'{"index": 2, "id": null, "fing')
    with Stage(Say(text="at last")) as server:
        done = asides("ask", *at(server), "--each", str(questions), "-o", str(out))
        assert (done.code, len(server.requests)) == (0, 1)
    assert texts(out) == {0: "re a", 1: "re b", 2: "at last"}


def test_a_terminal_shows_how_far_it_is(questions: Path, tmp_path: Path) -> None:
    write(questions, "a", "hang")
    out = tmp_path / "answers.jsonl"
    with (
        Stage(parrot) as server,
        at_terminal("ask", *at(server), "--each", str(questions), "-o", str(out)) as keyboard,
    ):
        keyboard.wait_for("1/2 questions, 1 open")
        keyboard.interrupt_for("stopped; 1 answered, 1 not asked.")


def test_each_question_goes_into_the_prompt_of_a_template(
    stage: OpenStage,
    capsys: pytest.CaptureFixture[str],
    questions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "named.toml").write_text('[templates.review]\nprompt = "Review: {input}"\n')
    monkeypatch.setenv("ASIDES_CONFIG", str(tmp_path / "named.toml"))
    server = stage(parrot)
    write(questions, "a", "b")
    assert here(capsys, "ask", *at(server), "--each", str(questions), "-T", "review").code == 0
    assert sorted(request.json["messages"][-1]["content"] for request in server.requests) == ["Review: a", "Review: b"]
