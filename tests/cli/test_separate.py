"""`asides separate`: a text with inline tags, from a pipe."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.children import (
    environment,
    piped,
    read_some,
    started,
)


@pytest.mark.parametrize(
    ("text", "options", "out", "err"),
    [
        ("<think>plan</think>42", [], "42\n", ""),
        ("<think>plan</think>42", ["-t"], "42\n", "plan\n"),
        ("<think>a</think>b<think>c</think>d", ["-t"], "bd\n", "a\nc\n"),
        ("plan</think>42", ["-t"], "42\n", "plan\n"),
        ("plan</think>42", ["--starts-inside", "no"], "plan</think>42\n", ""),
        ("plan", ["-t", "--starts-inside"], "", "plan\nwarning: the text ends in the middle of the thinking\n"),
        ("a <think>b</think>", ["--position", "anywhere"], "a \n", ""),
        ("[[a]]b((c))d", ["--tags", "[[", "]]", "--tags", "((", "))"], "bd\n", ""),
        ("<think>cut", ["-q"], "", ""),
    ],
)
def test_a_text_is_split_into_answer_and_thinking(
    text: str,
    options: list[str],
    out: str,
    err: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert piped(capsys, monkeypatch, text, "separate", *options) == (0, out, err)


def test_separate_prints_json_and_refuses_blank_tags(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, _ = piped(capsys, monkeypatch, "<think>é", "separate", "--json")
    assert json.loads(out) == {"text": "", "thinking": "é", "commentary": "", "truncated": True}
    code, _, err = piped(capsys, monkeypatch, "", "separate", "--tags", " ", "x")
    assert code == 2
    assert "both not blank" in err


def test_bytes_that_are_not_text_become_replacement_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert piped(capsys, monkeypatch, b"<think>a</think>b\xffc", "separate")[1] == "b\ufffdc\n"


def test_in_a_pipe_the_answer_comes_as_soon_as_it_is_certain() -> None:
    with started("separate", stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.write("<think>plan</think>first caf\u00e9".encode()[:-1])
        child.stdin.flush()
        seen = read_some(child, b"first caf")
        out, _ = child.communicate("\u00e9".encode()[1:] + b" last", timeout=10)
    assert (seen + out).decode() == "first caf\u00e9 last\n"
    assert child.returncode == 0


@pytest.mark.parametrize("arguments", [["--help"], ["separate"]])
def test_nothing_heavy_is_loaded_for_little_work(arguments: list[str]) -> None:
    report = (
        "import sys; from asides.cli.app import main; main(sys.argv[1:]); "
        "sys.exit(' '.join({'urllib3', 'aiohttp', 'rich', 'ssl', 'asyncio', 'asides.settings'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", report, *arguments],
        input=b"<think>a</think>b",
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert done.stderr == b"\n", "what sys.exit prints of an empty list"
    assert done.stdout.endswith(b"b\n") or b"exit codes" in done.stdout
