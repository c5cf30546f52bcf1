"""Renders one block of Markdown with `rich` (extra `markdown`): text with styles, and no other escapes."""

from __future__ import annotations

import io
import re
from functools import cache
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from asides.cli.terminal import make_visible

_THEME = "ansi_dark"
_STYLES = Theme({"markdown.code": "bold cyan", "markdown.code_block": "cyan", "markdown.h1": "bold underline"})
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")
_PADDING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}+(?=[^`]*+$)|~{3,}+)(.*)")


class _Heading(Heading):
    """A heading at the left edge."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    """Code without a margin, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _highlight(str(self.text).rstrip(), self.lexer_name)


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False, code_theme=_THEME)
        self.markup = text
        self.parsed = _get_parser().parse(text)


@cache
def _get_parser() -> Any:
    from markdown_it import MarkdownIt

    # Tags and pictures would vanish: as text they stay. Hidden addresses of links would, too (see hyperlinks=False).
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")


def render_block(text: str, columns: int) -> str:
    """The block as lines with styles, each ended."""
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        width=columns,
        theme=_STYLES,
        emoji=False,
        highlight=False,
        markup=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        opening, *lines = text.split("\n")
        code = _FENCE.match(opening) if lines else None
        if code is not None:
            body = lines[:-1] if lines[-1].strip().startswith(code[1]) else lines
            language = next(iter(code[2].split()), "")
            # Not wrapped here, so that a long line can be copied as one.
            console.print(_highlight("\n".join(body), language), soft_wrap=True)
        else:
            console.print(_Markdown(text))
    return _clean(capture.get())


def _highlight(code: str, language: str) -> Text:
    if language in ("", "text", "txt", "plain"):
        return Text(code, style="cyan")
    text = Syntax(code, language, theme=_THEME).highlight(code)
    text.rstrip()
    return text


def _clean(rendered: str) -> str:
    """Take out padding and blank lines at both ends, and every escape that is not a style."""
    lines = _PADDING.sub(r"\1", rendered).split("\n")
    while lines and not _STYLE.sub("", lines[0]).strip():
        lines.pop(0)
    while lines and not _STYLE.sub("", lines[-1]).strip():
        lines.pop()
    pieces = _STYLE.split("\n".join(lines))
    # re.split puts the styles at odd places.
    return "".join(piece if at % 2 else make_visible(piece) for at, piece in enumerate(pieces)) + "\n"
