"""What a person does beside asking: instructions, files, formulas, keeping thinking, export, and stopping for good."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from asides_stage import Say
from tests.gateway.page.conftest import Visit

Start = Callable[..., Visit]
FORMULAS = {
    r"$e^{i\pi} + 1 = 0$": "<math><msup><mi>e</mi><mrow><mi>i</mi><mi>π</mi></mrow></msup><mo>+</mo><mn>1</mn>"
    "<mo>=</mo><mn>0</mn></math>",
    r"\(\frac{1}{x_2}\)": "<math><mfrac><mn>1</mn><msub><mi>x</mi><mn>2</mn></msub></mfrac></math>",
    r"\[\sum_{n=1}^m n\]": '<math display="block"><munderover><mo>∑</mo><mrow><mi>n</mi><mo>=</mo><mn>1</mn></mrow>'
    "<mi>m</mi></munderover><mi>n</mi></math>",
    r"$$\sqrt[3]{x}$$": '<math display="block"><mroot><mi>x</mi><mn>3</mn></mroot></math>',
    r"\(\unheard{x}\)": r"<math><mtext>\unheard</mtext><mi>x</mi></math>",
    "$5 and $10": "$5 and $10",
    "it costs $5.": "it costs $5.",
    r"\(not closed": "(not closed",
    "$$not closed": "$$not closed",
    "US$ and A$": "US$ and A$",
    "`$x^2$`": "<code>$x^2$</code>",
    r"\(<script>alert(1)</script>\)": None,
}


@pytest.fixture(scope="module")
def pixel() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", head),
            chunk(b"IDAT", zlib.compress(b"\0\xc8\x50\x3c")),
            chunk(b"IEND", b""),
        )
    )


def test_formulas_are_drawn_and_money_is_not(visit: Start) -> None:
    page = visit([Say(text="x")]).page
    for text, expected in FORMULAS.items():
        drawn = page.evaluate(
            """async (text) => {
              const { renderInline } = await import("/ui/inline.js");
              const box = document.createElement("div");
              box.append(renderInline(text));
              return [box.innerHTML.replaceAll(/ (?:aria-label|stretchy)="[^"]*"/g, ""), box.querySelector("script")];
            }""",
            text,
        )
        assert drawn[1] is None
        if expected is not None:
            assert drawn[0] == expected, text


def test_long_text_with_dollars_and_brackets_takes_no_time(visit: Start) -> None:
    page = visit([Say(text="x")]).page
    grown = page.evaluate(
        """async () => {
          const { renderInline } = await import("/ui/inline.js");
          const take = (text) => {
            const began = performance.now();
            renderInline(text);
            return performance.now() - began;
          };
          const ratios = [];
          for (const sign of ["$", "$$", "\\\\(", "$a ", "\\\\[", "$x^", "https://x.example/))", "{"]) {
            const text = (size) => (sign === "{" ? "$" + "{".repeat(size) + "x$" : sign.repeat(size));
            const best = (size) => Math.min(...[1, 2, 3, 4, 5].map(() => take(text(size))));
            ratios.push([sign, best(8000) / Math.max(best(2000), 1)]);
          }
          return ratios;
        }"""
    )
    # Four times the text takes four times the time, and sixteen times where it is quadratic.
    assert [sign for sign, ratio in grown if ratio > 10] == []


def test_code_has_colours_and_stays_text(visit: Start) -> None:
    code = "```python\n# Counts.\ndef f(n: int = 10):\n    return \"a\" + 'b'\n```\n\n```text\ndef no\n```"
    seen = visit([Say(text=code)])
    seen.ask_and_wait("Code?")
    found = seen.page.evaluate(
        """() => {
          const read = (range) => {
            const whole = new Range();
            whole.setStart(range.startContainer, range.startOffset);
            whole.setEnd(range.endContainer, range.endOffset);
            return whole.toString();
          };
          return Object.fromEntries([...CSS.highlights].map(([name, ranges]) => [name, [...ranges].map(read)]));
        }"""
    )
    assert found == {
        "code-note": ["# Counts."],
        "code-word": ["def", "int", "return"],
        "code-number": ["10"],
        "code-text": ['"a"', "'b'"],
    }
    assert seen.page.locator("pre code").first.text_content() == code.split("\n", 1)[1].split("```", maxsplit=1)[0]


def test_a_picture_and_a_text_go_with_a_question(visit: Start, pixel: bytes) -> None:
    seen = visit([Say(text="A dot."), Say(text="Yes.")])
    page = seen.page
    page.locator("input[type=file]").set_input_files(
        [
            {"name": "dot.png", "mimeType": "image/png", "buffer": pixel},
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words of the notes"},
            {"name": "no.txt", "mimeType": "text/plain", "buffer": b"x"},
        ]
    )
    page.get_by_role("button", name="Remove no.txt").click()
    expect(page.locator(".attached li")).to_have_count(2)
    seen.ask_and_wait("What is it?")
    expect(page.locator(".attached li")).to_have_count(0)
    picture, text = seen.last_sent["messages"][-1]["content"]
    assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(pixel).decode()}"
    assert text["text"].startswith("What is it?")
    assert "words of the notes" in text["text"]
    for _ in range(2):
        expect(page.locator(".question .picture")).to_be_visible()
        expect(page.locator(".question .file")).to_contain_text("notes.txt")
        page.reload()
    expect(page.locator(".question .text")).not_to_contain_text("words of the notes")
    expect(page.get_by_role("heading", level=1)).to_have_text("What is it?")


def test_instructions_go_before_every_question(visit: Start) -> None:
    seen = visit([Say(text="Arr."), Say(text="Indeed.")])
    page = seen.page

    def instruct(text: str) -> None:
        page.get_by_role("button", name="Instructions").click()
        page.get_by_role("textbox", name="Instructions").fill(text)
        page.get_by_role("button", name="Use").click()
        expect(page.locator("dialog")).to_have_count(0)

    instruct("Be a pirate.")
    seen.ask_and_wait("Who are you?")
    assert seen.last_sent["messages"][0]["content"] == "Be a pirate."
    page.reload()
    page.get_by_role("button", name="Instructions").click()
    expect(page.get_by_role("textbox", name="Instructions")).to_have_value("Be a pirate.")
    page.get_by_role("button", name="Cancel").click()
    instruct("Be a butler.")
    seen.ask_and_wait("And now?")
    assert seen.last_sent["messages"][0]["content"] == "Be a butler."


def test_thinking_is_kept_in_this_browser_after_one_click(visit: Start) -> None:
    thought = "a thought worth keeping"
    seen = visit([Say(thinking=thought, text="Yes."), Say(thinking="another one", text="No.")])
    page = seen.page
    seen.ask_and_wait("First?")
    keep = page.get_by_role("button", name="Keep thinking")
    keep.click()
    seen.ask_and_wait("Second?")
    page.reload()
    expect(page.locator(".thought .body")).to_have_text([thought, "another one"])
    keep.click()
    assert thought not in str(page.evaluate("({...localStorage})"))
    page.reload()
    expect(page.locator(".column .text").first).to_have_text("Yes.")
    assert thought not in page.content()


def test_a_conversation_is_exported_with_what_the_page_shows(visit: Start, tmp_path: Path) -> None:
    seen = visit([Say(thinking="hm, bread", text="**Bread** it is.")])
    page = seen.page
    seen.ask_and_wait("What to bake?")
    files: dict[str, str] = {}
    for name, ending in (("Markdown", "md"), ("JSON", "json")):
        page.get_by_role("button", name="Export", exact=True).click()
        with page.expect_download() as begun:
            page.get_by_label(f"Export as {name}").click()
        assert begun.value.suggested_filename == f"What-to-bake-.{ending}"
        begun.value.save_as(tmp_path / ending)
        files[ending] = (tmp_path / ending).read_text(encoding="utf-8")
    assert files["md"].startswith("# What to bake?\n\n## Question\n\nWhat to bake?\n\n## Answer")
    assert "> **Thinking**\n>\n> hm, bread\n\n**Bread** it is.\n" in files["md"]
    assert '"text": "hm, bread"' in files["json"]


def test_a_stopped_answer_says_so_after_a_reload_and_after_the_next_question(visit: Start) -> None:
    seen = visit([Say(text="word " * 400, piece=5, pause=0.05), Say(text="Yes.")])
    page = seen.page
    seen.ask("Go on for long")
    expect(page.locator(".column .text")).to_contain_text("word word")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    seen.ask_and_wait("Another thing?")
    page.reload()
    expect(page.get_by_text("Yes.")).to_be_visible()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(page.get_by_role("button", name="Continue")).to_have_count(0)


def test_an_answer_that_was_stopped_before_it_began_says_so(visit: Start) -> None:
    seen = visit([Say(text="late", delay=20.0)])
    page = seen.page
    seen.ask("Anybody?")
    expect(page.get_by_text("Waiting for the model")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Stopped, before an answer began.")).to_be_visible()


def test_bars_of_requests_share_one_axis_of_time(visit: Start) -> None:
    seen = visit([Say(text="quick"), Say(text="one two three four", piece=2, pause=0.25)])
    page = seen.page
    seen.ask_and_wait("Quick?")
    seen.ask_and_wait("Slow?")
    page.get_by_role("link", name="Requests").click()
    expect(page.locator("tbody .bar")).to_have_count(2)
    slow, quick = (page.locator("tbody .bar").nth(place).bounding_box()["width"] for place in (0, 1))
    assert slow > 3 * quick
    expect(page.locator("thead")).to_contain_text("0 to 5.0 s")
