"""The scanner: code spans and fences across pieces, tags found outside of code, and no more text held than needed."""

from __future__ import annotations

import pytest

from asides.wire.inline_tags.grammars import Role, find_rules
from asides.wire.inline_tags.scanner import CodeSpans, TagScanner

OPENS = find_rules(["think"]).opens


def code_after(text: str, pieces: int) -> tuple[str, int, int]:
    code = CodeSpans()
    size = max(1, len(text) // pieces)
    code.unread = [text[at : at + size] for at in range(0, len(text), size)]
    code.read()
    assert code.unread == []
    return code.fence, code.inline, code.fences


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize(
    ("text", "state"),
    [
        # (the open fence, the length of the open run of backticks, the fences so far)
        ("plain words", ("", 0, 0)),
        ("a `b", ("", 1, 0)),
        ("a `b` c", ("", 0, 0)),
        ("a ``b ` c", ("", 2, 0)),
        ("a `b\nc", ("", 0, 0)),
        ("a ````b", ("", 0, 0)),
        ("```py\nx", ("```", 0, 1)),
        ("  ~~~\nx", ("~~~", 0, 1)),
        ("a ```\nx", ("", 0, 0)),
        ("```\nx\n```\n", ("", 0, 1)),
        ("```\nx\n`````\n", ("", 0, 1)),
        ("````\nx\n```\n", ("````", 0, 1)),
        ("```\nx\n``` no end\n", ("```", 0, 1)),
        ("```\n~~~\n", ("```", 0, 1)),
        ("```x``` and `y", ("", 1, 1)),
        ("```\nx\n```\n~~~\ny", ("~~~", 0, 2)),
    ],
)
def test_where_a_text_ends_inside_of_code(text: str, state: tuple[str, int, int], pieces: int) -> None:
    assert code_after(text, pieces) == state


def scan(pieces: list[str], *, with_code: bool = True) -> list[str]:
    """Everything that comes out, in order: text as it is, live tags in brackets, tags in a fence in braces."""
    scanner, code, out = TagScanner(), CodeSpans() if with_code else None, list[str]()

    def put(text: str, fenced: Role | None = None) -> None:
        if text:
            out.append(f"{{{text}}}" if fenced else text)
            if code is not None:
                code.unread.append(text)

    for number, piece in enumerate([*pieces, ""]):
        scanner.final = number == len(pieces)
        if scanner.fill(piece):
            while (found := scanner.find(OPENS, code, put)) is not None:
                out.append(f"[{found.text}]")
    assert not scanner.holds
    return out


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("a<think>b", ["a", "[<think>]", "b"]),
        ("a <b> c", ["a <b> c"]),
        ("a<thi", ["a", "<thi"]),
        ("`<think>` b", ["`", "<think>`", " b"]),
        ("`<think> b", ["`", "[<think>]", " b"]),
        ("`<think>\n`b", ["`", "[<think>]", "\n`b"]),
        ("``a`<think>`` b", ["``a`", "<think>``", " b"]),
        ("```\n<think>\n```\n<think>", ["```\n", "{<think>}", "\n```\n", "[<think>]"]),
    ],
)
def test_a_tag_in_code_is_text(text: str, out: list[str]) -> None:
    whole = scan([text])
    assert "".join(whole) == "".join(out)
    assert [piece for piece in whole if piece[0] in "[{"] == [piece for piece in out if piece[0] in "[{"]
    assert "".join(scan(list(text))) == "".join(out)
    for at in range(len(text)):
        assert "".join(scan([text[:at], text[at:]])) == "".join(out), at


def test_without_code_spans_every_tag_is_live() -> None:
    assert scan(["`<think>`"], with_code=False) == ["`", "[<think>]", "`"]


def test_only_what_may_become_a_tag_is_held() -> None:
    scanner, out = TagScanner(), list[str]()

    def put(text: str, _: Role | None = None) -> None:
        out.append(text)

    assert scanner.fill("word <thi")
    assert scanner.find(OPENS, None, put) is None
    assert (out, scanner.tail, scanner.holds) == (["word "], "<thi", True)
    assert scanner.fill("s one")
    assert scanner.find(OPENS, None, put) is None
    assert (out, scanner.tail, scanner.holds) == (["word ", "<this one"], "", False)


def test_a_tag_behind_an_open_backtick_waits_for_the_end_of_the_line() -> None:
    scanner, code, out = TagScanner(), CodeSpans(), list[str]()

    def put(text: str, _: Role | None = None) -> None:
        out.append(text)
        code.unread.append(text)

    assert scanner.fill("a ` <think>b")
    assert scanner.find(OPENS, code, put) is None
    assert (out, scanner.holds) == (["a ` "], True)
    assert not scanner.fill("c ``"), "a run of another length decides nothing"
    assert scanner.fill("\n")
    found = scanner.find(OPENS, code, put)
    assert found is not None
    assert (found.text, scanner.read_rest()) == ("<think>", "bc ``\n")


def test_a_tag_is_read_at_the_position() -> None:
    scanner = TagScanner()
    assert scanner.fill("\ufeff \n<think>rest")
    assert scanner.read_blanks() == "\ufeff \n"
    found = scanner.find_here(OPENS)
    assert found is not None
    assert (found.role, found.grammar.name, found.text) == (Role.OPEN, "think", "<think>")
    assert scanner.find_here(OPENS) is None
    assert (scanner.holds, scanner.read_rest(), scanner.read_rest()) == (False, "rest", "")
    assert scanner.fill("<th")
    assert scanner.find_here(OPENS) is None
    assert scanner.holds


@pytest.mark.parametrize(("back", "rest"), [("<think>", "<think>b"), ("held <think>", "held <think>b"), ("", "b")])
def test_text_can_be_read_again(back: str, rest: str) -> None:
    scanner = TagScanner()
    scanner.fill("<think>b")
    assert scanner.find_here(OPENS) is not None
    scanner.push_back(back)
    assert scanner.read_rest() == rest
