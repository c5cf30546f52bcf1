"""One block of Markdown, rendered: styles and nothing else, and not a word less."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("rich")

from asides.cli.render_blocks import render_block


def strip(rendered: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", rendered)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# A *title*", "A title\n"),
        ("Use the <div> tag &amp; <br/>.", "Use the <div> tag & <br/>.\n"),
        ("[words](https://real.example)", "words (https://real.example)\n"),
        ("![alt](https://p.example/x.png)", "!alt (https://p.example/x.png)\n"),
        (":smile: stays, [bold]too[/bold]", ":smile: stays, [bold]too[/bold]\n"),
        ("```\nplain\n\n  code\n```", "plain\n\n  code\n"),
        ("~~~python\nx = '```'\n~~~", "x = '```'\n"),
        ("```nolanguage\nx\n```", "x\n"),
        ("7. seven\n8. eight", " 7 seven\n 8 eight\n"),
        ("---", f"{'-' * 40}\n"),
    ],
)
def test_a_block_keeps_its_words(text: str, shown: str) -> None:
    assert strip(render_block(text, 40)) == shown


def test_a_long_line_of_code_stays_one_line() -> None:
    line = f"x = '{'y' * 200}'"
    assert strip(render_block(f"```python\n{line}\n```", 40)) == f"{line}\n"


def test_an_open_fence_is_rendered_up_to_its_end() -> None:
    assert strip(render_block("```python\nx = 1", 40)) == "x = 1\n"


def test_no_colour_where_the_user_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert set(re.findall(r"\x1b\[([0-9;]*)m", render_block("**b** and `code`\n", 40))) == {"1", "0"}


@pytest.mark.parametrize("text", ["\x1b[2J", "```\n\x1b]0;x\x07\n```", "`\x9b2J`", "| \x1b[A |\n|---|\n| \r |"])
def test_only_styles_come_out(text: str) -> None:
    rest = re.sub(r"\x1b\[[0-9;]*m", "", render_block(text, 40))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", rest)
