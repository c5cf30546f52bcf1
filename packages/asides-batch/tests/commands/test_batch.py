"""`asides batch` in this process and at a terminal. Killed and shared runs are in test_live_runner.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides.dialects.dialect import ServedRequest
from asides_batch.vendor import vendor_runner
from asides_stage import BatchScript
from asides_stage.stage import Fail, OpenStage, Say, Scene, Stage
from tests.batch.vendor.vendor_jobs import QUICK
from tests.cli.children import at, at_terminal, here, piped


class Parrot:
    """Answers with the question, or fails where it is told to."""

    def __init__(self) -> None:
        self.fails = False
        self.asked: list[str] = []

    def __call__(self, request: ServedRequest) -> Scene:
        text = request.prompt.messages[-1].text
        self.asked.append(text)
        return Fail(status=400) if self.fails and "fail" in text else Say(text=f"re {text}", thinking="canary")


@pytest.fixture
def parrot() -> Parrot:
    return Parrot()


@pytest.fixture
def server(stage: OpenStage, parrot: Parrot) -> Stage:
    return stage(parrot)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in.jsonl"
    path.write_text('"a"\n{"id": "x", "prompt": "fail", "mine": 1}\n"a"\n', encoding="utf-8")
    return path


def read(path: str = "out.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


@pytest.mark.usefixtures("rows")
def test_a_batch_is_run_looked_at_and_resumed(
    capsys: pytest.CaptureFixture[str], server: Stage, parrot: Parrot
) -> None:
    parrot.fails = True
    run = ["batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server)]
    code, out, err = here(capsys, *run)
    assert (code, out) == (9, "")
    assert err.startswith("1 of 2 requests answered, for 3 rows, 1 failed, ")
    assert "The first error: BadRequest: " in err
    assert err.endswith("Run `asides batch resume out.jsonl` to ask these again.\n")
    code, out, _ = here(capsys, "batch", "status", "out.jsonl", "--json")
    status = json.loads(out)
    assert (status["state"], status["rows"], status["done"], status["failed"]) == ("finished", 3, 1, 1)
    parrot.fails = False
    code, _, err = here(capsys, "batch", "resume", "out.jsonl")
    assert (code, err.partition(", ")[0]) == (0, "2 of 2 requests answered")
    assert sorted(parrot.asked) == ["a", "fail", "fail"]
    assert [(row["id"], row["text"], row.get("row")) for row in read()] == [
        (None, "re a", None),
        ("x", "re fail", {"mine": 1}),
        (None, "re a", None),
    ]
    code, out, _ = here(capsys, "batch", "status")
    assert "out.jsonl: finished, 2 of 2 requests answered, for 3 rows" in out
    assert "canary" not in Path("out.jsonl").read_text(encoding="utf-8")


@pytest.mark.usefixtures("rows")
def test_status_lists_the_batches_of_the_folder_and_of_the_database(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, server: Stage, postgres_url: str
) -> None:
    here(capsys, "batch", "run", "in.jsonl", "-o", "beside.jsonl", *at(server))
    monkeypatch.setenv("ASIDES_STORE", postgres_url)
    assert here(capsys, "batch", "status", "--ledger", postgres_url, "-q") == (0, "", "")
    here(capsys, "batch", "run", "in.jsonl", "-o", "shared.jsonl", *at(server))
    code, out, err = here(capsys, "batch", "status", "--json")
    assert (code, err) == (0, "")
    assert [Path(status["output"]).name for status in json.loads(out)] == ["beside.jsonl", "shared.jsonl"]
    code, out, _ = here(capsys, "batch", "status", "--ledger", postgres_url)
    assert (code, "beside.jsonl" in out, "shared.jsonl: finished, 2 of 2" in out) == (0, False, True)
    monkeypatch.setenv("ASIDES_STORE", "postgresql://me:hunter2@127.0.0.1:1/none")
    code, out, err = here(capsys, "batch", "status")
    assert (code, "beside.jsonl: finished" in out) == (0, True)
    assert err.startswith("warning: ")
    assert "hunter2" not in err


@pytest.mark.usefixtures("rows")
def test_resume_goes_the_way_of_the_ledger_or_says_so(
    capsys: pytest.CaptureFixture[str], server: Stage, parrot: Parrot
) -> None:
    parrot.fails = True
    here(capsys, "batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server))
    code, out, err = here(capsys, "batch", "resume", "out.jsonl", "--via", "vendor")
    assert (code, out) == (2, "")
    assert "out.jsonl is via live, and resume continues the same way, not via vendor. Leave out --via" in err
    parrot.fails = False
    assert here(capsys, "batch", "resume", "out.jsonl", "--via", "live").code == 0


@pytest.mark.usefixtures("rows")
def test_the_thinking_is_kept_or_not_as_the_help_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, server: Stage
) -> None:
    _, out, _ = here(capsys, "batch", "--help")
    words = " ".join(out.split())
    assert "--show-thinking keep the thinking, in the ledger and in the output" in words
    assert "--hide-thinking do not keep the thinking, whatever the settings say" in words
    monkeypatch.setenv("ASIDES_KEEP_THINKING", "true")
    for option, kept in (("-t", "canary"), ("--hide-thinking", None)):
        here(capsys, "batch", "run", "in.jsonl", "-o", f"out{option}.jsonl", option, *at(server))
        assert read(f"out{option}.jsonl")[0].get("thinking") == kept


@pytest.mark.usefixtures("rows")
def test_a_dry_run_sends_nothing_and_names_what_is_wrong(
    capsys: pytest.CaptureFixture[str], server: Stage, parrot: Parrot
) -> None:
    code, out, err = here(capsys, "batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server), "--dry-run")
    assert (code, err) == (0, "")
    assert out.startswith("rows       3, 2 different requests\n")
    assert out.endswith("Nothing was sent.\n")
    with Path("in.jsonl").open("a", encoding="utf-8") as file:
        file.write("nonsense\n")
    code, out, err = here(capsys, "batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server), "--dry-run")
    assert (code, "in.jsonl, line 4 is not JSON" in err) == (2, True)
    code, out, _ = here(capsys, "batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server), "--dry-run", "--json")
    assert (code, json.loads(out)["failed"]) == (2, 1)
    assert parrot.asked == []
    assert sorted(path.name for path in Path().iterdir()) == ["in.jsonl"]


def test_standard_input_options_and_thinking(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, server: Stage, rows: Path
) -> None:
    options = ["-t", "-s", "Be brief.", "--max-tokens", "9", "--json", "-q"]
    done = piped(capsys, monkeypatch, rows.read_bytes(), "batch", "run", "-", "-o", "out.jsonl", *at(server), *options)
    assert (done.code, json.loads(done.out)["done"], done.err) == (0, 2, "")
    assert read()[0]["thinking"] == "canary"
    body = server.requests[0].json
    assert (body["max_tokens"], body["messages"][0]["content"]) == (9, "Be brief.")


@pytest.mark.usefixtures("rows")
def test_cancel_and_changed_rows_are_told(capsys: pytest.CaptureFixture[str], server: Stage, parrot: Parrot) -> None:
    parrot.fails = True
    run = ["batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server)]
    here(capsys, *run)
    code, out, err = here(capsys, "batch", "cancel", "out.jsonl")
    assert (code, out) == (0, "")
    assert err.startswith("cancelled; ")
    Path("in.jsonl").write_text('"a"\n"b"\n', encoding="utf-8")
    code, _, err = here(capsys, *run)
    assert code == 0
    assert err.startswith("note: the rows or the options are not those of the last run: 1 of 2 requests have an answer")
    assert sorted(parrot.asked) == ["a", "b", "fail"]
    code, _, err = here(capsys, *run, "-s", "Other.")
    assert (code, "with other settings (system)" in err) == (2, True)
    code, _, err = here(capsys, *run, "-s", "Other.", "--replace")
    assert (code, len(parrot.asked)) == (0, 5)


@pytest.mark.usefixtures("rows")
def test_a_finished_batch_is_not_cancelled(capsys: pytest.CaptureFixture[str], server: Stage) -> None:
    Path("in.jsonl").write_text('"a"\n', encoding="utf-8")
    here(capsys, "batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server))
    code, _, err = here(capsys, "batch", "cancel", "out.jsonl")
    assert (code, err) == (0, "nothing to cancel: every request has an answer.\n")
    assert "out.jsonl: finished, 1 of 1" in here(capsys, "batch", "status", "out.jsonl").out


@pytest.mark.usefixtures("rows")
def test_a_batch_with_a_name_is_found_by_it(capsys: pytest.CaptureFixture[str], server: Stage) -> None:
    here(capsys, "batch", "run", "in.jsonl", "-o", "out.jsonl", "--name", "mine", *at(server))
    here(capsys, "batch", "run", "in.jsonl", "-o", "more.jsonl", "--ledger", "out.jsonl.ledger", *at(server))
    all_lines = here(capsys, "batch", "status", "--ledger", "out.jsonl.ledger").out
    assert all(line in all_lines for line in ("out.jsonl: finished, 2 of 2", ", via live, --name mine\n"))
    assert "more.jsonl: finished" in all_lines
    one = here(capsys, "batch", "status", "--ledger", "out.jsonl.ledger", "--name", "mine").out
    assert ("--name mine" in one, "more.jsonl" in one) == (True, False)
    code, _, err = here(capsys, "batch", "status", "--name", "another")
    assert (code, "no batch has the name 'another'" in err) == (2, True)
    code, _, err = here(capsys, "batch", "resume", "out.jsonl", *at(server))
    assert code == 2
    assert "there is no batch for out.jsonl in the ledger out.jsonl.ledger. Name it: --name" in err
    assert "'mine'" in err


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["run"], "takes the file of the questions"),
        (["run", "in.jsonl"], "needs -o FILE"),
        (["run", "in.jsonl", "-o", "-"], "-o names a file"),
        (["run", "none.jsonl", "-o", "o"], "none.jsonl cannot be read"),
        (["run", "in.jsonl", "-o", "o", "-f", "x.png"], "without -f"),
        (["run", "in.jsonl", "-o", "o", "--max-cost", "much"], "max_cost is an amount"),
        (["resume"], "takes the output of the batch"),
        (["resume", "none.jsonl"], "there is no batch for none.jsonl"),
        (["cancel", "none.jsonl"], "there is no batch for none.jsonl"),
        (["status"], "no batch has its ledger in this folder"),
        (["status", "--ledger", "none.ledger"], "there is no ledger none.ledger"),
        (["status", "none.jsonl", "--dry-run"], "--dry-run belongs to"),
        (["resume", "a", "-o", "b"], "once, without -o"),
    ],
)
def test_wrong_usage_is_told(
    capsys: pytest.CaptureFixture[str], server: Stage, arguments: list[str], problem: str
) -> None:
    code, out, err = here(capsys, "batch", *arguments, *at(server))
    assert (code, out) == (2, "")
    assert problem in err
    assert sorted(path.name for path in Path().iterdir()) == ["in.jsonl"]


def test_a_password_is_not_in_the_advice(capsys: pytest.CaptureFixture[str], rows: Path, server: Stage) -> None:
    url = "postgresql://me:hunter2@127.0.0.1:1/none"
    code, out, err = here(capsys, "batch", "run", str(rows), "-o", "out.jsonl", *at(server), "--ledger", url)
    assert code != 0
    assert "does not answer" in err
    assert "hunter2" not in out + err


@pytest.mark.usefixtures("rows")
def test_a_run_via_a_vendor_tells_a_log_what_happens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: OpenStage, parrot: Parrot
) -> None:
    monkeypatch.setattr(vendor_runner, "PACE", QUICK)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
    server = stage(parrot, batches=BatchScript(seconds=0.3))
    options = ["-m", "openai:gpt-4.1", "--via", "vendor", "--base-url", server.url]
    code, out, err = here(capsys, "batch", "run", "in.jsonl", "-o", "out.jsonl", *options)
    assert (code, out) == (0, "")
    (batch,) = server.batches
    first, *changes, last = err.splitlines()
    assert first == (
        "3 rows, 2 requests, openai:gpt-4.1 via vendor. To look: `asides batch status out.jsonl`. "
        "To continue after this process has ended: `asides batch resume out.jsonl`."
    )
    assert changes[0] == f"openai: {batch.id}, created, 2 requests"
    assert f"openai: {batch.id}, completed, 2 of 2 requests" in changes
    assert changes[-1].startswith(f"{batch.id} has ended; 2/2 requests, ")
    assert len(changes) == len({line.split(", ")[1] for line in changes[:-1]}) + 1, "each state is told once"
    assert last.startswith("2 of 2 requests answered, for 3 rows")
    assert "canary" not in err
    assert here(capsys, "batch", "run", "in.jsonl", "-o", "more.jsonl", *options, "-q") == (0, "", "")


@pytest.mark.usefixtures("rows")
def test_a_batch_whose_rows_are_not_all_loaded_says_what_to_do(
    capsys: pytest.CaptureFixture[str], server: Stage, parrot: Parrot
) -> None:
    run = ["batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server)]
    with Path("in.jsonl").open("a", encoding="utf-8") as file:
        file.write("nonsense\n")
    assert here(capsys, *run).code == 2
    code, out, _ = here(capsys, "batch", "status", "out.jsonl")
    assert (code, "out.jsonl: loading, " in out, "Run `asides batch run` again" in out) == (0, True, True)
    code, _, err = here(capsys, "batch", "cancel", "out.jsonl")
    assert (code, "Run `asides batch run` again with the same arguments to continue." in err) == (0, True)
    code, _, err = here(capsys, "batch", "resume", "out.jsonl")
    assert (code, "were not all loaded" in err) == (2, True)
    assert parrot.asked == []
    Path("in.jsonl").write_text('"a"\n"b"\n', encoding="utf-8")
    assert here(capsys, *run).code == 0
    assert [row["text"] for row in read()] == ["re a", "re b"]


def test_a_terminal_shows_counts_and_no_content(server: Stage, rows: Path) -> None:
    rows.write_text("".join(f'"secret {n}"\n' for n in range(60)), encoding="utf-8")
    with at_terminal("batch", "run", "in.jsonl", "-o", "out.jsonl", *at(server), "--rpm", "1800") as terminal:
        terminal.wait_for("/60 requests, ")
        terminal.wait_for(" left")
        assert terminal.end() == 0
        assert "secret" not in terminal.text
