"""The hook of .pre-commit-hooks.yaml, run as pre-commit runs it: its entry with the staged files that fit its pattern.

pre-commit itself installs the package of the repository first, which takes the network.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from asides.datasets.rows import open_writer
from tests.cli.children import environment

_ROOT = Path(__file__).parent.parent


@pytest.fixture
def hook() -> dict[str, Any]:
    (hook,) = yaml.safe_load((_ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    return dict(hook)


def run(hook: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    listed = subprocess.run(["git", "ls-files"], cwd=folder, check=True, capture_output=True, text=True)
    files = [name for name in listed.stdout.splitlines() if re.search(hook["files"], name)]
    program, *arguments = shlex.split(hook["entry"])
    assert program == "asides"
    command = [str(Path(sys.executable).with_name(program)), *arguments, *files]
    return subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, env=environment(), timeout=60
    )


def test_the_hook_lets_clean_files_pass(hook: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"response": "42"}\n', encoding="utf-8")
    (tmp_path / "settings.json").write_text('// a comment\n{"a": 1}\n', encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text('{"added_tokens": [{"content": "<think>"}]}', encoding="utf-8")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "notes.md").write_text("<think>plan</think>42", encoding="utf-8")
    done = run(hook, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_hook_stops_a_file_with_thinking_in_an_answer(hook: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"response": "42"}\n', encoding="utf-8")
    (tmp_path / "data").mkdir()
    row = {"messages": [{"role": "assistant", "content": "<think>plan</think>42"}]}
    (tmp_path / "data" / "chat.json").write_text(json.dumps([row]), encoding="utf-8")
    line = '{"response": "<think>plan</think>42"}\n'
    (tmp_path / "rows.txt").write_text(line, encoding="utf-8")
    for name in ("rows.jsonl.zst", "rows.csv.zstd", "rows.parquet"):
        with open_writer(tmp_path / name) as writer:
            writer.write(json.loads(line))
    done = run(hook, tmp_path)
    assert done.returncode == 1
    for name in ("rows.txt", "rows.jsonl.zst", "rows.csv.zstd", "rows.parquet"):
        assert f"{name}:1 $.response think between tags, 4 characters" in done.stdout
    assert "data/chat.json:1 $.messages[0].content think between tags, 4 characters" in done.stdout
