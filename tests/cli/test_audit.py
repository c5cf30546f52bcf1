"""`asides audit`: the report on files, its exit codes, and cleaned copies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides.cli.app import main

_SECRET = "a hidden plan"


def _write(path: Path, *responses: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"response": each}) + "\n" for each in responses), encoding="utf-8")
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return _write(tmp_path / "rows.jsonl", f"<think>{_SECRET}</think>42", "42", f"{_SECRET}</think>42", "Use <think>.")


def test_places_and_counts_are_reported_without_content(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(rows)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "2 found in 4 rows of 1 file",
        "",
        "channel   grammar  kind            found",
        "thinking  think    between tags    1",
        "thinking  think    no opening tag  1",
        "",
        f"{rows}:1 $.response think between tags, 13 characters",
        f"{rows}:3 $.response think no opening tag, 13 characters",
    ]
    assert "(in 1 answer)" in err


def test_the_report_is_json_and_shows_content_only_when_asked(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(rows), "--json", "-q", "--places", "1"]) == 1
    out, err = capsys.readouterr()
    assert _SECRET not in out + err
    report: dict[str, Any] = json.loads(out)
    place = {
        "row": 1, "path": "$.response", "channel": "thinking", "grammar": "think", "kind": "closed", "characters": 13,
        "is_removed": True, "file": str(rows),
    }  # fmt: skip
    assert report == {
        "found": 2,
        "rows": 4,
        "counts": [
            {"channel": "thinking", "grammar": "think", "kind": kind, "found": 1} for kind in ("closed", "lone_close")
        ],
        "places": [place],
        "files": [
            {
                "file": str(rows), "format": "jsonl", "rows": 4, "found": 2, "mentions": 1, "unread": 0, "problems": [],
            }
        ],
    }  # fmt: skip
    main(["audit", str(rows), "--json", "--show", "1"])
    assert [each["text"] for each in json.loads(capsys.readouterr().out)["samples"]] == [_SECRET, _SECRET]
    main(["audit", str(rows), "--show", "1"])
    assert f"  {_SECRET}\n" in capsys.readouterr().out


def test_clean_files_end_with_0_and_files_that_cannot_be_read_with_another_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = _write(tmp_path / "clean.jsonl", "42", "`<think>`")
    assert main(["audit", str(clean)]) == 0
    assert capsys.readouterr().out == "clean: 2 rows of 1 file\n"
    assert main(["audit", str(tmp_path / "missing.jsonl")]) == 2
    assert "neither a file nor a folder" in capsys.readouterr().err
    broken = tmp_path / "broken.json"
    broken.write_text('[{"response": "42"}, {"resp', encoding="utf-8")
    assert main(["audit", str(clean), str(broken)]) == 9
    assert f"{broken}:2: not checked" in capsys.readouterr().err
    assert main(["audit", str(clean), "--places", "-1"]) == 2


def test_a_folder_is_read_with_its_data_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "data" / "a" / "x.jsonl", f"<think>{_SECRET}</think>42")
    _write(tmp_path / "data" / "b.jsonl", "42")
    _write(tmp_path / "data" / ".git" / "c.jsonl", f"<think>{_SECRET}</think>42")
    (tmp_path / "data" / "notes.md").write_text("<think>a</think>b", encoding="utf-8")
    assert main(["audit", str(tmp_path / "data"), "--fix", str(tmp_path / "out")]) == 0
    assert "1 found in 2 rows of 2 files" in capsys.readouterr().out
    assert (tmp_path / "out" / "a" / "x.jsonl").read_text(encoding="utf-8") == '{"response": "42"}\n'
    assert (tmp_path / "out" / "b.jsonl").read_text(encoding="utf-8") == '{"response": "42"}\n'


def test_a_copy_that_is_not_clean_ends_with_1_and_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thought = "I have to say that it is forty-two, and nothing else."
    path = tmp_path / "rows.jsonl"
    row = {"role": "assistant", "reasoning_content": thought, "content": thought}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert main(["audit", str(path), "--fix", str(tmp_path / "out.jsonl")]) == 1
    assert "1 left to decide by hand" in capsys.readouterr().out
    assert main(["audit", str(path), "--fix", str(tmp_path / "out.jsonl")]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["audit", str(path), "--fix", str(path)]) == 2
    assert json.loads(path.read_text(encoding="utf-8")) == row


def test_the_model_and_own_tags_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _write(tmp_path / "rows.jsonl", "Here is my thought process: a Here is my response: b", "{{a}}b{{/a}}c")
    assert main(["audit", str(path)]) == 0
    assert main(["audit", str(path), "-m", "granite-3.3-8b"]) == 1
    assert main(["audit", str(path), "--tags", "{{a}}", "{{/a}}"]) == 1
    assert capsys.readouterr().out.count("1 found") == 2
    assert main(["audit", str(path), "--tags", " ", "x"]) == 2


def test_keys_and_file_names_cannot_forge_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"a\nclean: 1": "<think>x</think>y", "b" * 200: "<think>x</think>y"}), encoding="utf-8")
    assert main(["audit", str(path)]) == 1
    out = capsys.readouterr().out
    assert "a\\x0aclean: 1" in out
    assert "b" * 100 not in out
