"""What axe finds: nothing serious, in light and dark, wide and on a phone, in each state that can be drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from asides_stage import Fail, Say
from tests.gateway.page.conftest import Visit

Start = Callable[..., Visit]
Look = Callable[[Any], None]
RICH = Say(
    thinking="A **plan** with a [link](https://x.example/).\n\n" + "More of it. " * 300,
    text=(
        "# One\n\nText with `code`, **bold** and a [link](https://x.example/).\n\n```python\nprint(1)\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\n1. one\n   - two\n\nمرحبا بالعالم"
    ),
)
VIEWS = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
CHECK = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.filter((each) => ["serious", "critical", "moderate"].includes(each.impact))
    .map((each) => `${each.id} (${each.impact}): ` + each.nodes.map(
      (node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).join("; "));
}"""


@pytest.fixture
def look(npm_packages: Path) -> Look:
    source = (npm_packages / "axe-core" / "axe.min.js").read_text(encoding="utf-8")

    def run(page: Any) -> None:
        page.evaluate(source)
        assert page.evaluate(CHECK) == []

    return run


@pytest.mark.parametrize(("scheme", "width"), VIEWS)
def test_axe_finds_nothing_in_a_conversation(visit: Start, look: Look, scheme: str, width: int) -> None:
    seen = visit([RICH, Fail(400, message="no such thing")], color_scheme=scheme, width=width)
    page = seen.page
    page.locator(".welcome").wait_for()
    look(page)
    seen.ask_and_wait("A question, with *emphasis*")
    if width < 800:
        page.locator(".thought summary").click()
    look(page)
    seen.ask("Another one")
    expect(page.get_by_role("alert")).to_be_visible(timeout=30_000)
    look(page)
    page.get_by_label("Edit this question").first.click()
    page.locator(".editor textarea").wait_for()
    look(page)


@pytest.mark.parametrize(("scheme", "width"), VIEWS)
def test_axe_finds_nothing_in_dialogs_lists_and_forms(visit: Start, look: Look, scheme: str, width: int) -> None:
    seen = visit([RICH], color_scheme=scheme, width=width, keys=("k",))
    seen.expected.append("401")
    page = seen.page
    page.get_by_label("Key").wait_for()
    look(page)
    page.get_by_label("Key").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_role("alert").wait_for()
    look(page)
    page.get_by_label("Key").fill("k")
    page.keyboard.press("Enter")
    seen.ask_and_wait("A question")
    if width < 800:
        page.get_by_label("Menu: the conversations").click()
        look(page)
        page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("listbox").wait_for()
    look(page)
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Model").blur()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    look(page)
    page.keyboard.press("Escape")
    if width < 800:
        page.get_by_role("button", name="More").click()
        look(page)
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").wait_for()
    look(page)


def test_axe_finds_nothing_while_it_thinks(visit: Start, look: Look) -> None:
    seen = visit([Say(thinking="Thinking on. " * 2000, text="x", pause=0.05)])
    seen.ask("Think")
    seen.page.locator(".thought[data-live]").wait_for()
    look(seen.page)
    seen.page.keyboard.press("Escape")
    seen.page.locator(".told").wait_for()
    look(seen.page)


def test_at_twice_the_size_everything_is_there(visit: Start) -> None:
    seen = visit([RICH], width=640, height=400, device_scale_factor=2)
    seen.ask_and_wait("A question")
    page = seen.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    page.get_by_role("button", name="More").click()
    for name in ("Send", "Delete", "Rename"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 640
        assert box["y"] + box["height"] <= 400


def test_those_who_want_no_motion_get_none(visit: Start) -> None:
    seen = visit([RICH])
    seen.ask_and_wait("A question")
    moving = seen.page.evaluate("document.getAnimations().filter((a) => a.playState === 'running').length")
    assert moving == 0
