"""Text of models: a small Markdown as elements, the same however it arrives, and never markup, script or a request."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from asides_stage import Say
from tests.gateway.page.conftest import Visit

Start = Callable[..., Visit]
RENDER = """async ([text, cuts]) => {
  const { MarkdownStream } = await import("/ui/markdown.js");
  const root = document.createElement("div");
  const stream = new MarkdownStream(root);
  let from = 0;
  for (const cut of cuts) { stream.append(text.slice(from, cut)); stream.flush(); from = cut; }
  stream.append(text.slice(from));
  stream.end();
  return root.innerHTML.replaceAll(/ (dir="(auto|ltr)"|rel="[^"]*"|target="_blank"|data-mark="."|title="[^"]*")/g, "");
}"""

CASES = {
    "two paragraphs": ("One\ntwo\n\nthree", "<p>One<br>two</p><p>three</p>"),
    "emphasis": (
        "**bold** *it* ***both*** ~~gone~~ _so_ snake_case_name 2*3*4",
        (
            "<p><strong>bold</strong> <em>it</em> <em><strong>both</strong></em> <s>gone</s> <em>so</em> "
            "snake_case_name 2<em>3</em>4</p>"
        ),
    ),
    "not closed": ("**open and `open", "<p>**open and `open</p>"),
    "code": ("`a*b*` and ``x`y``", "<p><code>a*b*</code> and <code>x`y</code></p>"),
    "escapes": (r"\*not\* \`this\`", "<p>*not* `this`</p>"),
    "headings": ("# One\n## Two ##\n#no", '<h3 data-level="1">One</h3><h4 data-level="2">Two</h4><p>#no</p>'),
    "a list in a list": (
        "- a\n  - b\n- c\n\ntext",
        "<ul><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ul><p>text</p>",
    ),
    "numbers": (
        "3. a\n   - b\n4. c",
        '<ol start="3"><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ol>',
    ),
    "a quote": ("> said\nlazily\n\nnot", "<blockquote><p>said<br>lazily</p></blockquote><p>not</p>"),
    "a rule": ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
    "a link": ("[docs](https://x.example/a_(b))", '<p><a href="https://x.example/a_(b)">docs</a></p>'),
    "a bare address": (
        "see https://x.example/a. (https://y.example/)",
        (
            '<p>see <a href="https://x.example/a">https://x.example/a</a>. '
            '(<a href="https://y.example/">https://y.example/</a>)</p>'
        ),
    ),
    "an image is a link": ("![cat](https://x.example/c.png)", '<p><a href="https://x.example/c.png">cat</a></p>'),
    "a table": (
        "| a | b |\n|---|--:|\n| 1 | `x|y` |\n| 2 |",
        (
            '<div class="table"><table><thead><tr><th scope="col">a</th><th data-side="end" scope="col">b</th></tr>'
            "</thead>"
            '<tbody><tr><td>1</td><td data-side="end"><code>x|y</code></td></tr>'
            '<tr><td>2</td><td data-side="end"></td></tr></tbody></table></div>'
        ),
    ),
}


@pytest.fixture
def page(visit: Start) -> Any:
    opened = visit([Say(text="x")]).page
    opened.locator(".welcome").wait_for()
    return opened


def test_text_becomes_elements(page: Any) -> None:
    drawn = {name: page.evaluate(RENDER, [text, []]) for name, (text, _) in CASES.items()}
    assert drawn == {name: wanted for name, (_, wanted) in CASES.items()}


def test_code_keeps_every_character(page: Any) -> None:
    code = "def f():\n\treturn '<b>'\n\n    # ``not the end\n" * 60
    drawn = page.evaluate(
        """async (text) => {
      const { renderMarkdown } = await import("/ui/markdown.js");
      const root = renderMarkdown(document.createElement("div"), text);
      return [root.querySelector("pre").textContent, root.querySelector(".language").textContent, root.children.length];
    }""",
        f"~~~~python title=x\n{code}~~~~\nafter",
    )
    assert drawn == [code.replace("\t", "    "), "python", 2]


PIECES = [
    "word ", "word\n", "\n", "\n\n", "**", "*", "_", "`", "```\n", "```py\ncode\n", "~~~\n", "- ", "  - ", "1. ", "> ",
    ">> ", "# ", "|a|b|\n", "|---|---|\n", "|", "[a](https://x.example/)", "[", "](", "<b>", "---\n", "\t", "    ",
    "\\", "é", "🙂", "https://x.example/", "&amp;", "==\n", "\r\n", "long " * 300,
]  # fmt: skip


def test_text_is_drawn_the_same_in_any_pieces(page: Any) -> None:
    dice = random.Random(16)
    for round_ in range(150):
        text = "".join(dice.choice(PIECES) for _ in range(dice.randint(1, 40)))
        units = len(text.encode("utf-16-le")) // 2
        whole = page.evaluate(RENDER, [text, []])
        every = list(range(1, min(units, 400)))
        some = sorted(dice.sample(range(units + 1), min(units, 5)))
        for cuts in (every, some):
            assert page.evaluate(RENDER, [text, cuts]) == whole, (round_, text, cuts)


HOSTILE = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<img src='https://evil.example/pixel.png'>",
    "![pixel](https://evil.example/pixel.png)",
    "![](https://evil.example/pixel.png)",
    "<style>body { display: none }</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<iframe src='https://evil.example/'></iframe>",
    "<svg><script>window.hacked = 1</script></svg>",
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<form action='https://evil.example/'><button>Send</button></form>",
    "[click](javascript:window.hacked=1)",
    "[click](JaVaScRiPt:window.hacked=1)",
    "[click](java\tscript:window.hacked=1)",
    "[click]( javascript:window.hacked=1)",
    "[click](data:text/html,<script>window.hacked=1</script>)",
    "[click](vbscript:x)",
    "[click](//evil.example/)",
    "[click](https:evil)",
    "[click](blob:https://evil.example/x)",
    "[a](https://x.example/\" onclick=\"window.hacked=1)",
    "[a](https://x.example/ \"t\" onmouseover=\"window.hacked=1\")",
    "<javascript:window.hacked=1>",
    "<https://x.example/' onmouseover='window.hacked=1>",
    "[![x](https://evil.example/a.png)](javascript:alert(1))",
    "```html\n<script>window.hacked = 1</script>\n```",
    "```\"><script>window.hacked = 1</script>\ncode\n```",
    "| <script>window.hacked = 1</script> | b |\n|---|---|\n| <img src=x onerror=window.hacked=1> | [](javascript:1) |",
    "&lt;script&gt;window.hacked = 1&lt;/script&gt;",
    "{{constructor.constructor('window.hacked=1')()}}",
    "</div></article></main><h1>Not the page</h1>",
    "\u202egnp.exe\u202c",
    "\0<script>window.hacked = 1</script>",
]  # fmt: skip


def test_no_text_of_a_model_becomes_markup_or_a_request(visit: Start) -> None:
    """Hostile text in the answer, in the thinking, and in the question and the title."""
    text = "\n\n".join(HOSTILE)
    seen = visit([Say(thinking=text, text=text)])
    page = seen.page
    seen.ask_and_wait(text)
    page.reload()
    seen.wait_for_answers()
    seen.page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    loading = "img, iframe, script, style, link, svg, form, base, meta, object, embed, video, audio"
    assert page.locator(f".talk :is({loading})").count() == 0
    addresses = page.evaluate("[...document.querySelectorAll('.talk a')].map((a) => a.href)")
    assert addresses, "the good ones are links"
    assert [address for address in addresses if not address.startswith(("http://127.0.0.1", "https://"))] == []
    names = page.evaluate("[...document.querySelectorAll('.talk *')].flatMap((e) => e.getAttributeNames())")
    assert not [name for name in names if name.startswith("on") or name in ("style", "src", "srcset")]
    expect(page.locator(".column .text").last).to_contain_text("<script>window.hacked = 1</script>")
    assert page.locator(".talk .text a:not([rel~=noopener][target=_blank])").count() == 0


def test_a_name_of_a_tool_or_a_model_is_text_too(visit: Start) -> None:
    seen = visit([Say(text="ok", model="<img src=x onerror=window.hacked=1>")])
    seen.ask_and_wait("Hello?")
    assert seen.page.evaluate("window.hacked") is None
    assert seen.page.evaluate("document.querySelectorAll('img').length") == 0


FEED = """async ([text, step, layout]) => {
  const { MarkdownStream } = await import("/ui/markdown.js");
  const root = document.createElement("div");
  root.className = "text";
  document.querySelector(".talk").append(root);
  const stream = new MarkdownStream(root);
  const began = performance.now();
  let slowest = 0;
  for (let at = 0; at < text.length; at += step) {
    const before = performance.now();
    stream.append(text.slice(at, at + step));
    stream.flush();
    if (layout) void root.offsetHeight;
    slowest = Math.max(slowest, performance.now() - before);
  }
  stream.end();
  root.remove();
  return [performance.now() - began, slowest];
}"""


@pytest.mark.parametrize(
    "unit",
    [
        "A sentence with **bold** and `code`, as models write them.\n\n",
        "one line that never ends ",
        "nospaceatall",
        "- an item of a very long list\n",
        "| a | b |\n",
        "> quoted\n",
        "[[[[((((****____````",
    ],
)
def test_a_long_answer_costs_no_more_per_word_than_a_short_one(page: Any, unit: str) -> None:
    head = "| x | y |\n|---|---|\n" if unit.startswith("|") else ""
    text = head + unit * (200_000 // len(unit))
    short, _ = page.evaluate(FEED, [text[:25_000], 400, False])
    long, _ = page.evaluate(FEED, [text, 400, False])
    # Eight times the text, with room for a busy machine; what is quadratic takes 64 times as long.
    assert long < 8 * short * 3 + 1000, (short, long)


def test_code_is_laid_out_once(page: Any) -> None:
    """With the time of the browser's own layout: it does again only the last lines."""
    text = "```python\n" + "    return some_function(argument, other=3)  # a line\n" * 3700
    short, _ = page.evaluate(FEED, [text[:25_000], 400, True])
    long, _ = page.evaluate(FEED, [text, 400, True])
    assert long < 8 * short * 3 + 1000, (short, long)
