"""Where a thought and a key never appear: the answer, storage, addresses, titles, the console."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from asides_stage import Say
from tests.gateway.page.conftest import Visit

Start = Callable[..., Visit]
THOUGHT = "canary-of-the-thought"
KEY = "canary-of-the-key"
SENT_KEY = "sk-upstream-canary"


def test_a_thought_and_a_key_stay_where_they_belong(visit: Start) -> None:
    settings = {"ASIDES_VISIBILITY_GATEWAY": "raw,summary"}
    seen = visit([Say(thinking=f"I plan {THOUGHT}.", text="The answer.")], keys=(KEY,), environ=settings)
    seen.expected.append("401")
    page = seen.page
    page.get_by_label("Key").fill(KEY)
    page.keyboard.press("Enter")
    seen.ask_and_wait("A question")
    expect(page.locator(".thought .body")).to_contain_text(THOUGHT)

    # The thought is in the margin, once; it is no part of the answer, its title, or what is read aloud.
    outside = page.evaluate(
        """() => {
      const copy = document.documentElement.cloneNode(true);
      for (const margin of copy.querySelectorAll(".margin")) margin.remove();
      return copy.outerHTML;
    }"""
    )
    for canary in (THOUGHT, KEY, SENT_KEY):
        assert canary not in outside
        assert canary not in page.title()
        assert not [url for url in [*seen.requests, page.url] if canary in url]
        assert not [line for line in seen.console if canary in line]
        assert canary not in str(page.evaluate("({...localStorage})"))
        assert canary not in str(page.evaluate("history.state"))
        assert canary not in page.evaluate("document.cookie")
    assert KEY not in page.content()
    assert page.evaluate("({...sessionStorage})") == {"asides.key": KEY}
    assert page.evaluate("indexedDB.databases()") == []
    assert page.evaluate("caches.keys()") == []
    # After a reload its words are gone, from the page and from what the gateway has.
    page.reload()
    expect(page.locator(".column .text")).to_have_text("The answer.")
    assert THOUGHT not in page.content()


def test_with_keys_only_summaries_are_shown_unless_somebody_decides_otherwise(visit: Start) -> None:
    seen = visit([Say(thinking=THOUGHT, text="The answer.")], keys=(KEY,))
    seen.expected.append("401")
    page = seen.page
    page.get_by_label("Key").fill(KEY)
    page.keyboard.press("Enter")
    seen.ask_and_wait("A question")
    expect(page.locator(".thought summary")).to_contain_text("hidden")
    assert THOUGHT not in page.content()
