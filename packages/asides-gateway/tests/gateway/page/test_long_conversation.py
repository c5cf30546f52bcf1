"""A conversation of a thousand messages: open at once, read upwards without a jump, followed only at the bottom."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from asides.conversations.store import ConversationHeading
from asides.conversations.store.conversation_names import STORE_FILE
from asides.conversations.store.sqlite import SqliteStore
from asides.values.messages import Message
from asides.values.parts import Text
from asides_stage import Say
from tests.gateway.page.conftest import MODEL, Visit

Start = Callable[..., Visit]
COUNT = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    messages: list[Message] = []
    for number in range(COUNT // 2):
        messages.append(Message("user", (Text(f"Question {number}"),)))
        lines = "\n\n".join(f"Paragraph {line} of answer {number}." for line in range(number % 7 + 1))
        messages.append(Message("assistant", (Text(lines),)))
    with SqliteStore(tmp_path / STORE_FILE) as store:
        store.append("long", messages, heading=ConversationHeading(None, MODEL))
    return tmp_path


def _open(seen: Visit) -> Any:
    seen.page.locator(".list a").first.click()
    expect(seen.page.locator(".bubble").last).to_have_text(f"Question {COUNT // 2 - 1}")
    return seen.page


def test_it_opens_at_its_end_and_draws_a_window_only(visit: Start, folder: Path) -> None:
    seen = visit([Say(text="x")], folder=folder)
    began = time.monotonic()
    page = _open(seen)
    assert time.monotonic() - began < 5
    assert page.locator(".bubble").count() < 60
    box = page.locator(".scroller")
    assert box.evaluate("(b) => b.scrollHeight - b.scrollTop - b.clientHeight") < 4


def test_reading_upwards_loads_more_and_nothing_moves(visit: Start, folder: Path) -> None:
    seen = visit([Say(text="x")], folder=folder)
    page = _open(seen)
    box = page.locator(".scroller")
    held: list[Any] = []
    page.route("**/conversations/*before=*", lambda route: held.append(route))  # noqa: PLW0108 - a bound method of a list has no place for Playwright
    for round_ in range(3):
        before = page.locator(".bubble").count()
        # The first question on the screen stays where it is while others come above it.
        box.evaluate("(b, top) => { b.scrollTop = top; }", 500 - 250 * round_)
        page.wait_for_timeout(250)
        mark = page.evaluate(
            """() => {
          const top = document.querySelector(".scroller").getBoundingClientRect().top;
          const mark = [...document.querySelectorAll(".bubble")].find((b) => b.getBoundingClientRect().top > top);
          mark.dataset.mark = "1";
          return mark.getBoundingClientRect().top;
        }"""
        )
        held.pop().continue_()
        expect(page.locator(".bubble")).not_to_have_count(before)
        page.wait_for_timeout(150)
        after = page.evaluate("document.querySelector('[data-mark]').getBoundingClientRect().top")
        page.evaluate("delete document.querySelector('[data-mark]').dataset.mark")
        assert abs(after - mark) <= 2, (mark, after)


def test_the_first_message_can_be_reached(visit: Start, folder: Path) -> None:
    seen = visit([Say(text="x")], folder=folder)
    page = _open(seen)
    for _ in range(60):
        if page.locator(".bubble").first.text_content() == "Question 0":
            break
        page.locator(".scroller").evaluate("(b) => { b.scrollTop = 0; }")
        page.wait_for_timeout(120)
    expect(page.locator(".bubble").first).to_have_text("Question 0")
    assert page.locator(".bubble").count() == COUNT // 2
    numbers = page.locator(".bubble").all_text_contents()
    assert numbers == [f"Question {number}" for number in range(COUNT // 2)]


def test_a_stream_is_followed_only_at_the_bottom(visit: Start, folder: Path) -> None:
    seen = visit([Say(text="A new paragraph.\n\n" * 120, pause=0.02)], folder=folder)
    page = _open(seen)
    box = page.locator(".scroller")
    seen.ask("Write a lot")
    expect(page.locator(".answer").last).to_contain_text("A new paragraph.")
    page.wait_for_timeout(400)
    assert box.evaluate("(b) => b.scrollHeight - b.scrollTop - b.clientHeight") < 60, "at the bottom it follows"
    page.mouse.move(700, 300)
    page.mouse.wheel(0, -900)
    page.wait_for_timeout(200)
    before = box.evaluate("(b) => [b.scrollTop, b.scrollHeight]")
    page.wait_for_timeout(700)
    after = box.evaluate("(b) => [b.scrollTop, b.scrollHeight]")
    assert after[1] > before[1], "it is still writing"
    assert abs(after[0] - before[0]) <= 2, "and the reader is left alone"
    page.get_by_role("button", name="To the newest").click()
    page.wait_for_timeout(300)
    assert box.evaluate("(b) => b.scrollHeight - b.scrollTop - b.clientHeight") < 60
    page.keyboard.press("Escape")


def test_a_very_long_thought_scrolls_inside_of_itself(visit: Start) -> None:
    seen = visit([Say(thinking="A sentence of a thought. " * 800, text="Short.")])
    seen.ask_and_wait("Think hard")
    page = seen.page
    row = page.locator(".answer .row").bounding_box()
    assert row is not None
    assert row["height"] < 520
    body = page.locator(".thought .body")
    assert body.evaluate("(b) => b.scrollHeight > b.clientHeight * 2")
    # The keyboard reaches it.
    assert body.get_attribute("tabindex") == "0"
